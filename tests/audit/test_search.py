"""Searches keep the price that they state, seen from outside; planted errors are caught.

Each audit of a sound search fails by chance once in a hundred runs at most.
"""

import numpy as np
import pytest

from privada import CellClassifier
from privada.audit import audit_search
from privada.exceptions import InputError
from privada.model_selection import PrivateSearchCV
from privada.model_selection import search as searching

CENTERS = [[[0.5]], [[0.2], [0.8]]]
pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")


def make(choice, *, epsilon, selection_epsilon, runs=2):
    model = CellClassifier(classes=(0, 1), bounds=(0, 1), epsilon=epsilon)
    return PrivateSearchCV(
        model,
        {"centers": CENTERS},
        selection_epsilon=selection_epsilon,
        choice=choice,
        runs=runs,
        held_out=0.5,
    )


X = np.array([[0.1]] + [[0.15]] * 3 + [[0.85]] * 4)  # of eight rows; the odd one is the first
Y = np.repeat([0, 1], 4)


def hold_out_by_place(self, X, person, fit):
    """Which rows were held out until 0.2: those in places that public randomness drew."""
    units = len(X) if person is None else len(np.unique(person))
    return np.random.default_rng(0).permutation(units) < np.ceil(self.held_out * units)


def sorted_neighbours(size=400):
    """Two files, sorted by their first column, of which one has a first row and the other a last one instead.

    All rows between are in the place before. Their labels are such that by the old rule no row of label 1 is
    held out of the first file.
    """
    held = np.random.default_rng(0).permutation(size) < np.ceil(0.5 * size)
    rank, y = np.linspace(0.01, 0.99, size)[:, None], (~held).astype(int)
    first = np.hstack([rank, np.full((size, 1), 0.5)]), y
    second = np.vstack([first[0][1:], [[1.0, 0.5]]]), np.append(y[1:], y[0])
    return first, second


def make_replaced(choice, epsilon=0.25):
    model = CellClassifier(classes=(0, 1), bounds=(0, 1), epsilon=epsilon, relation="replace-one", size=200)
    centers = [[[0.5, 0.5]], [[0.5, 0.4], [0.5, 0.6]]]
    return PrivateSearchCV(
        model, {"centers": centers}, selection_epsilon=epsilon, choice=choice, runs=2, held_out=0.5
    )


@pytest.mark.statistical
@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_a_search_keeps_its_price(choice):
    search = make(choice, epsilon=2.0, selection_epsilon=2.0)
    found = audit_search(search, (X, Y), (X[1:], Y[1:]), trials=100)
    assert found.passed, str(found)
    assert found.epsilon_claimed == {"exponential": 4.0, "random stopping": 6.0}[choice]


@pytest.mark.statistical
@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_a_search_of_a_sorted_file_keeps_its_price_under_replace_one(choice):
    search = make_replaced(choice)
    found = audit_search(search, *sorted_neighbours(), trials=100)
    assert found.passed, str(found)
    assert found.epsilon_claimed == {"exponential": 0.5, "random stopping": 0.75}[choice]


@pytest.mark.statistical
@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_rows_that_are_held_out_by_their_place_are_caught(monkeypatch, choice):
    monkeypatch.setattr(searching.PrivateSearchCV, "_hold_out", hold_out_by_place)
    found = audit_search(make_replaced(choice), *sorted_neighbours(), trials=100)
    assert not found.passed, str(found)
    assert found.epsilon_lower > 2 * found.epsilon_claimed


@pytest.mark.statistical
def test_runs_that_cost_more_than_is_charged_are_caught(monkeypatch):
    uncharged = searching._uncharged
    monkeypatch.setattr(searching, "_uncharged", lambda model: uncharged(model).set_params(epsilon=30.0))
    search = make("random stopping", epsilon=0.1, selection_epsilon=0.1, runs=1)
    search.set_params(held_out=0.01)  # else the secret division hides the odd row well enough
    found = audit_search(search, (X, Y), (X[1:], Y[1:]), trials=100)
    assert not found.passed, str(found)
    assert found.epsilon_lower > 3 * found.epsilon_claimed


@pytest.mark.statistical
def test_rows_that_decide_where_others_go_are_caught(monkeypatch):
    """An error that somebody could make: one row more, and all others change sides."""

    def by_number(self, X, person, fit):
        return (np.arange(len(X)) < len(X) // 2) == (len(X) % 2 == 0)

    monkeypatch.setattr(searching.PrivateSearchCV, "_hold_out", by_number)
    X = np.vstack([np.full((150, 1), 0.1), np.full((150, 1), 0.9)])
    y = np.repeat([0, 1], 150)
    search = make("exponential", epsilon=0.1, selection_epsilon=0.1)
    found = audit_search(search, (X, y), (X[1:], y[1:]), trials=100)
    assert not found.passed, str(found)


def test_a_search_on_public_rows_has_nothing_to_lose():
    rows = np.zeros((2, 1)), [0, 1]
    search = PrivateSearchCV(CellClassifier(classes=(0, 1)), {"centers": CENTERS}, public=rows)
    with pytest.raises(InputError, match="loses nothing"):
        audit_search(search, rows, (rows[0][:1], [0]))
