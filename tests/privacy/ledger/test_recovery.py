"""A ledger that lost lines is noticed, a backup verifies as it does, and no lost charge is spent again."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import dp_accounting
import pytest

from privada.exceptions import BudgetError, LedgerError, TamperError
from privada.privacy import ZCDP, Ledger, OwnerKey, Price, Receipt
from privada.privacy.accounting.filters import Allowance
from privada.privacy.asker import Asker
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, grains, tampering

PRICE = Price(event=dp_accounting.GaussianDpEvent(5.0), guarantee=ZCDP(rho=0.02, relation="add/remove"))


@pytest.fixture
def spent(tmp_path, key):
    """The folder of a ledger as a crash leaves it: six charges, of which some are in the log alone."""
    place = tmp_path / "at work" / "ledger.sqlite"
    place.parent.mkdir()
    ledger = Ledger.open(place, key)
    ledger.open_budget("patients", BUDGET)
    for _ in range(6):
        ledger.charge("patients", PRICE, question=QUESTION)
    crashed = shutil.copytree(place.parent, tmp_path / "crashed")
    ledger.close()
    return crashed / "ledger.sqlite"


def test_a_whole_ledger_opens(spent, key):
    with Ledger.open(spent, key) as ledger:
        assert ledger.verify().lines == 7


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_log_is_found(spent, key, seed):
    """Cut or changed anywhere, SQLite takes the log's valid beginning for all there is."""
    log, rng = spent.with_name("ledger.sqlite-wal"), random.Random(seed)
    blob = bytearray(log.read_bytes())
    assert len(blob) > 10_000
    at = rng.randrange(len(blob))
    if seed % 2:
        del blob[at:]
    else:
        blob[at] ^= 0xFF
    log.write_bytes(blob)
    spent.with_name("ledger.sqlite-shm").unlink(missing_ok=True)
    try:
        with Ledger.open(spent, key) as ledger:
            lines = ledger.verify().lines
    except LedgerError:
        return
    assert lines == 7, "what was damaged was not needed: nothing is lost"


def test_a_deleted_log_and_an_older_copy_are_found(spent, key, tmp_path):
    with Ledger.open(spent, key) as ledger:
        ledger.backup(tmp_path / "backup.sqlite")
        ledger.charge("patients", PRICE, question=QUESTION)
    shutil.copy(tmp_path / "backup.sqlite", spent)
    for log in ("-wal", "-shm"):
        spent.with_name(spent.name + log).unlink(missing_ok=True)
    with pytest.raises(TamperError, match="Line 7 of 'patients' was written and is missing now"):
        Ledger.open(spent, key)


def test_a_new_ledger_in_a_lost_ones_place_is_found(spent, key):
    for file in (spent, spent.with_name("ledger.sqlite-wal"), spent.with_name("ledger.sqlite-shm")):
        file.unlink(missing_ok=True)
    with pytest.raises(TamperError, match="Restore the newest copy"):
        Ledger.open(spent, key)


def test_a_note_that_was_written_half_is_passed_over(spent, key):
    heads = spent.with_name("ledger.sqlite.heads")
    heads.write_bytes(heads.read_bytes() + b'{"dataset":"patients","ind')
    with Ledger.open(spent, key) as ledger:
        ledger.charge("patients", PRICE, question=QUESTION)
    with Ledger.open(spent, key) as ledger:
        assert ledger.verify().lines == 8


@pytest.mark.postgres
def test_heads_beside_a_server(postgres_place, key, tmp_path):
    heads = tmp_path / "ledger.heads"
    with Ledger.open(postgres_place, key, heads=heads) as ledger:
        ledger.open_budget("patients", BUDGET)
    heads.write_text(heads.read_text().replace('"index":0', '"index":5'))
    with pytest.raises(TamperError, match="Line 5"):
        Ledger.open(postgres_place, key, heads=heads)


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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def lost(home: Path, key: OwnerKey) -> list[Receipt]:
    """Two of three charges came after the backup; the receipts are those of all."""
    with Ledger.open(home / "ledger.sqlite", key) as ledger:
        ledger.open_budget("patients", BUDGET)
        first = ledger.charge("patients", gaussian(), question=QUESTION)
        ledger.backup(home / "backup.sqlite")
        return [first, *(ledger.charge("patients", gaussian(), question=QUESTION) for _ in range(2))]


def put_back(home: Path, *, heads: bool) -> Path:
    """The backup in the ledger's place; with its own record of heads, or with that of the lost ledger."""
    place = home / "ledger.sqlite"
    for end in ("-wal", "-shm"):
        place.with_name(place.name + end).unlink(missing_ok=True)
    shutil.copy(home / "backup.sqlite", place)
    if heads:
        shutil.copy(home / "backup.sqlite.heads", f"{place}.heads")
    return place


def spend(place: Path, key: OwnerKey) -> int:
    """How many questions are still answered."""
    answered = 0
    with Ledger.open(place, key, create=False) as ledger:
        ledger.check_budget("patients", BUDGET)
        try:
            while True:
                ledger.charge("patients", gaussian(), question=QUESTION)
                answered += 1
        except BudgetError:
            return answered


@pytest.mark.parametrize("heads", ["none", "the backup's", "the lost ledger's"])
def test_no_restored_ledger_is_charged_before_somebody_says_what_is_missing(
    home: Path, key: OwnerKey, lost: list[Receipt], heads: str
) -> None:
    place = put_back(home, heads=heads == "the backup's")
    if heads == "none":
        Path(f"{place}.heads").unlink()
    with pytest.raises(LedgerError, match="privada ledger restore"):
        spend(place, key)


def test_lost_charges_that_were_recorded_count_as_spent(
    home: Path, key: OwnerKey, lost: list[Receipt]
) -> None:
    place = put_back(home, heads=False)
    with pytest.raises(LedgerError, match="it is not true that nothing was lost"):
        Ledger.restore(place, key, by="Ada", lost="nothing")
    (line,) = Ledger.restore(place, key, by="Ada")
    assert (line.index, line.approver, line.kind) == (4, "Ada", "restore")
    with Ledger.open(place, key) as ledger:
        assert ledger.verify(lost).lines == 3
        assert grains(ledger) == 3 * line.cost / 2
    assert spend(place, key) == 1, "four questions exhaust the budget, and three were answered"
    assert Ledger.restore(place, key, by="Ada") == [], "nothing is missing any more"
    with Ledger.open(place, key) as ledger:
        assert ledger.verify(lost).receipts == 3


def test_what_nobody_recorded_is_stated_or_closes_the_budget(
    home: Path, key: OwnerKey, lost: list[Receipt]
) -> None:
    place = put_back(home, heads=True)
    with pytest.raises(LedgerError, match="Nobody recorded what was written after line 1"):
        Ledger.restore(place, key, by="Ada")
    with pytest.raises(LedgerError, match="Lines up to 3 of 'patients' were written"):
        Ledger.restore(place, key, by="Ada", lost="nothing", receipts=lost)
    stranger = OwnerKey.generate()
    with pytest.raises(LedgerError):
        Ledger.restore(place, stranger, by="Ada", lost="nothing")
    Ledger.restore(place, key, by="Ada", lost="everything", receipts=lost)
    assert spend(place, key) == 0
    with Ledger.open(place, key) as ledger:
        assert ledger.verify(lost).receipts == 3
        assert [line.index for line in ledger.lines("patients")] == [0, 1, 4]


def test_a_statement_that_nothing_was_lost_is_on_the_chain_and_receipts_disprove_it(
    home: Path, key: OwnerKey, lost: list[Receipt]
) -> None:
    place = put_back(home, heads=True)
    (line,) = Ledger.restore(place, key, by="Ada", lost="nothing", receipts=lost[:1])
    assert line.detail["text"] == "Ada: nothing was written after line 1 of the copy"
    with Ledger.open(place, key) as ledger, pytest.raises(TamperError, match="the chain was rewritten"):
        ledger.verify(lost)


def test_a_copy_that_is_older_than_a_budget_is_not_continued(home: Path, key: OwnerKey) -> None:
    with Ledger.open(home / "ledger.sqlite", key) as ledger:
        ledger.backup(home / "backup.sqlite")
        ledger.open_budget("patients", BUDGET)
    with pytest.raises(LedgerError, match="older than the budget of 'patients'"):
        Ledger.restore(put_back(home, heads=False), key, by="Ada", lost="nothing")


def test_lost_charges_count_in_every_allowance(home: Path, key: OwnerKey) -> None:
    part = Allowance.of("bob", "ab" * 32, ZCDP(rho=0.25, relation="add/remove"), accounting="zcdp")
    asked = {"question": QUESTION, "asker": Asker("bob", "ab" * 32), "allowance": part}
    with Ledger.open(home / "ledger.sqlite", key) as ledger:
        ledger.open_budget("patients", BUDGET)
        ledger.declare("patients", part)
        ledger.backup(home / "backup.sqlite")
        ledger.charge("patients", gaussian(), **asked)
        ledger.charge("patients", gaussian(), **asked)
    place = put_back(home, heads=False)
    Ledger.restore(place, key, by="Ada")
    with (
        Ledger.open(place, key) as ledger,
        pytest.raises(BudgetError, match="allowance of 'bob' does not allow it"),
    ):
        ledger.charge("patients", gaussian(), **asked)


def test_a_gap_without_its_line_is_found(home: Path, key: OwnerKey, lost: list[Receipt]) -> None:
    place = put_back(home, heads=False)
    Ledger.restore(place, key, by="Ada")
    with tampering(str(place)) as connection:
        connection.exec_driver_sql("UPDATE lines SET kind = 'disclosure' WHERE position = 4")
    with Ledger.open(place, key) as ledger, pytest.raises(TamperError, match="Line 2 of 'patients'"):
        ledger.verify()


def test_a_ledger_that_lost_lines_is_not_backed_up(home: Path, key: OwnerKey, lost: list[Receipt]) -> None:
    """The notes are read before the copy and compared with it."""
    with Ledger.open(home / "ledger.sqlite", key) as ledger:
        with tampering(str(home / "ledger.sqlite")) as connection:
            connection.exec_driver_sql("DELETE FROM lines WHERE position = 3")
        with pytest.raises(TamperError, match="Line 3 of 'patients' was written and is not in the ledger"):
            ledger.backup(home / "later.sqlite")
    assert not list(home.glob("later*"))


def test_a_chain_that_was_begun_when_its_process_ended_is_not_taken_for_a_restored_one(
    home: Path, key: OwnerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the commit of line 0 and its note, a process may end."""
    with Ledger.open(home / "ledger.sqlite", key) as ledger:
        monkeypatch.setattr("privada.privacy.ledger.recovery.Heads.remember", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ledger.open_budget("patients", BUDGET)
    monkeypatch.undo()
    assert spend(home / "ledger.sqlite", key) == 4


def test_a_fork_of_the_chain_is_counted_from_where_it_began(
    home: Path, key: OwnerKey, lost: list[Receipt]
) -> None:
    """A copy was answered from without its record, as earlier versions allowed, and the record is back."""
    place = home / "ledger.sqlite"
    recorded = Path(f"{place}.heads").read_bytes()
    put_back(home, heads=True)
    Ledger.restore(place, key, by="Ada", lost="nothing")
    with Ledger.open(place, key) as ledger:
        receipt = ledger.charge("patients", gaussian(4), question=QUESTION)
        (_, paid, *_) = ledger.lines("patients")
    Path(f"{place}.heads").write_bytes(recorded)
    with pytest.raises(TamperError, match="Line 3 of 'patients' was written and is another one"):
        Ledger.open(place, key)
    (line,) = Ledger.restore(place, key, by="Ada")
    assert line.index == 4
    assert line.cost == 2 * paid.cost, "both lost charges, and none of the others"
    with Ledger.open(place, key) as ledger:
        assert ledger.verify([lost[0], receipt]).lines == 5


@pytest.mark.postgres
def test_a_ledger_on_a_server_is_not_charged_without_its_record(
    postgres_place: str, key: OwnerKey, tmp_path: Path
) -> None:
    heads = tmp_path / "ledger.heads"
    with Ledger.open(postgres_place, key, heads=heads) as ledger:
        ledger.open_budget("patients", BUDGET)
        ledger.charge("patients", gaussian(), question=QUESTION)
        ledger.backup(tmp_path / "copy.sqlite")
    assert Path(tmp_path / "copy.sqlite.heads").stat().st_mode & 0o777 == 0o600
    recorded = heads.read_text()
    heads.unlink()
    with Ledger.open(postgres_place, key, heads=heads) as ledger:
        assert ledger.verify().lines == 2
        with pytest.raises(LedgerError, match="ledger.heads does not say where they end"):
            ledger.charge("patients", gaussian(), question=QUESTION)
        with pytest.raises(LedgerError, match="does not say where they end"):
            ledger.open_budget("others", BUDGET)
    heads.write_text(recorded.replace('"index":1', '"index":2'))
    (line,) = Ledger.restore(postgres_place, key, by="Ada", heads=heads)
    assert line.index == 3
    with Ledger.open(postgres_place, key, heads=heads) as ledger:
        ledger.charge("patients", gaussian(), question=QUESTION)
        assert ledger.verify().lines == 4
