"""The compiled search: the exact rule where margins cannot tell, and only there."""

import numpy as np
import pytest

from privada.methods.cells.questions import nearest_kernel as kernel
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


def test_the_whole_rule_is_rarely_needed_and_the_margin_is_felt():
    """Few generic rows are near-ties; every midpoint is one."""
    rng = np.random.default_rng(2)
    cells = NearestSearch(rng.normal(size=(2000, 8)))
    found = np.empty(4000, dtype=np.int64)
    X = rng.normal(size=(4000, 8))
    assert kernel.assign(X, cells.centers, *cells.prepared, found) < 40
    first = cells.centers[:1000]
    gaps = ((first[:, None] - cells.centers[None]) ** 2).sum(axis=2)
    gaps[np.arange(1000), np.arange(1000)] = np.inf
    middles = (first + cells.centers[gaps.argmin(axis=1)]) / 2
    assert kernel.assign(middles, cells.centers, *cells.prepared, found[:1000]) > 400


@pytest.mark.parametrize("d", [1, 8, 11])
@pytest.mark.parametrize("n", [1, kernel.TILE - 1, kernel.TILE, kernel.TILE + 1])
def test_tiles_that_are_not_full_and_widths_beyond_one_chunk_follow_the_rule(n, d):
    rng = np.random.default_rng(n + d)
    search = NearestSearch(rng.normal(size=(200, d)))
    X = rng.normal(size=(n, d))
    found, exact = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    kernel.assign(X, search.centers, *search.prepared, found)
    kernel.assign_exactly(X, search.centers, exact)
    assert np.array_equal(found, exact)
    assert np.array_equal(exact, by_the_rule(X, search.centers))


def test_a_row_too_far_out_for_single_precision_is_left_to_the_exact_rule():
    search = NearestSearch(np.random.default_rng(0).normal(size=(200, 2)))
    X = np.array([[1e200, -1e200], [kernel.FAR_QUERY * 1e3, 0.0], [0.0, 0.0]])
    found = np.empty(3, dtype=np.int64)
    assert kernel.assign(X, search.centers, *search.prepared, found) >= 2
    assert np.array_equal(found, by_the_rule(X, search.centers))
