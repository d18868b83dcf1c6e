"""Passes over rows of linear models: bounded, in whole steps, and each record by itself."""

import numpy as np
import pytest

from privada.methods.linear.owner import fused, kernels
from privada.methods.linear.questions import losses


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e8, 1e160, 1e300, 1e307, np.inf, np.nan])
def test_no_contribution_is_longer_than_its_bound_whatever_the_point(loss, size):
    """Also where scores overflow: one record's sum, in grid steps, never passes the bound."""
    rng = np.random.default_rng(0)
    outputs, per_step = 3 if loss == "softmax" else 1, 2.0**20
    bound = 0.7 * losses.largest_pull(loss, 0.5)
    for _ in range(200):
        Z = rng.normal(size=(1, 4)) * 10.0 ** rng.integers(-3, 4)
        V = size * rng.normal(size=(4, outputs))
        base, y = rng.normal(size=(1, outputs)), np.array([float(rng.integers(0, max(outputs, 2)))])
        sums = np.zeros((4, outputs), dtype=np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            _add(loss, sums, Z, base, y, V, bound, per_step)
        assert np.linalg.norm(sums / per_step) <= bound


def _add(loss, sums, Z, base, y, V, bound, per_step):
    """As an owner adds a batch."""
    if loss == "softmax":
        kernels.add_softmax(sums, Z, base, y, V, 0.5, bound, per_step)
    else:
        rows = fused.Singles.of(Z, bound=bound, per_step=per_step)
        v = V[:, 0].astype(np.float32)
        fused.add_pulls(sums[:, 0], rows, base[:, 0], y, v, loss=loss, threshold=0.5)


def records(n=50, k=4, outputs=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)), rng.normal(size=(n, outputs)), rng.integers(0, outputs, n).astype(float)


def test_rows_are_mapped_clipped_and_one_that_overflows_is_nothing():
    X, _, _ = records()
    transform, shift = np.random.default_rng(1).normal(size=(4, 2)), np.array([0.5, -0.5])
    free = kernels.mapped(X, transform, shift, np.inf)
    np.testing.assert_allclose(free, X @ transform + shift, rtol=1e-12)
    clipped = kernels.mapped(X, transform, shift, 0.3)
    assert (np.linalg.norm(clipped, axis=1) <= 0.3).all()
    short = np.linalg.norm(free, axis=1) < 0.29
    assert np.array_equal(clipped[short], free[short])
    assert not kernels.mapped(np.full((1, 4), 1e308), transform * 1e3, shift, 1.0).any()


def test_scores_are_those_of_the_formula_each_by_itself():
    X, weights, _ = records(k=5)
    weights = weights[:5]
    found = kernels.scored(X, weights, np.arange(3.0))
    np.testing.assert_allclose(found, X @ weights + np.arange(3), rtol=1e-11, atol=1e-12)
    assert kernels.scored(X[7:8], weights, np.arange(3.0)).tobytes() == found[7:8].tobytes()


@pytest.mark.parametrize("score", [-800.0, -2.0, 0.0, 0.3, 40.0, 800.0])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_pulls_are_those_of_the_losses(score, y):
    scores, labels = np.array([[score]]), np.array([y])
    found = kernels.logistic_pull(score, y, 0.5)
    assert found == pytest.approx(losses.pull("logistic", scores, labels, 0.5)[0, 0], abs=1e-12)
    assert abs(found) <= losses.largest_pull("logistic", 0.5)
    assert kernels.squared_pull(score, y, 0.5) == score - y


def test_softmax_sums_are_those_of_the_formula():
    Z, base, y = records()
    V, per_step = np.random.default_rng(2).normal(size=(4, 3)), 2.0**25
    sums = np.zeros((4, 3), dtype=np.int64)
    kernels.add_softmax(sums, Z, base, y, V, 0.5, 1e9, per_step)
    pulls = losses.pull("softmax", base + Z @ V, y, 0.5)
    np.testing.assert_allclose(sums / per_step, Z.T @ pulls, atol=1e-5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_adds_nothing(wrong):
    Z, push, _ = records(n=1)
    sums = np.zeros((4, 3), dtype=np.int64)
    for factor, pushed in ((np.array([wrong]), push), (np.array([1.0]), np.full((1, 3), wrong))):
        kernels.add_outer(sums, Z, pushed, factor, 1.0, 2.0**20)
    kernels.add_outer(sums, Z, push, np.array([1.5]), 1.0, 2.0**20)  # nor does a factor beyond 1
    kernels.add_weighted(sums[:, 0], Z, np.array([wrong]), 2.0**20)
    assert not sums.any()


def test_outer_products_are_shortened_to_the_bound_and_weighted_sums_truncated():
    Z, push, _ = records(n=1)
    sums = np.zeros((4, 3), dtype=np.int64)
    kernels.add_outer(sums, Z, push, np.array([0.5]), 0.2, 2.0**20)
    assert 0.0999 < np.linalg.norm(sums / 2.0**20) <= 0.1
    total = np.zeros(2, dtype=np.int64)
    kernels.add_weighted(total, np.array([[1.0, -1.0]]), np.array([0.9]), 1.0)
    assert total.tolist() == [0, 0]


def test_moments_of_pairs_are_those_of_the_formula():
    Z, _, e = records()
    pairs = np.column_stack([Z, e])
    sums = np.zeros((len(pairs.T), len(pairs.T)), dtype=np.int64)
    kernels.add_pairs(sums, Z, e, 2.0**40)
    np.testing.assert_allclose(sums / 2.0**40, np.triu(pairs.T @ pairs), atol=len(Z) * 2.0**-40)
