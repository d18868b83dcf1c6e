"""Many threads and processes at once, and processes that are killed."""

from __future__ import annotations

import threading
from pathlib import Path

from privada.exceptions import BudgetError
from privada.privacy import ZCDP, Ledger, OwnerKey, Receipt
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, receipts_of, worker


def test_a_hundred_processes_never_overspend(place: str, key: OwnerKey, key_file: Path) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", ZCDP(rho=0.15, relation="add/remove"))
        said = worker("askers", place, key_file, 100)
        receipts = receipts_of(said)
        assert (len(said), len(receipts)) == (300, 150)
        assert len({receipt.index for receipt in receipts}) == 150
        assert ledger.verify(receipts).lines == 151
        assert ledger.remaining("patients").share == 0


def test_many_processes_may_make_the_ledger(place: str, key: OwnerKey, key_file: Path) -> None:
    receipts = receipts_of(worker("founders", place, key_file, 10))
    assert len(set(receipts)) == 1
    with Ledger.open(place, key) as ledger:
        assert ledger.verify(receipts).lines == 1


def test_threads_share_a_ledger(opened: Ledger) -> None:
    granted: list[Receipt] = []
    refused: list[BudgetError] = []

    def ask() -> None:
        for _ in range(10):
            try:
                granted.append(opened.charge("patients", gaussian(5), question=QUESTION))
            except BudgetError as error:
                refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(granted), len(refused)) == (25, 55)
    assert opened.verify(granted).lines == 26


def test_a_forked_process_goes_on_with_the_ledger(place: str, key: OwnerKey, key_file: Path) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
        receipts = receipts_of(worker("heirs", place, key_file, 5))
        assert len(receipts) == 8
        assert ledger.verify(receipts).lines == 9


def test_a_ledger_in_memory_stays_in_its_process(key_file: Path) -> None:
    said = worker("memory", "", key_file, 0)
    assert [list(line) for line in said] == [["error"], ["receipt"]]
    assert "memory of another process" in said[0]["error"]


def test_kill_loses_nothing_that_was_promised(sqlite_place: str, key: OwnerKey, key_file: Path) -> None:
    with Ledger.open(sqlite_place, key) as ledger:
        ledger.open_budget("patients", ZCDP(rho=1000, relation="add/remove"))
    receipts = receipts_of(worker("killed", sqlite_place, key_file, 200))
    with Ledger.open(sqlite_place, key) as ledger:
        found = ledger.verify(receipts)
        assert len(receipts) > 200
        assert (
            len(receipts) <= found.lines - 1 <= len(receipts) + 200
        )  # each kill may leave one paid line untold
        ledger.charge("patients", gaussian(), question=QUESTION)
