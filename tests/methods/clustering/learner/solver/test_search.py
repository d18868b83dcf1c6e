"""Lazy greedy choice, screening of swaps, and where improvement ends."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from privada.methods.clustering.learner.solver import problem, search, solve
from privada.methods.clustering.learner.solver.objective import source_distances

FORMS = [problem.MatrixProblem, problem.PointProblem]


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


def plain_greedy(T, caps, weights, k):
    D, near, chosen = cdist(T, T), caps.copy(), []
    for _ in range(k):
        gains = weights @ np.maximum(near[:, None] - D, 0.0)
        gains[chosen] = -1.0
        chosen.append(int(np.argmax(np.round(gains, 9))))
        near = np.minimum(near, D[:, chosen[-1]])
    return chosen


@pytest.mark.parametrize("form", FORMS)
def test_lazy_greedy_chooses_what_plain_greedy_chooses(form):
    """Clumps so narrow that whole runs of points are passed over."""
    T, caps, rng = instance(3, n=2000, spread=0.005)
    weights = rng.random(2000)
    found = search.greedy(posed_problem(form, T, caps, weights), 25)
    assert found.tolist() == plain_greedy(T, caps, weights, 25)


@pytest.mark.parametrize("form", FORMS)
def test_greedy_breaks_ties_by_the_smallest_index(form):
    T = np.array([[3.0], [-3.0], [1.0], [-1.0]])
    found = search.greedy(posed_problem(form, T, np.ones(4)), 4)
    assert found.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("capped", [True, False])
def test_screening_and_offers_see_the_true_change_of_every_swap(form, capped):
    T, caps, rng = instance(4, n=2000, width=3, spread=0.005)
    posed = posed_problem(form, T, caps if capped else None, rng.random(2000))
    chosen = rng.choice(2000, 9, replace=False)
    found = search.Search(posed, chosen, 10)
    D, everyone = cdist(posed.rows, posed.rows), np.arange(2000)
    paid = np.minimum(posed.caps, D[:, chosen].min(axis=1)) @ posed.weights
    assert found.cost == pytest.approx(paid)
    expected = np.full(2000, np.inf)
    for out in range(9):
        others = np.minimum(posed.caps, np.delete(D[:, chosen], out, axis=1).min(axis=1))
        expected = np.minimum(expected, posed.weights @ np.minimum(others[:, None], D) - paid)
    np.testing.assert_allclose(posed.changes(everyone, found.ranking()), expected, atol=1e-10)
    some = everyone[5:777:3]
    np.testing.assert_allclose(posed.changes(some, found.ranking()), expected[some], atol=1e-10)
    best = int(np.argmin(expected))
    assert found.promising(everyone)[0] == best
    assert found.offer(best)
    assert found.cost == pytest.approx(paid + expected[best])


@pytest.mark.parametrize("seed", range(8))
def test_improvement_ends_where_no_candidate_promises_any(seed):
    T, caps, rng = instance(seed, n=600)
    posed = posed_problem(problem.PointProblem, T, caps)
    found = search.Search(posed, rng.choice(600, 25, replace=False), 10_000)
    found.improve()
    assert found.promising(posed.candidates) == []


def test_books_after_many_swaps_are_those_of_a_fresh_start():
    T, caps, rng = instance(5, n=300)
    posed = posed_problem(problem.PointProblem, T, caps)
    found = search.Search(posed, rng.choice(300, 10, replace=False), 10_000)
    found.improve()
    fresh = search.Search(posed, found.chosen, 10_000)
    assert found.swaps > 5
    np.testing.assert_array_equal(found.near, fresh.near)
    np.testing.assert_array_equal(found.second, fresh.second)
    np.testing.assert_array_equal(found.slot, fresh.slot)
    np.testing.assert_allclose(found._losses, fresh._losses, atol=1e-10)
