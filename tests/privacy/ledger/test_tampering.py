"""Whatever is edited, cut off or rewritten is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from privada.exceptions import TamperError
from privada.privacy import Ledger, OwnerKey, Receipt
from privada.privacy.ledger.chain import Line
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, insert, rewritten, tampering


def test_verification_counts(paid: tuple[Ledger, list[Receipt]]) -> None:
    ledger, receipts = paid
    found = ledger.verify(receipts)
    assert (found.datasets, found.lines, found.receipts) == (1, 6, 5)
    assert found.heads == {"patients": receipts[-1].head}
    assert "data sets: 1, lines: 6, receipts: 5" in str(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE lines SET cost = 0, spent = 0 WHERE position = 3", "Line 3 of 'patients' was edited"),
        ("UPDATE lines SET question = 'cd' WHERE position = 2", "Line 2 of 'patients' was edited"),
        ("UPDATE lines SET time = '2020' WHERE position = 5", "Line 5 of 'patients' was edited"),
        ("UPDATE lines SET purpose = 'other' WHERE position = 1", "Line 1 of 'patients' was edited"),
        ("UPDATE lines SET detail = 'no json' WHERE position = 4", "Line 4 of 'patients' was edited"),
        (
            "UPDATE lines SET detail = replace(detail, '0.5', '0.9') WHERE position = 0",
            "Line 0 of 'patients' was edited",
        ),
        ("UPDATE lines SET signature = '00' WHERE position = 4", "Line 4 of 'patients' was not signed"),
        ("DELETE FROM lines WHERE position = 3", "Line 3 of 'patients' is missing"),
        ("DELETE FROM lines WHERE position = 0", "Line 0 of 'patients' is missing"),
        ("DELETE FROM lines", "lines of 'patients' are gone"),
    ],
)
def test_an_edit_is_found(paid: tuple[Ledger, list[Receipt]], place: str, change: str, said: str) -> None:
    with tampering(place) as connection:
        connection.exec_driver_sql(change)
    with pytest.raises(TamperError, match=said):
        paid[0].verify()


def test_a_cut_tail_is_found_by_a_receipt(paid: tuple[Ledger, list[Receipt]], place: str) -> None:
    ledger, receipts = paid
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines WHERE position > 3")
    assert ledger.verify(receipts[:3]).lines == 4
    with pytest.raises(TamperError, match="Line 5 of 'patients' has a receipt, but the chain ends at line 3"):
        ledger.verify(receipts)


def test_a_vanished_data_set_is_found_by_a_receipt(paid: tuple[Ledger, list[Receipt]], place: str) -> None:
    ledger, receipts = paid
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
        connection.exec_driver_sql("DELETE FROM datasets")
    assert ledger.verify().datasets == 0
    with pytest.raises(TamperError, match="'patients', of which the ledger knows nothing"):
        ledger.verify(receipts)


def cheaper(line: Line) -> Line:
    """Every charge for half the grains."""
    return replace(line, cost=line.cost // 2, spent=line.spent // 2)


def swapped(line: Line) -> Line:
    """Charges that are consistent, but not the ones that were made."""
    return replace(line, question="cd" * 32) if line.index else line


@pytest.mark.parametrize(
    ("own", "change", "said"),
    [
        (False, swapped, "Line 0 of 'patients' was not signed by the owner: the chain was rewritten"),
        (True, swapped, "Line 1 of 'patients' is not the one that its receipt was given for"),
        (True, cheaper, r"Line 1 of 'patients' cost \d+ grains; its price comes to \d+"),
        (
            True,
            lambda line: replace(line, spent=line.spent + line.index),
            "Line 1 of 'patients' has a wrong sum",
        ),
        (
            True,
            lambda line: replace(line, kind="budget"),
            "Line 1 of 'patients' opens the budget a second time",
        ),
        (True, lambda line: replace(line, kind="charge"), "Line 0 of 'patients' does not open a budget"),
        (True, lambda line: replace(line, detail={}), "Line 0 of 'patients' holds no budget"),
        (
            True,
            lambda line: replace(line, detail=line.detail if line.index == 0 else {"event": {"type": "os"}}),
            "Line 1 of 'patients' holds no price",
        ),
        (
            True,
            lambda line: (
                replace(line, detail=line.detail | {"capacity": 10**18}) if line.index == 0 else line
            ),
            "Line 0 of 'patients' states a capacity",
        ),
        (
            True,
            lambda line: (
                replace(
                    line,
                    detail=line.detail | {"budget": replace(BUDGET, rho=0.1).to_dict(), "capacity": 10**14},
                )
                if line.index == 0
                else line
            ),
            "Line 4 of 'patients' passes the budget",
        ),
    ],
)
def test_a_chain_that_was_written_anew_is_found(
    paid: tuple[Ledger, list[Receipt]],
    place: str,
    key: OwnerKey,
    own: bool,
    change: Callable[[Line], Line],
    said: str,
) -> None:
    ledger, receipts = paid
    chain = rewritten(list(ledger.lines("patients")), key if own else OwnerKey.generate(), change)
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
        for line in chain:
            insert(connection, line)
    with pytest.raises(TamperError, match=said):
        ledger.verify(receipts if change is swapped else ())


def test_a_forged_or_foreign_receipt_is_found(paid: tuple[Ledger, list[Receipt]]) -> None:
    ledger, receipts = paid
    with pytest.raises(TamperError, match="was changed"):
        ledger.verify([replace(receipts[0], index=2)])
    with Ledger.open(":memory:", OwnerKey.generate()) as other:
        foreign = other.open_budget("patients", BUDGET)
    with pytest.raises(TamperError, match="another owner"):
        ledger.verify([foreign])


def test_a_broken_link_is_found(paid: tuple[Ledger, list[Receipt]], place: str, key: OwnerKey) -> None:
    ledger, _ = paid
    lines = list(ledger.lines("patients"))
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines WHERE position = 5")
        insert(connection, replace(lines[5], previous=lines[3].digest).sealed(key))
    with pytest.raises(TamperError, match="Line 5 of 'patients' does not follow from the line before it"):
        ledger.verify()


def test_nothing_is_charged_after_an_edited_line(paid: tuple[Ledger, list[Receipt]], place: str) -> None:
    ledger, _ = paid
    with tampering(place) as connection:
        connection.exec_driver_sql("UPDATE lines SET cost = 0, spent = 0 WHERE position = 5")
    with pytest.raises(TamperError, match="Line 5 of 'patients' was edited"):
        ledger.charge("patients", gaussian(), question=QUESTION)
    assert len(list(ledger.lines("patients"))) == 6
