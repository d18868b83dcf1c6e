"""Lines are read by pages, in order, and what is gone is named."""

import pytest

from privada.exceptions import BudgetError, TamperError
from privada.privacy.ledger import tables as module
from privada.privacy.ledger.storage import absent
from tests.privacy.ledger.cases import QUESTION, gaussian, tampering


@pytest.mark.parametrize("extra", [0, 1])
def test_pages_hold_every_line_once(opened, monkeypatch, extra):
    """Also when the last page is full."""
    for _ in range(5 + extra):
        opened.charge("patients", gaussian(20), question=QUESTION)
    monkeypatch.setattr(module, "_PAGE", 3)
    assert [line.index for line in opened.lines("patients")] == list(range(6 + extra))
    with opened._storage.reading() as tables:
        assert [line.index for line in tables.find("patients")] == list(range(6 + extra))
        assert tables.last("patients").index == 5 + extra
        assert tables.line("patients", 2).index == 2
        assert tables.line("patients", 99) is None
        assert tables.line("nobody", 0) is None


def test_lines_that_are_gone_are_named(opened, place):
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
    with opened._storage.reading() as tables:
        assert tables.names() == ["patients"]
        assert tables.names_in_lines() == []
        with pytest.raises(TamperError, match="lines of 'patients' are gone"):
            tables.last("patients")


def test_an_unknown_data_set_is_told_apart_from_a_known_one(opened):
    assert "it knows 'patients'" in str(absent("patient", ["patients"]))
    with opened._storage.writing() as tables, pytest.raises(BudgetError, match="is absent"):
        tables.lock("nobody")
