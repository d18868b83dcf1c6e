"""Values as trees and arrays, and back."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from privada import PureDP
from privada.exceptions import InputError, WireError
from privada.methods.models.model_file import TreeReader, TreeWriter

SHARED = np.arange(4.0)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        math.inf,
        "word",
        (1, (2.5, None)),
        [1, [2]],
        {"a": 1, 2: (3,)},
        PureDP(epsilon=0.5, relation="replace-one"),
    ],
)
def test_plain_values_are_themselves_again(value):
    writer = TreeWriter()
    assert TreeReader(writer.arrays).read(writer.write(value)) == value


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.array([1, 2], dtype=np.int32),
        np.array([True, False]),
        np.array(["no", "yes", "no"]),
        np.array(["no", 3, 2.5], dtype=object),
        np.zeros((0, 2)),
    ],
)
def test_arrays_keep_type_and_shape(array):
    writer = TreeWriter()
    again = TreeReader(writer.arrays).read(writer.write(array))
    assert again.dtype.kind == array.dtype.kind
    assert np.array_equal(again, array)
    assert again.shape == array.shape


def test_an_array_is_written_once():
    writer = TreeWriter()
    first, second = writer.write([SHARED, SHARED])
    assert first == second
    assert len(writer.arrays) == 1


def test_sparse_arrays_are_checked():
    writer = TreeWriter()
    tree = writer.write(csr_array(np.eye(3)))
    assert np.array_equal(TreeReader(writer.arrays).read(tree).toarray(), np.eye(3))
    writer.arrays[tree["sparse"][2]["array"]] = np.array([0, 1, 70], dtype=np.int32)
    with pytest.raises(ValueError):
        TreeReader(writer.arrays).read(tree)


@pytest.mark.parametrize("value", [object(), print, np.array([object()]), np.array(1j), {1, 2}])
def test_what_is_not_known_is_not_written(value):
    with pytest.raises(InputError, match="A model file holds no"):
        TreeWriter().write(value)


@pytest.mark.parametrize("tree", [{}, {"array": "a", "tuple": []}, {"exec": "1"}, {"scalar": ["O", 1]}])
def test_other_trees_are_refused(tree):
    with pytest.raises(WireError):
        TreeReader({}).read(tree)
