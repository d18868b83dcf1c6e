import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privada.exceptions import InputError
from privada.methods.cells import Bins, GridCells, NearestCells, Projected
from privada.methods.cells.questions import partition

points = hnp.arrays(np.float64, (7, 2), elements=st.floats(-5, 5).map(lambda v: round(v, 1)))


@given(points, points)
def test_the_nearest_centre_is_found_and_ties_go_to_the_first(X, centers):
    found = NearestCells(centers=centers).assign(X)
    distances = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
    assert np.array_equal(distances[np.arange(7), found], distances.min(axis=1))
    for row, cell in enumerate(found):
        assert not np.any(distances[row, :cell] <= distances[row, cell])


@given(points, st.permutations(range(7)), st.integers(1, 7))
def test_a_record_alone_decides_its_cell(X, order, size):
    """Hazard 10: neither its place in a batch nor the other records matter."""
    for cells in (
        NearestCells(centers=np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5]])),
        Bins(feature=1, edges=np.array([-1.0, 0.0, 2.5])),
        GridCells(factors=(Bins(feature=0, edges=np.array([0.0])), Bins(feature=1, edges=np.array([0.0])))),
    ):
        whole = cells.assign(X)
        assert np.array_equal(cells.assign(X[list(order)]), whole[list(order)])
        parts = [cells.assign(X[i : i + size]) for i in range(0, 7, size)]
        assert np.array_equal(np.concatenate(parts), whole)
        assert whole.min() >= 0
        assert whole.max() < cells.n_cells


def test_bins_partition_the_line():
    bins = Bins(feature=0, edges=np.array([0.0, 1.0]), missing=1)
    X = np.array([[-9.0, 0], [0.0, 0], [0.999, 0], [1.0, 0], [1e300, 0], [0.5, 1]])
    assert bins.assign(X).tolist() == [0, 1, 1, 2, 2, 3]
    assert bins.n_cells == 4


@pytest.mark.parametrize("edges", [[], [1.0, 1.0], [2.0, 1.0], [np.nan], [np.inf], [[0.0, 1.0]]])
def test_bins_that_overlap_are_refused(edges):
    with pytest.raises(InputError, match="strictly increasing"):
        Bins(feature=0, edges=np.array(edges))


def test_products_cover_every_combination():
    grid = GridCells(
        factors=(Bins(feature=0, edges=np.array([0.0])), Bins(feature=1, edges=np.array([0.0, 1.0])))
    )
    X = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 0.5, 2.0)])
    assert sorted(grid.assign(X).tolist()) == list(range(6))
    with pytest.raises(InputError, match="at most"):
        GridCells(factors=(Bins(feature=0, edges=np.arange(4000.0)),) * 2)


def test_what_does_not_fit():
    with pytest.raises(InputError, match="centers of 3 features"):
        NearestCells(centers=np.eye(2)).fits(3)
    with pytest.raises(InputError, match="feature below 1"):
        Bins(feature=4, edges=np.array([0.0])).fits(1)
    for bad in ([], [[np.nan]], [1.0, 2.0]):
        with pytest.raises(InputError, match="centers"):
            NearestCells(centers=bad)


def test_public_arrays_cannot_be_changed_afterwards():
    centers = np.eye(2)
    nearest = NearestCells(centers=centers)
    centers[0, 0] = 99
    assert nearest.centers[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        nearest.centers[0, 0] = 2


HALVES = Bins(feature=0, edges=np.array([0.5]))


@pytest.mark.parametrize("large", [1e308, -1.7e308])
def test_every_row_has_a_cell_where_a_projection_is_beyond_floats(large):
    matrix = np.array([[large, large], [-large, large]])
    X = np.array([[1.0, 1.0], [1e300, 1e300], [-1e300, 1e300], [0.0, 0.0]])
    for inner in (NearestCells(centers=np.array([[large, 0.0], [0.0, 1.0]])), HALVES):
        found = Projected(matrix=matrix, inner=inner).assign(X)
        assert found.min() >= 0
        assert found.max() < inner.n_cells
        assert [Projected(matrix=matrix, inner=inner).assign(row[None])[0] for row in X] == found.tolist()


def test_partitions_are_neither_too_deep_nor_of_too_many_factors():
    """Else they would fail when a row is assigned, and not where there is none."""
    one = NearestCells(centers=np.zeros((1, 2)))
    with pytest.raises(InputError, match="at most 30 factors, got 31"):
        GridCells(factors=(one,) * 31)
    assert GridCells(factors=(one,) * 30).assign(np.zeros((3, 2))).tolist() == [0, 0, 0]
    deep = one
    for _ in range(7):
        deep = GridCells(factors=(deep,))
    with pytest.raises(InputError, match="at most 8 partitions inside each other, got 9"):
        Projected(matrix=np.eye(2), inner=deep)


def test_maps_of_a_row_have_a_public_limit():
    """A few features could become millions of numbers a row, as many times as there are rows."""
    with pytest.raises(InputError, match="Expected matrix to have at most 65536 columns"):
        Projected(matrix=np.ones((2, partition.WIDEST_MAP + 1)), inner=HALVES)
    with pytest.raises(InputError, match="and 4000000 numbers"):
        Projected(matrix=np.ones((partition.LARGEST_MAP // 1000 + 1, 1000)), inner=HALVES)


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
    monkeypatch.setattr(partition, "CHUNK_NUMBERS", 8 * 30)
    assert np.array_equal(cells.assign(X), whole)
    assert seen == [100, 30, 30, 30, 10]
    assert cells.assign(X[:0]).tolist() == []


@pytest.mark.parametrize(("length", "width"), [(0, 5), (1, 10**6), (1000, 2**15), (70_000, 1), (131_072, 1)])
def test_chunks_cover_every_row_once_and_are_small(length, width):
    sizes = []
    rows = np.arange(float(length))[:, None]
    mapped = partition.map_rows(rows, width, lambda part: sizes.append(len(part)) or part[:, 0])
    assert mapped.tolist() == list(range(length))
    assert all(size * width <= max(width, 2**16) for size in sizes)


def test_no_rows_are_mapped_to_no_rows_of_the_same_width():
    assert partition.map_rows(np.zeros((0, 2)), 3, lambda rows: np.zeros((len(rows), 3))).shape == (0, 3)


def test_chunks_are_put_together_in_order(monkeypatch):
    monkeypatch.setattr(partition, "CHUNK_NUMBERS", 10)
    X = np.arange(23.0)[:, None]
    assert np.array_equal(partition.map_rows(X, 4, lambda rows: rows * 2), X * 2)


def test_a_map_is_a_matrix_of_finite_numbers():
    for wrong in (np.ones(3), [[np.nan]], [[1.0, np.inf]]):
        with pytest.raises(InputError, match="turn"):
            partition.check_map(turn=wrong)
