"""The quick search against the exact rule: bit for bit, also where single precision cannot tell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privada.methods.cells import NearestCells
from privada.methods.cells.questions import nearest as kernel
from privada.methods.cells.questions.nearest import NearestSearch


def by_the_rule(X, centers):
    """Least float64 sum of squares in coordinate order, the first on ties: written down once more."""
    found = np.zeros(len(X), dtype=np.int64)
    best = np.full(len(X), np.inf)
    with np.errstate(all="ignore"):
        for j, center in enumerate(centers):
            total = np.zeros(len(X))
            for k in range(X.shape[1]):
                gap = X[:, k] - center[k]
                total = total + gap * gap
            found[total < best] = j
            best = np.where(total < best, total, best)
    return found


def assert_same(X, centers):
    found = NearestCells(centers=centers).assign(X)
    assert np.array_equal(found, by_the_rule(X, centers))
    return found


def perturbed(X, rng, times=3):
    """Every row, and rows a few last bits away from it."""
    near = [X]
    for _ in range(times):
        moved = X.copy()
        for _ in range(int(rng.integers(1, 4))):
            moved = np.nextafter(moved, rng.choice([-np.inf, np.inf], size=X.shape))
        near.append(moved)
    return np.vstack(near)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 9, 16, 21])
def test_near_ties_are_decided_by_the_exact_rule(d):
    """Midpoints of centres, centres themselves, doubled centres, and rows a last bit away from them."""
    rng = np.random.default_rng(d)
    centers = rng.normal(size=(150, d))
    centers = np.vstack([centers, centers[::3], np.round(centers[:40], 1)])
    pairs = rng.integers(len(centers), size=(200, 2))
    middles = centers[pairs].mean(axis=1)
    found = assert_same(perturbed(np.vstack([middles, centers]), rng), centers)
    assert len(set(found.tolist())) > 50


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e6, 1e12])
@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0, 1e20])
def test_lattices_of_ties_far_from_the_origin(offset, size):
    """Integer points between integer centres: most rows have several nearest ones."""
    rng = np.random.default_rng(0)
    centers = (offset + rng.integers(-4, 5, size=(130, 3))) * size
    X = (offset + rng.integers(-9, 10, size=(400, 3)) / 2) * size
    assert_same(perturbed(X, rng), centers)


def test_outliers_and_degenerate_centres():
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(100, 4))
    far = rng.normal(size=(40, 4)) * 10.0 ** rng.uniform(-300, 300, size=(40, 1))
    assert_same(np.vstack([far, np.zeros((1, 4)), 1e6 * centers[:9]]), centers)
    for same in (
        np.zeros((80, 2)),
        np.outer(np.linspace(-1, 1, 80), [1.7e308, 1.0]),
        np.full((80, 2), 7.25),
        np.tile(np.eye(2), (40, 1)),
        centers[:80] * 1e-200,
    ):
        assert_same(rng.normal(size=(30, same.shape[1])), same)


@pytest.mark.parametrize("count", [3, 100])
def test_a_number_that_is_none_puts_a_row_into_the_first_cell(count):
    """A public projection may overflow for some rows: they have one cell, too, the one they always had."""
    centers = np.random.default_rng(3).normal(size=(count, 2))
    X = np.array([[np.nan, 0.0], [np.inf, 0.0], [-np.inf, np.inf], [1.7e308, -1.7e308], [0.0, np.nan]])
    assert assert_same(X, centers).tolist() == [0] * 5


VALUES = st.sampled_from([0.0, -0.0, 1.0, 1 + 2.0**-52, 0.5, 5e-324, 1e-160, 1e154, 1.7e308, -1e154, -1.0])


@settings(max_examples=60)
@given(hnp.arrays(np.float64, (70, 2), elements=VALUES), hnp.arrays(np.float64, (40, 2), elements=VALUES))
def test_adversarial_centres_and_rows_follow_the_rule(centers, X):
    assert_same(X, centers)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_record_alone_decides_its_cell(seed, size):
    """Hazard 10: neither its place in a tile nor the other records matter."""
    rng = np.random.default_rng(seed)
    cells = NearestSearch(np.round(rng.normal(size=(70, 2)), 1))
    X = np.round(rng.normal(size=(1200, 2)), 2)
    whole = cells.assign(X)
    order = rng.permutation(len(X))
    assert np.array_equal(cells.assign(X[order]), whole[order])
    assert np.array_equal(np.concatenate([cells.assign(part) for part in np.array_split(X, size)]), whole)
    assert np.array_equal(cells.assign(np.asfortranarray(X)), whole)


def test_few_centres_use_the_exact_rule_and_nothing_is_nothing():
    assert not NearestSearch(np.eye(3)).quick
    assert NearestSearch(np.arange(100.0)[:, None]).assign(np.zeros((0, 1))).shape == (0,)


def test_the_nearest_centre_is_the_first_on_ties():
    search = NearestSearch(np.array([[0.0], [1.0], [1.0], [2.0]]))
    assert search.assign(np.array([[0.5], [1.0], [1.5], [9.0]])).tolist() == [0, 1, 1, 3]


def test_the_whole_rule_is_rarely_needed_and_the_margin_is_felt():
    """Few generic rows are near-ties; every midpoint is one."""
    rng = np.random.default_rng(2)
    cells = NearestSearch(rng.normal(size=(2000, 8)))
    found = np.empty(4000, dtype=np.int64)
    X = rng.normal(size=(4000, 8))
    assert kernel.assign_quickly(X, cells.centers, *cells.prepared, found) < 40
    first = cells.centers[:1000]
    gaps = ((first[:, None] - cells.centers[None]) ** 2).sum(axis=2)
    gaps[np.arange(1000), np.arange(1000)] = np.inf
    middles = (first + cells.centers[gaps.argmin(axis=1)]) / 2
    assert kernel.assign_quickly(middles, cells.centers, *cells.prepared, found[:1000]) > 400


@pytest.mark.parametrize("d", [1, 8, 11])
@pytest.mark.parametrize("n", [1, kernel.TILE - 1, kernel.TILE, kernel.TILE + 1])
def test_tiles_that_are_not_full_and_widths_beyond_one_chunk_follow_the_rule(n, d):
    rng = np.random.default_rng(n + d)
    search = NearestSearch(rng.normal(size=(200, d)))
    X = rng.normal(size=(n, d))
    found, exact = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    kernel.assign_quickly(X, search.centers, *search.prepared, found)
    kernel.assign_exactly(X, search.centers, exact)
    assert np.array_equal(found, exact)
    assert np.array_equal(exact, by_the_rule(X, search.centers))


def test_a_row_too_far_out_for_single_precision_is_left_to_the_exact_rule():
    search = NearestSearch(np.random.default_rng(0).normal(size=(200, 2)))
    X = np.array([[1e200, -1e200], [kernel.FAR_QUERY * 1e3, 0.0], [0.0, 0.0]])
    found = np.empty(3, dtype=np.int64)
    assert kernel.assign_quickly(X, search.centers, *search.prepared, found) >= 2
    assert np.array_equal(found, by_the_rule(X, search.centers))
