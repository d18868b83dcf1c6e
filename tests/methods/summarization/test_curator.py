"""Owners that fail, lie, are late or drop out; nothing is charged twice, and the run completes."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import (
    Consumer,
    Curator,
    CuratorNoise,
    GaussianThreshold,
    OwnerNode,
    RoundPlan,
    RoundPoints,
    supply_noise,
)
from privada.methods.summarization.learner.rounds import AskedOwners, NoisySum
from privada.privacy import ZCDP, Disclosure, PureDP, SecureNoise

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


def asked(noise, ranks, rule):
    return CuratorNoise(noise).draw(AskedOwners(ranks, rule))


class Words:
    """Coins that were flipped beforehand."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, n):
        return np.array([self.left.pop(0) for _ in range(n)], dtype=np.uint64)


def test_a_coin_is_as_fine_as_the_chance_to_be_missed():
    """With 53 bits a chance of 1e-20 would be none: "not asked" never at one rank, at the next perhaps."""
    rule = GaussianThreshold(sigma=5.0, beta=1e-30)
    rank = next(rank for rank in range(2, 100) if rule.miss(rank) > 1e-25)
    assert rule.miss(rank) < 1e-20
    assert asked(Words(1), {"a": rank}, rule) == {"a"}
    assert asked(Words(0, 2**63), {"a": rank}, rule) == {"a"}
    assert asked(Words(0, 0), {"a": rank}, rule) == set()
    assert asked(Words(0, 0), {"a": 1}, rule) == {"a"}
    assert asked(Words(2**64 - 1), {"a": 10**6}, rule) == set()


def test_bits_are_as_likely_as_the_rule_says(rehearsal):
    rule = GaussianThreshold(sigma=4.0, beta=1e-4)
    found = {f"o{i}": 14 for i in range(20_000)}
    share = len(asked(rehearsal, found, rule)) / len(found)
    assert share == pytest.approx(rule.probability(14), abs=0.02)


def test_a_sum_is_truncated_point_by_point_and_noisy(rehearsal):
    plan = RoundPlan(size=4, dimension=6, guarantee=ZCDP(rho=50.0, relation="replace-one"))
    features = np.random.default_rng(0).uniform(-0.4, 0.4, size=(9, 6))
    drawn = CuratorNoise(rehearsal).draw(NoisySum(features, plan.broadcast))
    steps = drawn / plan.broadcast.grid.step
    assert np.array_equal(steps, np.round(steps))
    assert 0 < np.abs(drawn - features.sum(axis=0)).max() < 6 * plan.broadcast.scale + 1e-3


def test_noise_is_the_operating_systems_unless_you_say_otherwise():
    assert isinstance(CuratorNoise().noise, SecureNoise)


def test_questions_pass_and_draws_are_answered():
    """What drives the learner sees questions alone; what is to be drawn never leaves the curator."""
    wanted = AskedOwners({"a": 1}, GaussianThreshold(sigma=1.0, beta=0.1))

    def rounds():
        first = yield "a question"
        second = yield wanted
        return first, second

    learner = supply_noise(rounds(), lambda draw: draw.ranks)
    assert next(learner) == "a question"
    with pytest.raises(StopIteration) as stop:
        learner.send("its answer")
    assert stop.value.value == ("its answer", {"a": 1})


def test_transcripts_show_no_row_and_count_points(town, matching):
    consumer, owners = town()
    curator = Curator()
    summary = curator.summarise(consumer, owners, matching)
    assert curator.view.points == summary.points_seen == 40
    assert [entry.kind for entry in owners[0].view.entries] == [
        "summarization.sum",
        "summarization.near",
        "summarization.rows",
    ]
    assert [entry.kind for entry in consumer.view.entries] == ["summarization.sum"]
    digits = [f"{value:.5f}"[:6] for value in summary.X.ravel()]
    assert not any(text in str(curator.view.to_dict()) + repr(summary) for text in digits)
