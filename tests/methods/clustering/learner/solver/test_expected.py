from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.exceptions import InputError
from privada.methods.clustering.learner.solver.expected import expected_medoids
from privada.methods.clustering.learner.solver.objective import source_distances
from privada.methods.clustering.learner.solver.solve import medoids


def paid(T, chosen, caps):
    return np.minimum(caps, source_distances(T, T[list(chosen)])).mean()


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_it_is_nearly_always_the_optimum(seed):
    rng = np.random.default_rng(seed)
    T, caps = rng.normal(size=(9, 2)), rng.uniform(0, 1.5, size=(3, 9))
    found = expected_medoids(T, 2, caps=caps)
    best = min(paid(T, pair, caps) for pair in combinations(range(9), 2))
    assert found.cost == pytest.approx(paid(T, found.indices, caps))
    assert found.cost <= best * 1.15 + 1e-12
    assert found.cost >= best - 1e-12


def test_one_source_is_the_plain_problem():
    rng = np.random.default_rng(0)
    T, caps = rng.normal(size=(60, 3)), rng.uniform(0, 1, size=60)
    assert np.array_equal(expected_medoids(T, 5, caps=[caps]).indices, medoids(T, 5, caps=caps).indices)
    assert expected_medoids(T, 5, caps=[caps] * 4).cost == pytest.approx(medoids(T, 5, caps=caps).cost)


def test_averaging_beats_trusting_the_mean_cap():
    rng = np.random.default_rng(1)
    better = 0
    for _ in range(20):
        T = rng.uniform(size=(40, 2))
        caps = rng.uniform(0, 0.6, size=(6, 40)) * (rng.uniform(size=(6, 40)) < 0.5)
        ours = expected_medoids(T, 4, caps=caps).cost
        other = paid(T, medoids(T, 4, caps=caps.mean(axis=0)).indices, caps)
        assert ours <= other * 1.02
        better += ours < other - 1e-9
    assert better >= 8


def test_edges():
    T = np.arange(4.0)[:, None]
    assert len(expected_medoids(T, 0, caps=np.ones((2, 4))).indices) == 0
    assert len(expected_medoids(T, 9, caps=np.ones((2, 4))).indices) == 4
    for bad in (np.ones((2, 3)), -np.ones((2, 4)), np.full((2, 4), np.nan)):
        with pytest.raises(InputError, match="caps"):
            expected_medoids(T, 1, caps=bad)
