"""The printed auction of summarization is caught by the auditors.

Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds.
"""

import pytest

from privada.audit import audit_mechanism
from privada.privacy import ApproxDP
from privada_lab.papers.summarization import paper_auction


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_printed_auction_is_caught(epsilon):
    """privacy.md, section 5 (b): δ = 1 - exp(-ε) in one round; claimed ε (twice over), with δ = 1e-3."""
    seeds = iter(range(10**6))
    claimed = ApproxDP(epsilon=2 * epsilon, delta=1e-3, relation="add/remove")

    def asked(best_of_others):
        coins = paper_auction([0.5, best_of_others], epsilon=epsilon, insecure_seed=next(seeds))
        return float(coins[0])  # what the first owner sees

    result = audit_mechanism(asked, 0.1, 0.9, claimed=claimed, trials=20_000)
    assert not result.passed
    assert result.epsilon_lower > 2 * epsilon
