"""The fused pass: the same sums as the formula, one contribution for one record, never too long."""

from itertools import pairwise

import numpy as np
import pytest

from privada.methods.linear.owner.fused import FEWEST, Singles, add_pulls
from privada.methods.linear.questions import losses

PER_STEP = 2.0**19
LOSSES = ("squared", "logistic")


def rows(n, k, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, k))
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1, keepdims=True))
    return Z, 0.1 * rng.normal(size=n), rng.integers(0, 2, n).astype(float), rng.normal(size=k)


def summed(loss, Z, base, y, v, threshold=0.5, bound=0.5, per_step=PER_STEP):
    sums = np.zeros(Z.shape[1], dtype=np.int64)
    singles = Singles.of(Z, bound=bound, per_step=per_step)
    with np.errstate(over="ignore"):
        add_pulls(sums, singles, base, y, v.astype(np.float32), loss=loss, threshold=threshold)
    return sums


def pulls(loss, Z, base, y, v, bound=0.5):
    scores = base + Z @ v.astype(np.float32).astype(float)
    raw = (scores - y) if loss == "squared" else losses.pull(loss, scores[:, None], y, 0.5)[:, 0]
    return np.clip(raw, -bound / np.linalg.norm(Z, axis=1), bound / np.linalg.norm(Z, axis=1))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 5), (40, 33), (2 * FEWEST + 1, 133)])
def test_sums_are_those_of_the_formula_in_double_precision(loss, n, k):
    Z, base, y, v = rows(n, k)
    exact = (Z * pulls(loss, Z, base, y, v)[:, None]).sum(axis=0) * PER_STEP
    assert np.abs(summed(loss, Z, base, y, v) - exact).max() <= 2.5 * n


@pytest.mark.parametrize("loss", LOSSES)
def test_a_record_contributes_the_same_at_every_place_and_in_every_batch(loss):
    Z, base, y, v = rows(2 * FEWEST + 3, 133)
    whole = summed(loss, Z, base, y, v)
    order = np.random.default_rng(1).permutation(len(Z))
    assert (summed(loss, Z[order], base[order], y[order], v) == whole).all()
    cuts = [0, 1, 2, 17, 900, 3000, len(Z)]
    parts = [slice(*span) for span in pairwise(cuts)]
    assert (sum(summed(loss, Z[at], base[at], y[at], v) for at in parts) == whole).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bound", [1e-3, 0.5, 7.0])
@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e9, 1e17, 1e200])
def test_no_record_contributes_more_than_the_bound(loss, bound, scale):
    for seed in range(40):
        Z, base, y, v = rows(1, 1 + seed % 40, seed)
        Z *= scale / np.linalg.norm(Z)
        found = summed(loss, Z, base, y, 1e4 * v, threshold=7.0, bound=bound)
        assert np.linalg.norm(found.astype(float)) <= bound * PER_STEP


def test_a_long_row_adds_as_much_as_the_bound_lets_it_and_a_boundless_one_nothing():
    one = np.ones(1)
    assert summed("squared", np.array([[1e9]]), one, 0 * one, 0 * one)[0] == pytest.approx(2.0**18, rel=1e-5)
    assert summed("squared", np.array([[1e19]]), one, 0 * one, 0 * one)[0] == 0


@pytest.mark.parametrize("v", [np.inf, np.nan, 1e300, 3e38])
def test_scores_that_overflow_add_nothing_beyond_the_bound(v):
    Z, base, y, _ = rows(50, 4)
    assert np.abs(summed("squared", Z, base, y, np.full(4, v))).max() <= 50 * 0.5 * PER_STEP


def test_sums_beyond_32_bits_are_carried():
    n = 5000
    found = summed("squared", np.ones((n, 1)), np.zeros(n), np.full(n, -9.0), np.zeros(1), 1.0, 1.0, 2.0**29)
    assert found[0] == n * int(np.float32(1 - 2.0**-20) * 2.0**29)


def test_no_rows_add_nothing():
    assert not summed("squared", np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.ones(3)).any()
