"""The fused pass: the same sums as the formula, one contribution for one record, never too long."""

from itertools import pairwise

import numpy as np
import pytest

from privada.methods.reweighting import losses
from privada.methods.reweighting._fused import FEWEST, add_pulls, single

PER_STEP = 2.0**19
LOSSES = ("squared", "logistic")


def rows(n, k, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, k))
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1, keepdims=True))
    return Z, 0.1 * rng.normal(size=n), rng.integers(0, 2, n).astype(float), rng.normal(size=k)


def summed(loss, Z, base, y, v, threshold=0.5, per_step=PER_STEP):
    sums = np.zeros(Z.shape[1], dtype=np.int64)
    largest = losses.largest_pull(loss, threshold) * per_step
    rest = {"loss": loss, "threshold": threshold, "per_step": per_step, "largest": largest}
    add_pulls(sums, Z, base, y, v.astype(np.float32), **rest)
    return sums


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 5), (40, 33), (2 * FEWEST + 1, 133)])
def test_sums_are_those_of_the_formula_in_double_precision(loss, n, k):
    Z, base, y, v = rows(n, k)
    scores = base + Z @ v.astype(np.float32).astype(float)
    pulls = losses.pull(loss, scores[:, None], y, 0.5)
    exact = (Z * pulls).sum(axis=0) * PER_STEP
    assert np.abs(summed(loss, single(Z), base, y, v) - exact).max() <= 2.5 * n


@pytest.mark.parametrize("loss", LOSSES)
def test_a_record_contributes_the_same_at_every_place_and_in_every_batch(loss):
    Z, base, y, v = rows(2 * FEWEST + 3, 133)
    whole = summed(loss, single(Z), base, y, v)
    order = np.random.default_rng(1).permutation(len(Z))
    assert (summed(loss, single(Z[order]), base[order], y[order], v) == whole).all()
    cuts = [0, 1, 2, 17, 900, 3000, len(Z)]
    parts = [slice(*span) for span in pairwise(cuts)]
    assert (sum(summed(loss, single(Z[at]), base[at], y[at], v) for at in parts) == whole).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("threshold", [1e-3, 0.5, 7.0])
def test_no_record_contributes_more_than_its_bound(loss, threshold):
    largest = losses.largest_pull(loss, threshold) * PER_STEP
    for seed in range(200):
        Z, base, y, v = rows(1, 1 + seed % 40, seed)
        Z /= np.linalg.norm(Z)
        found = summed(loss, single(Z), base, y, 1e4 * v, threshold)
        assert np.linalg.norm(found.astype(float)) <= largest


def test_sums_beyond_32_bits_are_carried():
    n = 5000
    Z, zero = single(np.ones((n, 1))), np.zeros(n)
    found = summed("squared", Z, zero, zero - 9, np.zeros(1), threshold=1.0, per_step=2.0**29)
    assert found[0] == n * int(np.float32(1 - 2.0**-20) * 2.0**29)


def test_no_rows_add_nothing():
    empty = np.zeros((0, 3))
    assert not summed("squared", single(empty), np.zeros(0), np.zeros(0), np.ones(3)).any()
