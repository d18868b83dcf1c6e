"""A copy verifies as the ledger does, and lacks what came later."""

from __future__ import annotations

from pathlib import Path

import pytest

from privada.exceptions import LedgerError, TamperError
from privada.privacy import Ledger, OwnerKey, Receipt
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian


def test_a_backup_verifies_equally(paid: tuple[Ledger, list[Receipt]], key: OwnerKey, tmp_path: Path) -> None:
    ledger, receipts = paid
    ledger.open_budget("empty", BUDGET)
    ledger.backup(tmp_path / "copy.sqlite")
    with Ledger.open(tmp_path / "copy.sqlite", key) as copy:
        assert copy.verify(receipts) == ledger.verify(receipts)
        assert copy.export() == ledger.export()
        with pytest.raises(LedgerError, match="is a backup that ends at line 5 of 'patients'"):
            copy.charge("patients", gaussian(), question=QUESTION)
    assert not list(tmp_path.glob("*.partial*"))
    (tmp_path / "beside.sqlite.heads").touch()
    with pytest.raises(LedgerError, match="heads exists; a backup never overwrites"):
        ledger.backup(tmp_path / "beside.sqlite")
    with pytest.raises(LedgerError, match="exists; a backup never overwrites"):
        ledger.backup(tmp_path / "copy.sqlite")
    with pytest.raises(LedgerError, match="cannot be made"):
        ledger.backup(tmp_path / "absent" / "copy.sqlite")


def test_a_restored_backup_lacks_later_receipts(opened: Ledger, key: OwnerKey, tmp_path: Path) -> None:
    opened.backup(tmp_path / "copy.sqlite")
    later = opened.charge("patients", gaussian(), question=QUESTION)
    with (
        Ledger.open(tmp_path / "copy.sqlite", key) as copy,
        pytest.raises(TamperError, match="tail was cut off"),
    ):
        copy.verify([later])


def test_a_failed_backup_leaves_no_file(sqlite_place: str, key: OwnerKey, tmp_path: Path) -> None:
    ledger = Ledger.open(sqlite_place, key)
    ledger.close()
    with pytest.raises(LedgerError, match="is closed"):
        ledger.backup(tmp_path / "copy.sqlite")
    assert not list(tmp_path.glob("copy*"))
