import math

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import Everyone, GaussianThreshold
from privada.methods.summarization.questions.asking_rules import AskRule
from privada.privacy.accounting import curves


class Printed(AskRule):
    """PrivAuction: probability exp(-ε (rank - 1))."""

    mu = math.inf

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def probability(self, rank):
        return math.exp(-self.epsilon * (rank - 1))


def excess_delta(rule, epsilon, *, owners):
    """At each rank below K, the δ that telling it from the next one needs at ``epsilon``.

    The larger of ``p_r - e^ε p_{r+1}`` and ``(1 - p_{r+1}) - e^ε (1 - p_r)``, and the same the other way.
    """
    p = np.array([rule.probability(rank) for rank in range(1, owners + 1)])
    here, there, grow = p[:-1], p[1:], math.exp(epsilon)
    asked = np.maximum(here - grow * there, there - grow * here)
    passed = np.maximum((1 - there) - grow * (1 - here), (1 - here) - grow * (1 - there))
    return np.maximum(np.maximum(asked, passed), 0.0)


def test_every_sound_rule_always_asks_rank_one():
    for rule in (Everyone(), GaussianThreshold(sigma=3, beta=1e-9)):
        chances = [rule.probability(rank) for rank in range(1, 60)]
        assert chances[0] == 1
        assert chances == sorted(chances, reverse=True)
        assert rule.expected_asked(40) == pytest.approx(sum(chances[:40]))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_threshold_keeps_the_gaussian_delta_and_its_slack(epsilon):
    rule = GaussianThreshold(sigma=2.5, beta=1e-4)
    allowed = curves.gaussian_delta(epsilon, rule.mu) + (1 + math.exp(epsilon)) * rule.beta
    assert excess_delta(rule, epsilon, owners=200).max() <= allowed


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.00995), (0.1, 0.0952), (1.0, 0.632)])
def test_the_printed_rule_has_a_delta_at_any_epsilon(epsilon, delta):
    """privacy.md, section 5 (b): 1 - exp(-ε) in each round, however large the ε that is granted."""
    for granted in (epsilon, 5.0, 50.0):
        found = excess_delta(Printed(epsilon), granted, owners=5)[0]
        assert found == pytest.approx(1 - math.exp(-epsilon))
        assert found == pytest.approx(delta, abs=5e-4)


def test_ranks_two_and_three_of_the_printed_rule_need_a_large_epsilon():
    """privacy.md, section 5 (b): .688 at ε_auc = .01, from the bit "not asked"."""
    p2, p3 = (Printed(0.01).probability(rank) for rank in (2, 3))
    assert math.log((1 - p3) / (1 - p2)) == pytest.approx(0.688, abs=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "asked"),
    [(1, 10, 69), (1, 100, 232), (3, 10, 27), (3, 100, 91), (10, 10, 12), (10, 100, 38)],
)
def test_asks_a_round_are_as_specified(epsilon, rounds, asked):
    """privacy.md, section 5 (c): total δ = 1e-5, half of it slack, the auction's budget only, add/remove."""
    beta = 0.5e-5 / ((1 + math.exp(epsilon)) * rounds)
    mu = curves.gaussian_mu(epsilon=epsilon, delta=0.5e-5)
    rule = GaussianThreshold(sigma=math.sqrt(rounds) / mu, beta=beta)
    assert 0.9 * asked <= rule.expected_asked(2000) <= asked
    assert rule.expected_asked(2000) == pytest.approx(rule.threshold - 0.5, abs=0.01)


def test_bad_rules_are_named():
    for make, match in (
        (lambda: GaussianThreshold(sigma=0, beta=0.1), "sigma"),
        (lambda: GaussianThreshold(sigma=1, beta=0), "beta"),
        (lambda: Everyone().probability(0), "rank"),
    ):
        with pytest.raises(InputError, match=match):
            make()


def test_a_miss_keeps_its_precision_where_a_probability_is_one():
    rule = GaussianThreshold(sigma=5.0, beta=1e-30)
    assert rule.miss(1) == 0
    assert rule.probability(3) == 1.0
    assert 1e-30 < rule.miss(2) < rule.miss(3) < 1e-20
    for rank in (2, 20, 55, 70, 100):
        assert rule.miss(rank) + rule.probability(rank) == pytest.approx(1)
    assert Everyone().miss(7) == 0
