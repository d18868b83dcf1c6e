"""Questions for raw rows: a policy must allow them, and what was sent before is not sent again."""

import numpy as np
import pytest

from privada.exceptions import InputError, PolicyError
from privada.methods.summarization import EmbeddedRows, RoundBids, RoundPoints, SummaryRows
from privada.methods.summarization.questions.rounds import NO_POINT


def question(matching, kind=SummaryRows, **more):
    settings = {"target": np.zeros(40), "size": 3} | more
    return kind(embedding=matching.embedding, guarantee=matching.owners, **settings)


def test_rows_go_to_a_named_curator_only(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    with pytest.raises(PolicyError, match="mallory"):
        owner.disclose(question(matching), to="mallory")
    assert owner.disclose(question(matching), to="curator").rows["X"].shape == (3, 2)
    embedded = owner.disclose(question(matching, EmbeddedRows), to="curator").rows
    assert set(embedded) == {"H"}
    assert embedded["H"].shape == (3, 40)


def test_skipped_rows_are_those_that_came_first(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    whole = owner.disclose(question(matching, size=5), to="curator").rows["X"]
    rest = owner.disclose(question(matching, size=3, skip=2), to="curator").rows["X"]
    assert np.array_equal(whole[2:], rest)
    assert len(owner.disclose(question(matching, size=99), to="curator").rows["X"]) == 30


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"size": 0}, "size"),
        ({"skip": -1}, "skip"),
        ({"size": 10**7, "skip": 1}, "size and skip"),
        ({"variance": -1.0}, "variance"),
        ({"target": np.zeros(3)}, "target"),
        ({"target": np.full(40, np.inf)}, "target"),
    ],
)
def test_bad_parameters_are_named(matching, bad, named):
    with pytest.raises(InputError, match=named):
        question(matching, **bad)


@pytest.mark.parametrize("size", [1, 7, 30, 99])
def test_no_disclosure_is_larger_than_its_question_says(matching, made_owner, size):
    """Its length on the way is that of these shapes, however many rows differ, with labels or without."""
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(30, 2)), np.ones((30, 2))):
        for y in (None, np.arange(30) % 2):
            owner = made_owner(X, y, name="o", seed=1)
            index = np.array([*range(min(size, 3)), NO_POINT])
            for asked in (
                question(matching, size=size),
                question(matching, EmbeddedRows, size=size),
                RoundPoints(index=index, guarantee=matching.owners),
                RoundBids(
                    embedding=matching.embedding,
                    target=np.ones(40),
                    broadcast=np.zeros(40),
                    count=3,
                    batch=size,
                    sent=index,
                    guarantee=matching.owners,
                ),
            ):
                shapes = asked.disclosed_shapes(owner.schema)
                disclosure = owner.disclose(asked, to="curator")
                assert disclosure.rows.keys() == shapes.keys()
                assert disclosure.most_bytes == 8 * sum(map(np.prod, shapes.values()))
                for name, array in disclosure.rows.items():
                    assert array.shape[1:] == shapes[name][1:]
                    assert len(array) <= shapes[name][0]
                    assert array.itemsize <= 8
