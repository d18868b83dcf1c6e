"""Passes over source rows: what a record adds is its own, inside its ball, and the same in every order."""

import numpy as np
import pytest

from privada.methods.clustering import NeighbourAverages
from privada.methods.clustering.owner import passes
from privada.parties import Number, Rows, Schema
from privada.parties.answering import answerer
from privada.privacy import ZCDP

RHO = ZCDP(rho=1, relation="add/remove")
SCHEMA = Schema(columns=[Number(name=f"x{i}", low=-9, high=9) for i in range(3)])
STEPS = (2.0**30, 2.0**30)


def exact(question, data):
    """What is noised, as it is handed to the mechanisms."""
    seen = {}
    answerer(question)(question, Rows(data, schema=SCHEMA), lambda n, v: seen.setdefault(n, v.copy()))
    return seen


def test_ties_of_neighbours_are_broken_by_coordinates_not_by_place():
    ring = np.array([[np.cos(a), np.sin(a), 0.0] for a in np.arange(12) * np.pi / 6]).round(3) * 0.25
    ring = np.vstack([ring, ring, -ring])
    question = NeighbourAverages(targets=np.zeros((1, 3)), t=5, radius=0.5, guarantee=RHO)
    rng = np.random.default_rng(4)
    found = [exact(question, ring[rng.permutation(len(ring))])["sums"] for _ in range(20)]
    assert all(np.array_equal(other, found[0]) for other in found)


def local(X, cells, centers, shells, triangle):
    shape = len(centers) * len(shells)
    counts = np.zeros(shape, dtype=np.int64)
    sums = np.zeros((shape, X.shape[1]), dtype=np.int64)
    moments = np.zeros((shape, triangle), dtype=np.int64)
    passes.add_local(counts, sums, moments, X, cells, centers, np.array(shells), STEPS)
    return counts, sums / STEPS[0], moments / STEPS[1]


@pytest.mark.parametrize("triangle", [0, 1, 3])
def test_rows_are_added_to_the_first_shell_that_holds_them_in_its_units(triangle):
    centers, shells = np.array([[0.0, 0.0], [5.0, 0.0]]), [0.5, 2.0]
    X = np.array([[0.3, 0.0], [0.0, 1.0], [5.0, -1.0], [0.0, 2.5], [1e300, -1e300]])
    counts, sums, moments = local(X, np.array([0, 0, 1, 0, 0]), centers, shells, triangle)
    assert counts.tolist() == [1, 1, 0, 1]  # (cell, shell); the two last rows are beyond
    np.testing.assert_allclose(sums, [[0.6, 0], [0, 0.5], [0, 0], [0, -0.5]], atol=1e-8)
    assert moments.shape == (4, triangle)
    if triangle == 1:
        np.testing.assert_allclose(moments[:, 0], [0.36, 0.25, 0, 0.25], atol=1e-8)
    if triangle == 3:
        np.testing.assert_allclose(moments[1], [0, 0, 0.25], atol=1e-8)


def test_a_triangle_has_the_norm_of_the_whole_matrix():
    v = np.array([[0.6, -0.5]])
    _, _, moments = local(v, np.zeros(1, dtype=np.int64), np.zeros((1, 2)), [1.0], 3)
    assert np.linalg.norm(moments) == pytest.approx(np.linalg.norm(v.T @ v), abs=1e-8)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("radius", [1e-90, 0.5, 1e90])
def test_no_row_leaves_the_ball_and_one_inside_is_not_touched(scale, radius):
    X = scale * np.random.default_rng(0).normal(size=(100, 3))
    clipped = passes.into_ball(X, radius)
    lengths = np.linalg.norm(clipped / radius, axis=1)
    assert (lengths <= 1).all()
    inside = np.abs(X).max(axis=1) * 2 < radius
    assert np.array_equal(clipped[inside], X[inside])
    if not inside.any():
        np.testing.assert_allclose(lengths, 1, rtol=1e-9)


def heaps(targets, t):
    return np.full((len(targets), t), np.inf), np.zeros((len(targets), t, targets.shape[1]))


def test_the_nearest_are_kept_in_any_order_and_from_parts():
    rng = np.random.default_rng(1)
    X, targets = np.round(rng.normal(size=(300, 2)), 1), np.round(rng.normal(size=(7, 2)), 1)
    wanted = np.sort(np.square(X[None] - targets[:, None]).sum(axis=2), axis=1)[:, :9]
    whole, rows = heaps(targets, 9)
    passes.keep_nearest(whole, rows, X, targets)
    np.testing.assert_allclose(np.sort(whole, axis=1), wanted, atol=1e-12)
    first, kept = heaps(targets, 9)
    second, others = heaps(targets, 9)
    passes.keep_nearest(first, kept, X[200:], targets)
    passes.keep_nearest(second, others, X[:200], targets)
    passes.merge_nearest(first, kept, second, others)
    for j in range(len(targets)):
        mine, theirs = (sorted(map(tuple, side[j])) for side in (rows, kept))
        assert mine == theirs


def test_fewer_rows_than_neighbours_leave_the_rest_infinitely_far():
    distances, rows = heaps(np.zeros((1, 2)), 4)
    passes.keep_nearest(distances, rows, np.array([[3.0, 4.0]]), np.zeros((1, 2)))
    assert sorted(distances[0]) == [25.0, np.inf, np.inf, np.inf]
