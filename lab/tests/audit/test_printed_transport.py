"""The printed algorithms of transport are caught by the auditors.

Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds.
"""

import numpy as np
import pytest

from privada.audit import audit_mechanism
from privada.privacy import ApproxDP
from privada_lab.papers.transport import paper_dpda, paper_dpot


def seeded(run, **settings):
    seeds = iter(range(10**6))
    return lambda data: run(*data, insecure_seed=next(seeds), **settings)


@pytest.mark.statistical
def test_the_printed_label_sorting_is_caught():
    """privacy.md, section 3 (b): class-2 rows alternate 1, 0, 1, 0; one label changes, every row shifts."""
    m = 100
    rows = np.concatenate([np.tile([[1.0], [0.0]], (m // 2, 1)), [[0.0]]])
    first, second = np.array([1] * m + [0]), np.array([1] * (m + 1))
    settings = {"n_classes": 2, "components": 1, "epsilon": 4.0, "delta": 1e-3, "label_epsilon": 1.0}
    printed = seeded(paper_dpda, **settings)
    signs = np.tile([1.0, -1.0], m // 2)

    def seen(data):  # relative to the sum, which shows the sign and size of the public M
        found = printed(data).rows[:, 0]
        return np.array([np.clip(found[1:] @ signs / found.sum(), -2, 2)])

    claimed = ApproxDP(epsilon=5.0, delta=1e-3, relation="replace-one")
    result = audit_mechanism(seen, (rows, first), (rows, second), claimed=claimed, trials=3000)
    assert not result.passed, str(result)


@pytest.mark.statistical
def test_the_printed_dpot_fails_at_record_level():
    """Every attribute of one row moves by 1: claimed ε = 4, true in the hundreds."""
    zero, one = np.zeros((1, 400)), np.ones((1, 400))
    printed = seeded(paper_dpot, components=40, epsilon=4.0, delta=1e-3)

    def seen(data):
        return np.array([float(np.linalg.norm(printed(data).rows))])

    claimed = ApproxDP(epsilon=4.0, delta=1e-3, relation="replace-one")
    result = audit_mechanism(seen, (zero,), (one,), claimed=claimed, trials=1500)
    assert not result.passed
    assert result.epsilon_lower > 4
