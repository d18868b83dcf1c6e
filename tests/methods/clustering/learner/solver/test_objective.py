"""The cost of source-target clustering, against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privada.exceptions import InputError
from privada.methods.clustering.learner.solver.objective import cost, source_distances


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
    monkeypatch.setattr("privada.methods.clustering.learner.solver.objective._CHUNK", 50)
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
def test_bad_input_is_named(target, source, chosen, weights, message):
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
