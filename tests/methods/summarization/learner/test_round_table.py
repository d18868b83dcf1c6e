"""The curator's table: who breaks a rule is left out; the best points are taken whatever their order."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization.learner.allocation import Absent
from privada.methods.summarization.learner.round_table import Bid, RoundTable
from privada.methods.summarization.questions.scoring import score_points
from privada.privacy import Disclosure


@pytest.fixture
def table(matching):
    return RoundTable(
        embedding=matching.embedding,
        target=np.zeros(40),
        start=np.zeros(40),
        start_size=0,
        playing=["a", "b"],
    )


SLOPE = np.linspace(-1, 1, 40)


def disclosed(**rows):
    made = object.__new__(Disclosure)
    object.__setattr__(made, "rows", {name: np.array(value) for name, value in rows.items()})
    return made


def send(table, owner, X, first=0):
    X = np.array(X)
    bid = Bid(score_points(table.embedding.transform(X), SLOPE), np.arange(first, first + len(X)))
    table.accept_points(owner, disclosed(X=X), bid, SLOPE)


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ({"scores": [1.0]}, "cannot be read"),
        ({"scores": [1.0, 0.5], "index": [0]}, "another shape"),
        ({"scores": [3.0, 2.0, 1.0], "index": [0, 1, 2]}, "another shape"),
        ({"scores": [1.0, 2.0], "index": [0, 1]}, "not in order"),
        ({"scores": [np.nan, 2.0], "index": [0, 1]}, "not finite"),
        ({"scores": [2.0, 1.0], "index": [4, 4]}, "has sent"),
        ({"scores": [2.0], "index": [7]}, "has sent"),
    ],
)
def test_a_bid_that_breaks_a_rule_leaves_its_owner_out(table, rows, fault):
    table.sent["a"] = [7]
    assert table.accept_bid("a", disclosed(**rows), batch=2) is None
    assert table.playing == ["b"]
    assert fault in table.faults[0]


def test_an_owner_without_points_stays(table):
    assert table.accept_bid("a", disclosed(scores=np.zeros(0), index=np.zeros(0, int)), batch=2) is None
    assert table.playing == ["a", "b"]
    assert table.accept_bid("b", Absent("b", "late"), batch=2) is None
    assert table.playing == ["a"]


def test_the_best_points_are_taken_in_any_order(table):
    X = np.random.default_rng(0).normal(size=(6, 2))
    send(table, "a", X[:3])
    send(table, "b", X[3:])
    table.pool.reverse()
    table.take_best(SLOPE, 2)
    scores = score_points(table.embedding.transform(X), SLOPE)
    assert sorted(tuple(point.X) for point in table.chosen) == sorted(map(tuple, X[np.argsort(-scores)[:2]]))
    assert len(table.pool) == 4
    assert table.summary_features().shape == (2, 40)


def test_points_that_are_not_what_was_bid_leave_the_pool(table):
    send(table, "a", [[1.0, 1.0]])
    bid = Bid(np.array([5.0]), np.array([1]))
    table.accept_points("a", disclosed(X=[[2.0, 2.0]]), bid, SLOPE)
    assert table.failed
    assert table.playing == ["b"]
    assert table.pool == []
    assert table.seen == 2
    with pytest.raises(InputError, match="No owner sent"):
        table.to_summary(None)
