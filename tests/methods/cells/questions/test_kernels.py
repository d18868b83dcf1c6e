"""Passes over rows: a record's result is its own, and its contribution stays in its ball."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.methods.cells import Bins
from privada.methods.cells.questions import kernels


def test_no_centre_however_far_lets_a_row_out_of_its_ball():
    """Learners choose centres; differences may overflow, and factors be too small for a float."""
    most = np.finfo(np.float64).max
    far = [*np.linspace(1e307, most, 200), -most, 1e300, 1.0, 0.0]
    for radius, step in ((2.0**-40, 2.0**-60), (1.0, 2.0**-20), (2.0**79, 2.0**59)):
        for centre in far:
            for row in (0.5, -1e300, -most, most, 5e-324):
                sums = np.zeros((1, 2), dtype=np.int64)
                X, origin = np.array([[row, -row]]), np.array([[centre, -centre]])
                kernels.add_clipped(sums, X, np.zeros(1, dtype=np.int64), origin, radius, 1 / step)
                assert sum(int(v) ** 2 for v in sums[0]) <= (radius / step) ** 2


def rows(seed=0, n=400, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 4, n), rng.normal(size=(4, d))


def clipped_sums(X, cells, origins, radius=0.7, steps=2.0**30):
    sums = np.zeros(origins.shape, dtype=np.int64)
    kernels.add_clipped(sums, X, cells, origins, radius, steps)
    return sums


def test_clipped_sums_are_those_of_the_formula():
    X, cells, origins = rows()
    seen = X - origins[cells]
    seen *= np.minimum(1, 0.7 / np.linalg.norm(seen, axis=1))[:, None]
    wanted = np.zeros_like(origins)
    np.add.at(wanted, cells, seen)
    np.testing.assert_allclose(clipped_sums(X, cells, origins) / 2.0**30, wanted, atol=1e-6)


def test_clipped_sums_have_the_same_bits_in_every_order_and_split():
    X, cells, origins = rows()
    whole, order = clipped_sums(X, cells, origins), np.random.default_rng(1).permutation(len(X))
    assert (clipped_sums(X[order], cells[order], origins) == whole).all()
    parts = [slice(0, 1), slice(1, 60), slice(60, None)]
    assert (sum(clipped_sums(X[at], cells[at], origins) for at in parts) == whole).all()


def test_a_row_on_its_origin_adds_nothing():
    assert not clipped_sums(np.ones((5, 2)), np.zeros(5, dtype=np.int64), np.ones((1, 2))).any()


def test_affine_maps_are_summed_row_by_row():
    X, _, _ = rows()
    matrix, shift = np.random.default_rng(2).normal(size=(3, 5)), np.arange(5.0)
    found = kernels.affine(X, matrix, shift)
    np.testing.assert_allclose(found, X @ matrix + shift, rtol=1e-12, atol=1e-12)
    for at in (0, 17, 399):
        assert kernels.affine(X[at : at + 1], matrix, shift).tobytes() == found[at : at + 1].tobytes()


FINITE = st.floats(-1.7e308, 1.7e308)
EDGES = st.lists(FINITE, min_size=1, max_size=9, unique=True).map(sorted)


@settings(max_examples=200)
@given(EDGES, EDGES, st.lists(st.tuples(FINITE, st.booleans()), max_size=40))
def test_counts_in_one_pass_are_those_of_the_rule(first, second, values):
    values = (
        values + [(edge, False) for edge in first] + [(np.nextafter(edge, -np.inf), True) for edge in second]
    )
    X = np.array([(value, float(absent)) for value, absent in values if abs(value) < np.inf]).reshape(-1, 2)
    labels = np.arange(len(X)) % 2
    tables = (Bins(feature=0, edges=first), Bins(feature=0, edges=second, missing=1))
    for classes in (1, 2):
        known = labels if classes == 2 else np.zeros(0, dtype=np.int64)
        found = kernels.count_bins(tables, X, known, classes)
        for table, counts in zip(tables, found, strict=True):
            codes = table.assign(X) * classes + (labels if classes == 2 else 0)
            assert counts.tolist() == np.bincount(codes, minlength=table.n_cells * classes).tolist()
