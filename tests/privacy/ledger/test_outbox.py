"""A charged question is owed an answer; what is kept is delivered, and only that."""

import dp_accounting
import pytest
import sqlalchemy

from privada.exceptions import AnswerError, LedgerError, TamperError
from privada.privacy import ZCDP, Ledger, Price
from privada.privacy.ledger.storage import FAILED, KEPT, MOST_TRIES, OWED
from privada.privacy.ledger.tables import Tables

QUESTION = "ab" * 32
BUDGET = ZCDP(rho=0.5, relation="add/remove")
PRICE = Price(event=dp_accounting.GaussianDpEvent(5.0), guarantee=ZCDP(rho=0.02, relation="add/remove"))


@pytest.fixture
def opened(ledger):
    ledger.open_budget("patients", BUDGET)
    return ledger


def owe(ledger, question=QUESTION):
    return ledger.charge_once("patients", PRICE, question=question)[0]


def test_what_is_kept_is_found_by_another_process(opened, place, key):
    opened.keep(owe(opened), b"release")
    with Ledger.open(place, key) as other:
        assert other.debt("patients", QUESTION).state == KEPT
        assert other.kept("patients", QUESTION) == b"release"
        assert other.kept("patients", "cd" * 32) is None


def test_the_first_release_stays(opened):
    debt = owe(opened)
    assert opened.keep(debt, b"first") == b"first"
    assert opened.keep(debt, b"second") == b"first"
    assert opened.kept("patients", QUESTION) == b"first"


def test_what_failed_on_the_rows_has_failed_for_good(opened):
    debt = owe(opened)
    opened.fail(debt)
    assert owe(opened).state == FAILED
    with pytest.raises(AnswerError):
        opened.keep(debt, b"late")
    assert opened.kept("patients", QUESTION) is None


def test_an_answer_that_ends_its_process_each_time_is_given_up(opened):
    states = [owe(opened).state for _ in range(MOST_TRIES + 2)]
    assert states == [OWED] * MOST_TRIES + [FAILED] * 2
    assert len([line for line in opened.lines("patients") if line.kind == "charge"]) == 1


def test_a_release_that_cannot_be_kept_costs_no_try(opened, monkeypatch):
    debt = owe(opened)
    change = Tables.change

    def fail_to_keep(tables, debt, *, release=None, **more):
        if release is not None:
            raise LedgerError("the disk is full")
        return change(tables, debt, **more)

    monkeypatch.setattr(Tables, "change", fail_to_keep)
    with pytest.raises(LedgerError, match="full"):
        opened.keep(debt, b"release")
    monkeypatch.undo()
    again = owe(opened)
    assert (again.state, again.tries) == (OWED, debt.tries)
    opened.keep(again, b"release")


def test_a_debt_without_its_line_is_found_when_the_ledger_is_opened(opened, place, key):
    owe(opened)
    opened.close()
    engine = sqlalchemy.create_engine(
        place if "://" in place else f"sqlite:///{place}", poolclass=sqlalchemy.pool.NullPool
    )
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE answers SET position = 7")
    with pytest.raises(TamperError, match="Line 7 of 'patients', which paid"):
        Ledger.open(place, key)


def test_a_disk_without_room_is_known_before_a_charge(tmp_path, key, monkeypatch):
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    with Ledger.open(tmp_path / "ledger.sqlite", key) as ledger:
        ledger.check_room(1000)
        monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**9, 10**9 - 2_000_000, 2_000_000))
        ledger.check_room(1000)
        with pytest.raises(LedgerError, match="Nothing was charged"):
            ledger.check_room(1_000_000)
