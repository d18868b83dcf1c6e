"""A budget that was given is read where it is, and never mistaken for another."""

import pickle

import pytest

from privada import Ledger, OwnerKey, PureDP
from privada.parties.one_process.dataset import GivenBudget, open_ledger

BUDGET = PureDP(epsilon=2, relation="add/remove")
ONCE = PureDP(epsilon=0.5, relation="add/remove")


@pytest.fixture
def place(tmp_path):
    place = tmp_path / "study.db"
    open_budget(place)
    return place


def open_budget(place):
    key = OwnerKey.generate()
    key.save(f"{place}.key")
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", BUDGET)


def charge(ledger):
    from privada import CellStatistics, NearestCells

    question = CellStatistics(tables=(NearestCells(centers=[[0.0]]),), guarantee=ONCE)
    ledger.charge("patients", question.price, question=question.digest)


def test_it_is_read_from_its_place_also_by_another_process(place):
    with open_ledger(place) as ledger:
        given = GivenBudget.of(ledger, "patients", place)
        assert given.read() is None
        given.release_ledger()
    carried = pickle.loads(pickle.dumps(given))
    with open_ledger(str(place)) as ledger:
        charge(ledger)
    assert given.read() == carried.read() == ONCE


def test_what_cannot_be_read_or_is_another_one_is_stated_as_it_was(place):
    with open_ledger(place) as ledger:
        charge(ledger)
        given = GivenBudget.of(ledger, "patients", place)
        given.release_ledger()
    for file in place.parent.glob("study.db*"):
        file.unlink()
    assert given.read() == ONCE
    open_budget(place)
    assert given.read() == ONCE  # and not None, which the new one would say


def test_budgets_of_one_name_are_told_apart():
    key, found = OwnerKey.generate(), set()
    for _ in range(3):
        with Ledger.open(":memory:", key) as ledger:
            for name in ("patients", "doctors"):
                ledger.open_budget(name, BUDGET)
                found.add(GivenBudget.of(ledger, name, ledger).identity)
    assert len(found) == 6
