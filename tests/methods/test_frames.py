"""Columns are found by name in every kind of frame."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from privada.exceptions import InputError
from privada.methods.frames import in_order, names_of, refuse_sparse

VALUES = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
NAMES = ("a", "b", "c")


def frames():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    yield pandas.DataFrame(VALUES, columns=list(NAMES))
    yield polars.DataFrame(VALUES, schema=list(NAMES))
    yield arrow.table({name: VALUES[:, place] for place, name in enumerate(NAMES)})


def test_every_kind_of_frame_has_names_and_an_order():
    for frame in frames():
        assert names_of(frame) == NAMES
        assert in_order(frame, ("c", "a", "b"), name="X").tolist() == VALUES[:, [2, 0, 1]].tolist()
        assert in_order(frame, None, name="X").shape == (2, 3)


def test_arrays_and_numbered_columns_have_none():
    pandas = pytest.importorskip("pandas")
    for rows in (VALUES, VALUES.tolist(), pandas.DataFrame(VALUES)):
        assert names_of(rows) is None
        assert np.array_equal(in_order(rows, NAMES, name="X"), VALUES)


def test_what_differs_is_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=["a", "b", "z"])
    with pytest.raises(InputError, match="Xt to have the columns of fit; missing: 'c'; unknown: 'z'"):
        in_order(frame, NAMES, name="Xt")
    many = pandas.DataFrame(np.zeros((1, 9)), columns=list("defghijkl"))
    with pytest.raises(InputError, match="unknown: 'd', 'e', 'f', 'g', 'h' and 4 more"):
        in_order(many, NAMES, name="X")
    twice = pandas.DataFrame(VALUES, columns=["a", "b", "b"])
    with pytest.raises(InputError, match="missing: 'c'"):
        in_order(twice, NAMES, name="X")
    with pytest.raises(InputError, match="some are there twice"):
        in_order(twice, ("a", "b"), name="X")


def test_sparse_rows_are_refused():
    with pytest.raises(InputError, match=r"use Xs.toarray\(\)"):
        refuse_sparse(csr_matrix(VALUES), name="Xs")
