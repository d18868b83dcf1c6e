"""What the paper's theorems ask for, checked where it can be checked by hand."""

import itertools
import math

import numpy as np
import pytest

from privada.exceptions import InputError
from privada_lab.papers.summarization_theorems import prescribed_sizes, submodular_condition


def objective(K, validation, chosen):
    """J of equation 3, with an empty summary worth nothing."""
    if not chosen:
        return 0.0
    S, V = list(chosen), list(validation)
    return 2 * K[np.ix_(V, S)].mean() - K[np.ix_(S, S)].mean()


def test_the_condition_is_of_the_nearest_pair():
    X = np.array([[0.0, 0.0], [0.0, 2.0], [5.0, 5.0]])
    found = submodular_condition(X, gamma=0.25)
    assert found.largest_kernel == pytest.approx(math.exp(-1))
    assert found.allowed_kernel == 1 / (27 + 27 + 3)
    assert not found.holds
    assert submodular_condition(X, gamma=found.needed_gamma * 1.0001).holds
    assert not submodular_condition(X, gamma=found.needed_gamma * 0.999).holds


def test_equal_points_never_fulfil_it():
    found = submodular_condition([[1.0], [1.0]], gamma=1e6)
    assert found.largest_kernel == 1
    assert found.needed_gamma == math.inf
    assert not found.holds


def test_the_theorem_itself_does_not_hold_where_no_summary_point_is_of_the_validation_set():
    """Points that are all but orthogonal: J is about -1/|S|, not 0 or more, where S and V are disjoint."""
    X = 10.0 * np.arange(6)[:, None]
    assert submodular_condition(X, gamma=1.0).holds
    K = np.exp(-((X - X.T) ** 2))
    worst = min(
        objective(K, (0, 1), chosen)
        for size in (1, 2)
        for chosen in itertools.combinations(range(2, 6), size)
    )
    assert worst < -0.4


def test_sizes_follow_the_printed_formulas():
    rule = prescribed_sizes(epsilon=2.0, delta=0.01, size=100, points=1000, slack=0.5)
    d = rule.dimension
    assert d == math.ceil(16 * math.log(2000) * math.log(100) ** 2 / 0.25)
    assert rule.iterations == d**2
    assert rule.validation_epsilon == 2.0 / (16 * d**2)
    assert rule.first_epsilon == pytest.approx(2 / math.sqrt(16 * d**2 * math.log(100) * math.log(100)))
    assert rule.last_epsilon == pytest.approx(rule.first_epsilon / 10)
    twice = prescribed_sizes(epsilon=4.0, delta=0.01, size=100, points=1000, slack=0.5)
    assert twice.validation_rows == pytest.approx(rule.validation_rows / 2)
    assert twice.seed_rows == rule.seed_rows


@pytest.mark.parametrize("wrong", [{"slack": 1.5}, {"size": 1}, {"delta": 0.0}, {"epsilon": 0.0}])
def test_nonsense_is_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        prescribed_sizes(**({"epsilon": 1.0, "delta": 0.01, "size": 10, "points": 50} | wrong))
