import copy
import pickle

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.parties.private import Private, open_private

SECRET = "3.14159"


@pytest.fixture
def box():
    return Private(np.array([3.14159]))


@pytest.mark.parametrize(
    "peek",
    [
        len,
        iter,
        list,
        bool,
        hash,
        np.asarray,
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda box: box[0],
        lambda box: 1 in box,
        lambda box: box == box,
        lambda box: box < box,
        lambda box: box.__getstate__(),
    ],
)
def test_it_cannot_be_read_counted_or_copied(box, peek):
    with pytest.raises((InputError, TypeError)):
        peek(box)


def test_it_shows_nothing(box):
    assert repr(box) == str(box) == f"{box}" == "<Private>"
    assert not hasattr(box, "__dict__")
    with pytest.raises(AttributeError):
        box.rows


def test_an_owner_module_opens_it(box):
    assert open_private(box).tolist() == [3.14159]
    with pytest.raises(InputError, match="Expected Private rows"):
        open_private([1])
