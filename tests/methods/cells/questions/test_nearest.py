"""The quick search against the exact rule: bit for bit, also where single precision cannot tell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.methods.cells import Nearest
from privada.methods.cells.questions import nearest_kernel as kernel
from privada.methods.cells.questions.nearest import QuickNearest, ahead, in_parts


def assert_same(X, centers):
    found = QuickNearest(centers=centers).assign(X)
    assert np.array_equal(found, Nearest(centers=centers).assign(X))
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
        np.full((80, 2), 7.25),
        np.tile(np.eye(2), (40, 1)),
        centers[:80] * 1e-200,
    ):
        assert_same(rng.normal(size=(30, same.shape[1])), same)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_record_alone_decides_its_cell(seed, size):
    """Hazard 10: neither its place in a tile nor the other records matter."""
    rng = np.random.default_rng(seed)
    cells = QuickNearest(centers=np.round(rng.normal(size=(70, 2)), 1))
    X = np.round(rng.normal(size=(1200, 2)), 2)
    whole = cells.assign(X)
    order = rng.permutation(len(X))
    assert np.array_equal(cells.assign(X[order]), whole[order])
    assert np.array_equal(np.concatenate([cells.assign(part) for part in np.array_split(X, size)]), whole)
    assert np.array_equal(cells.assign(np.asfortranarray(X)), whole)


def test_the_whole_rule_is_rarely_needed_and_the_margin_is_felt():
    """Few generic rows are near-ties; every midpoint is one."""
    rng = np.random.default_rng(2)
    cells = QuickNearest(centers=rng.normal(size=(2000, 8)))
    found = np.empty(4000, dtype=np.int64)
    X = rng.normal(size=(4000, 8))
    assert kernel.assign(X, cells.centers, *cells._prepared, found) < 40
    first = cells.centers[:1000]
    gaps = ((first[:, None] - cells.centers[None]) ** 2).sum(axis=2)
    gaps[np.arange(1000), np.arange(1000)] = np.inf
    middles = (first + cells.centers[gaps.argmin(axis=1)]) / 2
    assert kernel.assign(middles, cells.centers, *cells._prepared, found[:1000]) > 400


def test_few_centres_use_the_exact_rule_and_nothing_is_nothing():
    assert not QuickNearest(centers=np.eye(3))._quick
    assert QuickNearest(centers=np.arange(100.0)[:, None]).assign(np.zeros((0, 1))).shape == (0,)


def test_parts_cover_everything_once_and_errors_come_through():
    seen = np.zeros(103, dtype=int)

    def work(part):
        seen[part] += 1

    in_parts(work, 103, 10)
    assert (seen == 1).all()
    in_parts(work, 0, 10)

    def fail(part):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        in_parts(fail, 30, 10)


def test_items_made_ahead_are_the_same_and_errors_come_through():
    assert list(ahead(iter(range(50)))) == list(range(50))
    assert list(ahead(iter([]))) == []

    def breaking():
        yield 1
        raise ArithmeticError

    taken = ahead(breaking())
    assert next(taken) == 1
    with pytest.raises(ArithmeticError):
        next(taken)
