"""The solver against brute force, against its own parts, and at its edges."""

import itertools
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from privada.exceptions import InputError
from privada.methods.clustering.learner import medoids as solver
from privada.methods.clustering.learner import search
from privada.methods.clustering.learner.medoids import cost, expected_medoids, medoids, source_distances

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


# Optimality


def test_swaps_reach_the_optimum_of_tiny_instances_and_never_pass_it():
    """Each cap belongs to a row: were it taken for a column's, hardly any optimum would be found."""
    rng = np.random.default_rng(0)
    reached = []
    for n, k in [(8, 2), (10, 3), (12, 4)] * 40:
        T, S = rng.normal(size=(n, 2)), rng.normal(size=(3, 2))
        caps, weights = source_distances(T, S), rng.integers(1, 4, size=n)
        subsets = itertools.combinations(range(n), k)
        best = min(capped_cost(T, caps, subset, weights) for subset in subsets)
        found = medoids(T, k, caps=caps, weights=weights)
        assert found.cost >= best - 1e-12
        assert found.cost == pytest.approx(capped_cost(T, caps, found.indices, weights), abs=1e-12)
        reached.append(found.cost <= best + 1e-12)
    assert np.mean(reached) >= 0.95


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 5, 20])
def test_knowing_the_source_never_costs_more_than_ignoring_it(seed, k):
    T, caps, _ = instance(seed)
    ignoring = medoids(T, k).indices
    assert medoids(T, k, caps=caps).cost <= capped_cost(T, caps, ignoring) + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_no_single_swap_is_left(seed):
    T, caps, _ = instance(seed, n=60)
    found = medoids(T, 4, caps=caps)
    for out, new in itertools.product(found.indices.tolist(), range(len(T))):
        swapped = [new if index == out else index for index in found.indices.tolist()]
        assert capped_cost(T, caps, swapped) >= found.cost - 1e-12


def test_no_swap_is_left_in_single_precision_either():
    T, caps, rng = instance(0, n=4500, width=3)
    found = medoids(T, 6, caps=caps)
    D, near = cdist(T, T[found.indices]), []
    for new in rng.choice(len(T), 200):
        column = np.linalg.norm(T - T[new], axis=1)
        for out in range(6):
            others = np.delete(D, out, axis=1).min(axis=1)
            near.append(np.minimum(np.minimum(caps, column), others).mean())
    assert min(near) >= found.cost * (1 - 3e-6)


# The parts


# Invariances


@pytest.mark.parametrize("seed", range(4))
def test_a_weight_is_a_repetition(seed):
    T, caps, rng = instance(seed, n=80)
    weights = rng.integers(1, 4, size=80)
    weighted = medoids(T, 6, caps=caps, weights=weights)
    repeated = medoids(np.repeat(T, weights, axis=0), 6, caps=np.repeat(caps, weights))
    assert repeated.cost == pytest.approx(weighted.cost, rel=1e-12)
    assert np.repeat(np.arange(80), weights)[repeated.indices].tolist() == weighted.indices.tolist()


@pytest.mark.parametrize("n", [120, 2500])
def test_the_order_of_points_does_not_matter(n):
    T, caps, rng = instance(7, n=n)
    order = rng.permutation(n)
    found, moved = medoids(T, 8, caps=caps), medoids(T[order], 8, caps=caps[order])
    assert sorted(order[moved.indices].tolist()) == found.indices.tolist()


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_units_and_origin_do_not_matter(factor):
    T, caps, _ = instance(8)
    found, moved = medoids(T, 8, caps=caps), medoids(factor * (T - 3.0), 8, caps=factor * caps)
    assert moved.indices.tolist() == found.indices.tolist()
    assert moved.cost == pytest.approx(factor * found.cost)


# Many points


def test_swaps_draw_nothing():
    T, caps, _ = instance(11)
    found = [medoids(T, 9, caps=caps, random_state=seed).indices.tolist() for seed in (None, 1, 2)]
    assert found[0] == found[1] == found[2]


# Edges


@pytest.mark.parametrize("method", ["swap", "large"])
def test_more_centres_than_points_chooses_each_point_once(method):
    T = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-0.0, 0.0], [2.0, 2.0]])
    for k in (3, 4, 5, 99):
        found = medoids(T, k, method=method)
        assert found.indices.tolist() == [0, 1, 4]
        assert found.cost == 0.0


@pytest.mark.parametrize("method", ["swap", "large"])
def test_a_target_of_few_distinct_points_never_has_one_chosen_twice(method):
    T = np.random.default_rng(14).integers(0, 3, size=(200, 2)).astype(float)
    found = medoids(T, 5, method=method, random_state=0)
    assert len(np.unique(T[found.indices], axis=0)) == 5


def test_no_centre_costs_the_mean_cap():
    T, caps, rng = instance(15, n=30)
    weights = rng.random(30)
    found = medoids(T, 0, caps=caps, weights=weights)
    assert found.indices.shape == (0,)
    assert found.cost == pytest.approx(np.average(caps, weights=weights))
    with pytest.raises(InputError, match="without any centre the cost is infinite"):
        medoids(T, 0)


def test_one_point_and_points_that_are_all_the_same():
    assert medoids([[1.0, 2.0]], 1).indices.tolist() == [0]
    assert medoids([[1.0, 2.0]] * 4, 2, caps=[0.0, 1.0, 2.0, 3.0]).indices.tolist() == [0]
    assert medoids([[1.0, 2.0]] * 4, 0, caps=[0.0, 1.0, 2.0, 3.0]).cost == 1.5


def test_a_source_on_every_point_leaves_nothing_to_gain():
    T, _, _ = instance(16, n=50)
    found = medoids(T, 3, caps=np.zeros(50))
    assert found.indices.tolist() == [0, 1, 2]
    assert found.cost == 0.0


def test_some_points_may_have_no_source():
    T, caps, _ = instance(17, n=40)
    caps[::2] = np.inf
    found = medoids(T, 3, caps=caps)
    assert found.cost == pytest.approx(capped_cost(T, caps, found.indices))


def test_points_without_weight_ask_for_nothing():
    T, caps, rng = instance(18, n=60)
    weights = np.where(rng.random(60) < 0.5, 0.0, 1.0)
    for method in ("swap", "large"):
        found = medoids(T, 4, caps=caps, weights=weights, method=method, random_state=0)
        kept = weights > 0
        assert found.cost <= 1.1 * medoids(T[kept], 4, caps=caps[kept]).cost


def test_without_swaps_the_choice_is_greedy():
    T, caps, _ = instance(19, n=5000)
    found = medoids(T, 5, caps=caps, max_swaps=0).indices
    greedy = search.greedy(posed_problem(search.PointProblem, T, caps), 5)
    assert found.tolist() == sorted(greedy.tolist())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": [[0.0], [np.nan]]}, "target to be finite"),
        ({"target": [0.0, 1.0]}, "target to be a non-empty matrix"),
        ({"target": [[-1e160], [1e160]]}, "below 1e150"),
        ({"k": -1}, "k to be a whole number >= 0"),
        ({"k": 1.5}, "k to be a whole number >= 0"),
        ({"caps": [1.0]}, r"caps of shape \(2,\), got \(1,\)"),
        ({"caps": [1.0, np.nan]}, "caps >= 0"),
        ({"caps": [1.0, -1.0]}, "caps >= 0"),
        ({"weights": [1.0, np.inf]}, "weights to be finite"),
        ({"method": "exact"}, "method to be one of auto, large, swap, got 'exact'"),
        ({"max_swaps": -1}, "max_swaps to be a whole number >= 0"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(InputError, match=message):
        medoids(**({"target": [[0.0], [1.0]], "k": 1} | change))


coordinates = st.one_of(st.integers(-2, 2).map(float), st.floats(-100, 100, width=16))


targets = arrays(np.float64, st.tuples(st.integers(1, 14), st.integers(1, 3)), elements=coordinates)


@settings(max_examples=80)
@given(target=targets, k=st.integers(0, 16), data=st.data())
def test_whatever_the_target_the_solution_is_sound(target, k, data):
    n, width = target.shape
    source = data.draw(arrays(np.float64, (2, width), elements=coordinates))
    weights = data.draw(arrays(np.float64, n, elements=st.integers(0, 3).map(float)))
    weights[0] += 1.0
    caps = source_distances(target, source)
    found = medoids(target, k, caps=caps, weights=weights, method=data.draw(st.sampled_from(solver.METHODS)))
    distinct = len(np.unique(target, axis=0))
    assert len(found.indices) == min(k, distinct) == len(np.unique(target[found.indices], axis=0))
    assert np.all(np.diff(found.indices) > 0)
    assert found.cost == pytest.approx(cost(target, source, target[found.indices], weights=weights), abs=1e-9)
    assert found.cost <= np.average(caps, weights=weights) + 1e-9


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


def all_distances(A, B):
    return np.linalg.norm(A[:, None, :] - B[None, :, :], axis=2)


@pytest.mark.parametrize("width", [1, 2, 8, 12, 13, 40])
def test_distances_to_the_source_are_those_of_the_definition(width):
    rng = np.random.default_rng(width)
    T, S = rng.normal(size=(50, width)), rng.normal(size=(70, width))
    np.testing.assert_allclose(source_distances(T, S), all_distances(T, S).min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("width", [3, 30])
def test_distances_far_from_the_origin_keep_their_digits(width):
    rng = np.random.default_rng(0)
    T, S = rng.normal(size=(40, width)) + 1e6, rng.normal(size=(60, width)) + 1e6
    np.testing.assert_allclose(source_distances(T, S), all_distances(T, S).min(axis=1), rtol=1e-9)


def test_many_dimensions_are_done_in_chunks(monkeypatch):
    rng = np.random.default_rng(1)
    T, S = rng.normal(size=(37, 20)), rng.normal(size=(11, 20))
    whole = source_distances(T, S)
    monkeypatch.setattr("privada.methods.clustering.learner.medoids.BLOCK", 50)
    np.testing.assert_allclose(source_distances(T, S), whole, rtol=1e-14)


@pytest.mark.parametrize("empty", [None, [], np.empty((0, 2))])
def test_without_a_source_distances_are_infinite(empty):
    assert np.isinf(source_distances(np.zeros((3, 2)), empty)).all()


def test_the_cost_is_the_mean_distance_to_the_nearest_of_both():
    rng = np.random.default_rng(2)
    T, S, C = (rng.normal(size=(n, 3)) for n in (40, 10, 4))
    served = all_distances(T, np.vstack([S, C])).min(axis=1)
    assert cost(T, S, C) == pytest.approx(served.mean(), rel=1e-12)
    weights = rng.random(40)
    assert cost(T, S, C, weights=weights) == pytest.approx(np.average(served, weights=weights), rel=1e-12)
    assert cost(T, None, C) == pytest.approx(all_distances(T, C).min(axis=1).mean(), rel=1e-12)
    assert cost(T, S, []) == pytest.approx(all_distances(T, S).min(axis=1).mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("target", "source", "chosen", "weights", "message"),
    [
        ([[0.0, 1.0]], None, [], None, "at least one source point or chosen centre"),
        ([[0.0, np.nan]], None, [[0.0, 0.0]], None, "target to be finite"),
        ([[0.0, 1.0]], [[np.inf, 0.0]], [[0.0, 0.0]], None, "source to be finite"),
        ([[0.0, 1.0]], [[0.0, 0.0, 0.0]], [[0.0, 0.0]], None, "source to have 2 columns, got 3"),
        ([[0.0, 1.0]], None, [[0.0]], None, "chosen to have 2 columns, got 1"),
        ([[0.0, 1.0]], None, [[0.0, 0.0]], [1.0, 1.0], r"weights of shape \(1,\), got \(2,\)"),
        ([[0.0, 1.0]], None, [[0.0, 0.0]], [-1.0], "weights to be finite, >= 0 and not all 0"),
        ([[0.0, 1.0]], None, [[0.0, 0.0]], [0.0], "weights to be finite, >= 0 and not all 0"),
        (np.empty((0, 2)), None, [[0.0, 0.0]], None, "target to be a non-empty matrix"),
    ],
)
def test_bad_input_of_a_cost_is_named(target, source, chosen, weights, message):
    with pytest.raises(InputError, match=message):
        cost(target, source, chosen, weights=weights)


points = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=st.floats(-10, 10))


@settings(max_examples=60)
@given(target=points, source=points, chosen=points)
def test_more_centres_never_cost_more(target, source, chosen):
    both = cost(target, source, chosen)
    assert both <= min(cost(target, source, []), cost(target, None, chosen))
    assert cost(target, np.vstack([source, chosen]), []) == pytest.approx(both, abs=1e-12)
    assert cost(target[::-1], source, chosen) == pytest.approx(both, abs=1e-12)
