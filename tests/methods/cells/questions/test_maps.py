"""Public maps: limits, and chunks whose size follows from the map alone."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.cells import Bins, Projected
from privada.methods.cells.questions import maps

HALVES = Bins(feature=0, edges=np.array([0.5]))


def test_maps_of_a_row_have_a_public_limit():
    """A few features could become millions of numbers a row, as many times as there are rows."""
    with pytest.raises(InputError, match="Expected matrix to have at most 65536 columns"):
        Projected(matrix=np.ones((2, maps.WIDEST + 1)), inner=HALVES)
    with pytest.raises(InputError, match="and 4000000 numbers"):
        Projected(matrix=np.ones((maps.LARGEST // 1000 + 1, 1000)), inner=HALVES)


def test_rows_are_projected_in_chunks_of_a_public_size(monkeypatch):
    rng = np.random.default_rng(0)
    X, matrix = rng.normal(size=(100, 3)), rng.normal(size=(3, 8))
    seen = []

    class Watched(Bins):
        def assign(self, X):
            seen.append(len(X))
            return super().assign(X)

    cells = Projected(matrix=matrix, inner=Watched(feature=7, edges=np.array([-1.0, 0.0, 1.0])))
    whole = cells.assign(X)
    monkeypatch.setattr(maps, "_NUMBERS", 8 * 30)
    assert np.array_equal(cells.assign(X), whole)
    assert seen == [100, 30, 30, 30, 10]
    assert cells.assign(X[:0]).tolist() == []


@pytest.mark.parametrize(("length", "width"), [(0, 5), (1, 10**6), (1000, 2**15), (70_000, 1), (131_072, 1)])
def test_chunks_cover_every_row_once_and_are_small(length, width):
    parts = list(maps.chunks(length, width))
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(length))
    assert all((part.stop - part.start) * width <= max(width, 2**16) for part in parts)


def test_no_rows_are_mapped_to_no_rows_of_the_same_width():
    assert maps.mapped(np.zeros((0, 2)), 3, lambda rows: np.zeros((len(rows), 3))).shape == (0, 3)


def test_chunks_are_put_together_in_order(monkeypatch):
    monkeypatch.setattr(maps, "_NUMBERS", 10)
    X = np.arange(23.0)[:, None]
    assert np.array_equal(maps.mapped(X, 4, lambda rows: rows * 2), X * 2)


def test_a_map_is_a_matrix_of_finite_numbers():
    for wrong in (np.ones(3), [[np.nan]], [[1.0, np.inf]]):
        with pytest.raises(InputError, match="turn"):
            maps.check_map(turn=wrong)
