"""Lazy greedy choice, screening of swaps, and where improvement ends."""

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from privada.methods.clustering.learner import medoids as solver
from privada.methods.clustering.learner import search
from privada.methods.clustering.learner.medoids import medoids, source_distances

FORMS = [search.MatrixProblem, search.PointProblem]


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
    return form(*solver.scale_problem(T, caps), weights, solver.find_distinct(T))


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
    posed = posed_problem(search.PointProblem, T, caps)
    found = search.Search(posed, rng.choice(600, 25, replace=False), 10_000)
    found.improve()
    assert found.promising(posed.candidates) == []


def test_books_after_many_swaps_are_those_of_a_fresh_start():
    T, caps, rng = instance(5, n=300)
    posed = posed_problem(search.PointProblem, T, caps)
    found = search.Search(posed, rng.choice(300, 10, replace=False), 10_000)
    found.improve()
    fresh = search.Search(posed, found.chosen, 10_000)
    assert found.swaps > 5
    np.testing.assert_array_equal(found.near, fresh.near)
    np.testing.assert_array_equal(found.second, fresh.second)
    np.testing.assert_array_equal(found.slot, fresh.slot)
    np.testing.assert_allclose(found._losses, fresh._losses, atol=1e-10)


def test_both_forms_of_a_problem_have_the_same_solution(monkeypatch):
    T, caps, _ = instance(9, n=500, width=5)
    found = []
    for matrix in (True, False):
        monkeypatch.setattr(solver, "FEW_POINTS", 2048 if matrix else 0)
        found.append(medoids(T, 12, caps=caps).indices.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("width", [2, 16])
def test_no_matrix_above_20_000_points(monkeypatch, width):
    def refuse(*_):
        raise AssertionError("a matrix")

    monkeypatch.setattr(search.MatrixProblem, "__init__", refuse)
    T = np.random.default_rng(13).normal(size=(solver.LARGEST_MATRIX + 1, width))
    assert len(medoids(T, 2, random_state=0).indices) == 2


def test_branch_and_bound_finds_the_best_member_of_each_cluster():
    T, caps, rng = instance(6, n=1200, width=3)
    posed = posed_problem(search.PointProblem, T, caps, rng.random(1200))
    found = search.Search(posed, rng.choice(1200, 3, replace=False), 10)
    D, expected = cdist(posed.rows, posed.rows), []
    for c, centre in enumerate(found.chosen):
        members = np.flatnonzero(found.slot == c)
        served = np.minimum(D[np.ix_(members, members)], found.second[members, None])
        best = members[np.argmin(posed.weights[members] @ served)]
        expected += [best] if best != centre else []
    assert sorted(search.find_best_members(found).tolist()) == sorted(expected)


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


@pytest.fixture
def books():
    rng = np.random.default_rng(0)
    table, caps, weights = rng.random((40, 4)), rng.random(40), rng.random(40)
    near, second, losses = np.empty(40), np.empty(40), np.empty(5)
    slot = np.empty(40, dtype=np.int64)
    search.rank_all(table, caps, weights, near, second, slot, losses)
    return table, caps, weights, near, second, slot, losses


def paid(table, caps, weights):
    return np.minimum(table.min(axis=1), caps) @ weights


def test_the_two_nearest_and_the_loss_of_each_centre(books):
    table, caps, weights, near, second, slot, losses = books
    both = np.sort(np.column_stack([table, caps]), axis=1)
    assert np.array_equal(near, both[:, 0])
    capped = slot == 4
    assert np.array_equal(second, np.where(capped, caps, both[:, 1])), "nobody is farther than its cap"
    assert np.array_equal(slot, np.column_stack([table, caps]).argmin(axis=1))
    for centre in range(4):
        without = paid(np.delete(table, centre, axis=1), caps, weights)
        assert losses[centre] == pytest.approx(without - paid(table, caps, weights))
    assert losses[4] == np.inf, "the cap is never removed"


def test_the_best_removal_and_the_books_after_it(books):
    table, caps, weights, near, second, slot, losses = books
    column = np.random.default_rng(1).random(40) * 0.5
    change, out = search.best_removal(column, weights, near, second, slot, losses)
    costs = []
    for centre in range(4):
        swapped = table.copy()
        swapped[:, centre] = column
        costs.append(paid(swapped, caps, weights))
    assert out == int(np.argmin(costs))
    assert change == pytest.approx(min(costs) - paid(table, caps, weights))
    search.replace_centre(column, out, table, caps, weights, near, second, slot, losses)
    again = [np.empty(40), np.empty(40), np.empty(40, dtype=np.int64), np.empty(5)]
    search.rank_all(table, caps, weights, *again)
    for kept, fresh in zip((near, second, slot, losses), again, strict=True):
        assert np.allclose(kept, fresh)
