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
Y = np.repeat([0, 1], 4)
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


def rows_on(side, search):
    """Eight rows of which every second is held out; the odd one is the first, on the side that is named."""
    values = np.linspace(0.001, 0.199, 4000)[:, None]
    held = search._hold_out(values, search.price())
    found = {"held out": values[held], "fitted": values[~held]}
    low = np.vstack([found[side][:1], found["held out"][1:3], found["fitted"][1:2]])
    return np.vstack([low, 1 - low[1:], low[:1]]), Y


@pytest.mark.statistical
@pytest.mark.parametrize(("choice", "side"), [("exponential", "held out"), ("random stopping", "fitted")])
def test_a_search_keeps_its_price(choice, side):
    search = make(choice, epsilon=2.0, selection_epsilon=2.0)
    X, y = rows_on(side, search)
    found = audit_search(search, (X, y), (X[1:], y[1:]), trials=100)
    assert found.passed, str(found)
    assert found.epsilon_claimed == {"exponential": 4.0, "random stopping": 6.0}[choice]


@pytest.mark.statistical
def test_runs_that_cost_more_than_is_charged_are_caught(monkeypatch):
    uncharged = searching._uncharged
    monkeypatch.setattr(searching, "_uncharged", lambda model: uncharged(model).set_params(epsilon=30.0))
    search = make("random stopping", epsilon=0.1, selection_epsilon=0.1, runs=1)
    X, y = rows_on("fitted", search)
    found = audit_search(search, (X, y), (X[1:], y[1:]), trials=100)
    assert not found.passed, str(found)
    assert found.epsilon_lower > 3 * found.epsilon_claimed


@pytest.mark.statistical
def test_rows_that_decide_where_others_go_are_caught(monkeypatch):
    """An error that somebody could make: one row more, and all others change sides."""

    def by_number(self, units, fit):
        return (np.arange(len(units)) < len(units) // 2) == (len(units) % 2 == 0)

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
