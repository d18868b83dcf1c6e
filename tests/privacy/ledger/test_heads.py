"""An owner remembers where its chains ended: a ledger that lost lines is not answered from."""

import random
import shutil

import dp_accounting
import pytest

from privada.exceptions import LedgerError, TamperError
from privada.privacy import ZCDP, Ledger, Price

QUESTION = "ab" * 32
BUDGET = ZCDP(rho=0.5, relation="add/remove")
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
