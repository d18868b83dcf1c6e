"""The method for many points: close to swaps, repeatable, without a square matrix."""

import tracemalloc

import numpy as np
from scipy.spatial.distance import cdist

from privada.methods.clustering.learner.solver import problem, search, solve
from privada.methods.clustering.learner.solver.objective import source_distances
from privada.methods.clustering.learner.solver.solve import medoids


def capped_cost(T, caps, chosen, weights=None):
    paid = np.minimum(caps, cdist(T, T[list(chosen)]).min(axis=1))
    return np.average(paid, weights=weights)


def instance(seed, n=200, width=2, sources=20, spread=0.05):
    """Clumps of target points, some of them near the source; n points, distinct with probability 1."""
    rng = np.random.default_rng(seed)
    middles = rng.random((12, width))
    T = middles[rng.integers(12, size=n)] + spread * rng.normal(size=(n, width))
    S = middles[rng.integers(6, size=sources)] + 0.1 * rng.normal(size=(sources, width))
    return T, source_distances(T, S), rng


def posed_problem(form, T, caps=None, weights=None):
    caps = np.full(len(T), np.inf) if caps is None else caps
    weights = np.ones(len(T)) if weights is None else weights
    return form(*solve.scaled(T, caps), weights, solve.distinct(T))


def test_branch_and_bound_finds_the_best_member_of_each_cluster():
    from privada.methods.clustering.learner.solver import large

    T, caps, rng = instance(6, n=1200, width=3)
    posed = posed_problem(problem.PointProblem, T, caps, rng.random(1200))
    found = search.Search(posed, rng.choice(1200, 3, replace=False), 10)
    D, expected = cdist(posed.rows, posed.rows), []
    for c, centre in enumerate(found.chosen):
        members = np.flatnonzero(found.slot == c)
        served = np.minimum(D[np.ix_(members, members)], found.second[members, None])
        best = members[np.argmin(posed.weights[members] @ served)]
        expected += [best] if best != centre else []
    assert sorted(large._best_members(found).tolist()) == sorted(expected)


def test_the_method_for_many_points_is_within_two_percent_of_swaps_and_repeatable():
    T, caps, _ = instance(10, n=3000, width=4)
    swap = medoids(T, 30, caps=caps, method="swap")
    large = [medoids(T, 30, caps=caps, method="large", random_state=seed) for seed in (0, 0, 1)]
    assert large[0].cost <= 1.02 * swap.cost
    assert large[2].cost <= 1.02 * swap.cost
    assert large[0].indices.tolist() == large[1].indices.tolist()
    assert large[0].cost == large[1].cost


def test_many_points_need_no_square_matrix():
    n = 12_000
    T, caps, _ = instance(12, n=n, width=3)
    medoids(T[:5000], 5, caps=caps[:5000], method="large", random_state=0)  # compile
    tracemalloc.start()
    try:
        medoids(T, 20, caps=caps, method="large", random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n * 4 / 10
