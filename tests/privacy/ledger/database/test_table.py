"""Lines are read by pages, in order, and what is gone is named."""

import pytest

from privada.exceptions import BudgetError, TamperError
from privada.privacy.ledger.database import table
from tests.privacy.ledger.cases import QUESTION, gaussian, tampering


@pytest.mark.parametrize("extra", [0, 1])
def test_pages_hold_every_line_once(opened, monkeypatch, extra):
    """Also when the last page is full."""
    for _ in range(5 + extra):
        opened.charge("patients", gaussian(20), question=QUESTION)
    monkeypatch.setattr(table, "_AFTER", table._AFTER.limit(3))
    monkeypatch.setattr(table, "_PAGE", 3)
    assert [line.index for line in table.every(opened._store, "patients")] == list(range(6 + extra))
    with opened._store.reading() as connection:
        assert table.last(connection, "patients").index == 5 + extra
        assert table.at(connection, "patients", 2).index == 2
        assert table.at(connection, "patients", 99) is None
        assert table.first(connection, "nobody") is None


def test_lines_that_are_gone_are_named(opened, place):
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
    with opened._store.reading() as connection:
        assert table.names(connection) == ["patients"]
        assert table.names_in_lines(connection) == []
        with pytest.raises(TamperError, match="lines of 'patients' are gone"):
            table.last(connection, "patients")


def test_an_unknown_data_set_is_told_apart_from_a_known_one(opened):
    assert "it knows 'patients'" in str(table.absent("patient", ["patients"]))
    with opened._store.writing() as connection, pytest.raises(BudgetError, match="is absent"):
        table.locked_last(connection, "nobody")
