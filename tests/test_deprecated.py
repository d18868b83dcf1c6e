"""Names of 0.2 work for one release, and say what they are called now."""

from importlib import import_module

import numpy as np
import pytest

import privada
import privada.privacy
from privada import _deprecated
from privada.methods.method import methods


@pytest.mark.parametrize(("old", "new"), _deprecated.RENAMED.items())
def test_an_old_public_name_is_the_new_object_with_a_warning(old, new):
    names = ("privada", "privada.privacy", *(f"privada.methods.{name}" for name in methods()))
    packages = [package for package in map(import_module, names) if new in package.__all__]
    assert packages
    for package in packages:
        with pytest.warns(
            DeprecationWarning, match=f"{package.__name__}.{old} is now {package.__name__}.{new}"
        ):
            assert getattr(package, old) is getattr(package, new)
        assert old not in package.__all__


def test_a_name_that_never_was_is_refused_without_a_warning():
    with pytest.raises(AttributeError):
        privada.Exact
    with pytest.raises(AttributeError):
        privada.privacy.Ask


def test_an_old_parameter_is_the_new_one_with_a_warning():
    schema = privada.Schema.of_numbers(bounds=(0, 1), width=1)
    budget = privada.PureDP(epsilon=1, relation="add/remove")
    with (
        pytest.warns(DeprecationWarning, match="rehearsal= is now insecure_seed="),
        pytest.warns(privada.exceptions.RehearsalWarning),
    ):
        owner = privada.Owner(np.zeros((2, 1)), schema=schema, dataset="rows", budget=budget, rehearsal=1)
    assert not owner.is_private
