"""Owners that fail, lie, are late or drop out; nothing is charged twice, and the run completes."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import Consumer, Curator, CuratorNoise, OwnerNode, RoundPoints
from privada.privacy import Disclosure, PureDP

AWAKE = threading.Event()
PATIENCE = 6.0  # seconds for replies that take milliseconds, on a busy machine


class Broken(OwnerNode):
    """Breaks one rule; ``how`` says which, ``when`` at which kind of question."""

    how, when = "", ""

    def reply(self, ask):
        if self.name != "near" or not ask.question.kind.endswith(self.when):
            return super().reply(ask)
        made = super().reply(ask)
        if self.how == "late":
            AWAKE.wait(120)
        elif self.how == "silent":
            raise ConnectionError("7.31 is a row")
        elif self.how == "nonsense":
            return {"X": np.zeros((3, 2))}
        elif isinstance(made, Disclosure):
            rows = {name: np.array(value) for name, value in made.rows.items()}
            made = replace(made, rows=self.spoiled(rows))
        return made

    def spoiled(self, rows):
        X = rows["X"]
        if self.how == "not finite":
            X[0, 0] = np.nan
        elif self.how == "twice":
            if len(X) > 1:
                X[1] = X[0]
            rows["X"] = X
        elif self.how == "other point":
            X[0] = -X[0]
        elif self.how == "too many":
            rows = {name: np.concatenate([value, value + 1]) for name, value in rows.items()}
        elif self.how == "other width":
            rows["X"] = X[:, :1]
        return rows


def broken(how, when):
    return type("Broken", (Broken,), {"how": how, "when": when})


def charges(node):
    return [line.kind for line in node.owner.ledger.lines(node.owner.dataset)].count("charge")


@pytest.mark.parametrize(
    ("how", "when"),
    [("late", "rows"), *((how, when) for how in ("silent", "nonsense") for when in ("sum", "near", "rows"))],
)
def test_who_drops_out_is_replaced(town, matching, how, when):
    consumer, owners = town(broken(how, when))
    AWAKE.clear()
    curator = Curator(deadline=PATIENCE if how == "late" else None)
    summary = curator.summarise(consumer, owners, matching)
    AWAKE.set()
    assert len(summary) == 40
    assert "near" not in summary.owner
    assert [absent.owner for absent in summary.allocation.absent] == ["near"]
    assert "7.31" not in str(summary.allocation.absent)
    for node in owners:
        assert charges(node) <= 2
    assert all(charges(node) == 2 for node in owners[1:])
    assert summary.points_seen == 40


@pytest.mark.parametrize("how", ["not finite", "twice", "too many", "other width"])
def test_bad_points_are_left_out_and_nobody_is_asked_for_more(town, matching, how):
    """What others are asked for must not depend on an owner's rows."""
    sound_consumer, sound = town()
    expected = Curator().summarise(sound_consumer, sound, matching)
    consumer, owners = town(broken(how, "rows"))
    summary = Curator().summarise(consumer, owners, matching)
    assert summary.allocation.rows == expected.allocation.rows
    assert np.isfinite(summary.X).all()
    assert len({row.tobytes() for row in summary.X}) == len(summary.X)
    assert any(fault.startswith("near") for fault in summary.faults)
    assert 40 - expected.allocation.rows["near"] <= len(summary) <= 40
    for a, b in zip(sound[1:], owners[1:], strict=True):
        assert a.view.entries == b.view.entries


def test_an_answer_that_failed_on_open_rows_is_not_replaced(town, matching):
    """Rows may have been the cause, so nobody else may be asked for more because of it."""

    class Failing(OwnerNode):
        def disclose(self, question, to):
            if self.name != "near":
                return super().disclose(question, to)
            return super().disclose(RoundPoints(index=[10**6], guarantee=question.guarantee), to)

    sound_consumer, sound = town()
    expected = Curator().summarise(sound_consumer, sound, matching)
    consumer, owners = town(Failing)
    summary = Curator().summarise(consumer, owners, matching)
    assert summary.allocation.rows == expected.allocation.rows
    assert summary.allocation.absent == ()
    assert set(summary.owner) <= {"far", "both"}
    assert [fault.partition(":")[0] for fault in summary.faults] == ["near"]
    for a, b in zip(sound, owners, strict=True):
        assert a.view.entries == b.view.entries


@pytest.mark.parametrize("how", ["silent", "nonsense", "not finite", "twice", "other point", "other width"])
def test_rounds_go_on_without_who_breaks_the_rules(town, matching, rehearsal, how):
    consumer, owners = town(broken(how, "points"))
    summary = Curator().auction(consumer, owners, matching, batch=10, draw=CuratorNoise(rehearsal).draw)
    assert len(summary) == 40
    assert "near" not in summary.owner
    assert [fault.partition(":")[0] for fault in summary.faults] == ["near"]
    assert all(charges(node) == 1 for node in owners)


def test_a_policy_that_names_no_curator_discloses_nothing(town, matching, made_owner):
    consumer, owners = town()
    shy = made_owner(np.ones((50, 2)), np.zeros(50, int), name="shy", seed=5, curators=())
    summary = Curator().summarise(consumer, [*owners, OwnerNode("shy", shy)], matching)
    assert "shy" not in summary.owner
    assert len(summary) == 40


def test_the_consumer_is_needed(town, matching):
    class Gone(Consumer):
        def answer(self, question):
            raise ConnectionError

    consumer, owners = town()
    with pytest.raises(InputError, match="consumer did not answer"):
        Curator().summarise(Gone("consumer", consumer.owner), owners, matching)
    with pytest.raises(InputError, match="name of its own"):
        Curator().summarise(consumer, [*owners, owners[0]], matching)
    with pytest.raises(InputError, match="names the curator"):
        Curator("someone").summarise(consumer, owners, matching)


def test_a_pure_budget_is_split_by_epsilon(town, matching, made_owner):
    pure = PureDP(epsilon=8, relation="replace-one")
    nodes = [
        OwnerNode(node.name, made_owner(np.ones((40, 2)) * i, name=node.name, seed=i, budget=pure))
        for i, node in enumerate(town()[1])
    ]
    wide = replace(matching, owners=pure, size=20)
    consumer = town()[0]
    summary = Curator().summarise(consumer, nodes, wide)
    assert len(summary) <= 20  # copies of one row are one point
    assert summary.y is None
