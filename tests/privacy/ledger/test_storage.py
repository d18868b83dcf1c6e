"""The storage in memory: what a transaction wrote is taken back if it fails, and nobody else has it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from privada.exceptions import LedgerError
from privada.privacy import Ledger, OwnerKey
from privada.privacy.accounting.filters import open_filter
from privada.privacy.ledger.account import Account
from privada.privacy.ledger.chain import HandOver, following, opening
from privada.privacy.ledger.storage import FAILED, KEPT, OWED, Debt, Memory, absent, open_storage
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian

KEY = OwnerKey.generate()
DEBT = Debt(dataset="patients", question=QUESTION, position=1, tries=1)


@pytest.fixture
def memory() -> Memory:
    storage = Memory()
    storage.prepare(KEY.public, create=True)
    first = opening("patients", Account.opened("patients", open_filter(BUDGET)), KEY)
    with storage.writing() as tables:
        tables.begin(first)
        tables.append(following(first, KEY, kind="charge", cost=7, detail={"a": 1}, question=QUESTION))
        tables.owe(DEBT)
    return storage


def snapshot(storage: Memory) -> object:
    with storage.reading() as tables:
        lines = {name: list(tables.page(name, -1)) for name in tables.names()}
        releases = [tables.release(debt.dataset, debt.question) for debt in tables.debts()]
        found = list(tables.find("patients", question=QUESTION))
        return lines, found, tables.debts(), releases, tables.unlisted(), tables.hand_overs()


def test_a_transaction_that_fails_leaves_nothing(memory: Memory) -> None:
    before = snapshot(memory)
    with pytest.raises(KeyboardInterrupt), memory.writing() as tables:
        head = tables.lock("patients")
        tables.append(following(head, KEY, kind="charge", cost=1, detail={}, question=QUESTION))
        tables.begin(opening("others", Account.opened("others", open_filter(BUDGET)), KEY))
        assert tables.change(DEBT, state=KEPT, release=b"release")
        tables.owe(replace(DEBT, question="cd" * 32))
        tables.count_unlisted("patients", "2026-01-01")
        tables.add_hand_over(HandOver.sign(KEY, OwnerKey.generate()))
        raise KeyboardInterrupt
    assert snapshot(memory) == before


def test_a_debt_changes_only_while_it_is_owed(memory: Memory) -> None:
    with memory.writing() as tables:
        assert tables.change(DEBT, tries=3)
        assert tables.debt("patients", QUESTION) == replace(DEBT, tries=3)
        tables.give_up()
        assert not tables.change(DEBT, state=OWED)
        debt = tables.debt("patients", QUESTION)
        assert debt is not None
        assert (debt.state, debt.tries) == (FAILED, 3)


def test_what_a_caller_does_with_its_own_objects_changes_no_line(memory: Memory) -> None:
    detail = {"text": "ten rows"}
    with memory.writing() as tables:
        tables.append(following(tables.lock("patients"), KEY, kind="disclosure", detail=detail))
        detail["text"] = "no rows"
        assert tables.last("patients").detail == {"text": "ten rows"}
        tables.last("patients").check_seal(KEY.public)


def test_a_ledger_in_memory_loads_no_database() -> None:
    """SQLAlchemy takes longer to import than an estimator takes to fit."""
    code = """if True:
        import sys
        from privada.privacy import Ledger, OwnerKey, PureDP
        with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
            ledger.open_budget("patients", PureDP(epsilon=1, relation="add/remove"))
        assert "sqlalchemy" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_closed_ledger_in_memory_is_gone() -> None:
    ledger = Ledger.open(":memory:", KEY)
    ledger.open_budget("patients", BUDGET)
    ledger.claim("patients")
    ledger.check_available()
    ledger.close()
    with pytest.raises(LedgerError, match="ledger :memory: is closed"):
        ledger.charge("patients", gaussian(), question=QUESTION)


def test_a_place_in_memory_is_named_in_two_ways() -> None:
    assert isinstance(open_storage(":memory:"), Memory)
    assert isinstance(open_storage("sqlite:///:memory:"), Memory)


def test_an_unknown_data_set_is_told_apart_from_a_known_one() -> None:
    assert "it knows 'patients'" in str(absent("patient", ["patients"]))
