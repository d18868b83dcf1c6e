import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privada.exceptions import InputError
from privada.methods.cells import Bins, Nearest, Product
from privada.methods.cells.partition import pack, unpack

points = hnp.arrays(np.float64, (7, 2), elements=st.floats(-5, 5).map(lambda v: round(v, 1)))


@given(points, points)
def test_the_nearest_centre_is_found_and_ties_go_to_the_first(X, centers):
    found = Nearest(centers=centers).assign(X)
    distances = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
    assert np.array_equal(distances[np.arange(7), found], distances.min(axis=1))
    for row, cell in enumerate(found):
        assert not np.any(distances[row, :cell] <= distances[row, cell])


@given(points, st.permutations(range(7)), st.integers(1, 7))
def test_a_record_alone_decides_its_cell(X, order, size):
    """Hazard 10: neither its place in a batch nor the other records matter."""
    for partition in (
        Nearest(centers=np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5]])),
        Bins(feature=1, edges=np.array([-1.0, 0.0, 2.5])),
        Product(factors=(Bins(feature=0, edges=np.array([0.0])), Bins(feature=1, edges=np.array([0.0])))),
    ):
        whole = partition.assign(X)
        assert np.array_equal(partition.assign(X[list(order)]), whole[list(order)])
        parts = [partition.assign(X[i : i + size]) for i in range(0, 7, size)]
        assert np.array_equal(np.concatenate(parts), whole)
        assert whole.min() >= 0
        assert whole.max() < partition.n_cells


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
    grid = Product(
        factors=(Bins(feature=0, edges=np.array([0.0])), Bins(feature=1, edges=np.array([0.0, 1.0])))
    )
    X = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 0.5, 2.0)])
    assert sorted(grid.assign(X).tolist()) == list(range(6))
    with pytest.raises(InputError, match="at most"):
        Product(factors=(Bins(feature=0, edges=np.arange(4000.0)),) * 2)


def test_what_does_not_fit():
    with pytest.raises(InputError, match="centers of 3 features"):
        Nearest(centers=np.eye(2)).fits(3)
    with pytest.raises(InputError, match="feature below 1"):
        Bins(feature=4, edges=np.array([0.0])).fits(1)
    for bad in ([], [[np.nan]], [1.0, 2.0]):
        with pytest.raises(InputError, match="centers"):
            Nearest(centers=bad)


def test_public_arrays_cannot_be_changed_afterwards():
    centers = np.eye(2)
    nearest = Nearest(centers=centers)
    centers[0, 0] = 99
    assert nearest.centers[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        nearest.centers[0, 0] = 2


def test_many_tables_are_read_in_one_pass():
    class Counted(dict):
        looks = 0

        def items(self):
            Counted.looks += 1
            return super().items()

    plain, arrays = pack(tuple(Bins(feature=0, edges=np.array([float(i)])) for i in range(12)))
    made = unpack(plain, Counted(arrays))
    assert Counted.looks == 1
    assert [float(bins.edges[0]) for bins in made] == list(range(12))


def test_more_factors_than_an_index_can_have_are_refused():
    """They failed after the charge at every owner that has a row, and at none that has none."""
    one = Nearest(centers=np.zeros((1, 1)))
    Product(factors=(one,) * 32).assign(np.zeros((2, 1)))
    with pytest.raises(InputError, match="at most 32 factors, got 33"):
        Product(factors=(one,) * 33)
