"""Errors: the tree that is drawn, bounded messages, and what callers may catch."""

import pickle

import pytest

from privada import exceptions
from privada._text import (
    LONGEST_MESSAGE,
)


def test_the_error_tree_is_the_one_drawn():
    for name in exceptions.__all__:
        assert name in exceptions.__doc__, f"{name} is missing from the drawing"
        assert issubclass(getattr(exceptions, name), (exceptions.PrivadaError, exceptions.PrivadaWarning))


def test_the_drawing_shows_who_is_whose_child():
    drawn = [line for line in exceptions.__doc__.splitlines() if "──" in line]
    above = {4: "PrivadaError"}
    for line in drawn:
        depth, name = line.index("──") + 3, line.split("──")[1].split()[0]
        parent = (
            above[depth - 4] if name not in ("PrivacyLeakWarning", "RehearsalWarning") else "PrivadaWarning"
        )
        assert getattr(exceptions, parent) in getattr(exceptions, name).__bases__, line
        above[depth] = name


@pytest.mark.parametrize("name", ["InputError", "SchemaError", "BoundsError", "StudyError", "RelationError"])
def test_wrong_parameters_are_value_errors(name):
    assert issubclass(getattr(exceptions, name), ValueError)


@pytest.mark.parametrize("name", ["BudgetError", "PolicyError", "AnswerError", "Waiting", "TamperError"])
def test_what_an_owner_decides_is_no_value_error(name):
    assert not issubclass(getattr(exceptions, name), ValueError)


def test_parts_that_are_no_text_are_kept():
    assert exceptions.PrivadaError("text", 7).args == ("text", 7)


def test_every_error_is_bounded():
    kinds = [kind for kind in vars(exceptions).values() if isinstance(kind, type)]
    for kind in (kind for kind in kinds if issubclass(kind, exceptions.PrivadaError)):
        error = kind("x" * 10**6 + " Nothing was charged.")
        assert len(str(error)) == LONGEST_MESSAGE
        assert str(error).endswith("Nothing was charged.")
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
