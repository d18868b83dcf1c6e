"""Coins as fine as the chance to be missed, sums that are truncated point by point, and who draws."""

import numpy as np
import pytest

from privada.methods.summarization import CuratorNoise, GaussianThreshold, RoundPlan, supply_noise
from privada.methods.summarization.learner.draws import AskedOwners, NoisySum
from privada.privacy import ZCDP, SecureNoise


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
