"""A ledger belongs to its user alone: others could put an older one in its place."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from privada.exceptions import LedgerError
from privada.privacy import Ledger, OwnerKey
from privada.privacy.ledger.database import open_database
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, tampering


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_ledger_that_others_can_write_is_refused(key, tmp_path, end, mode):
    place = tmp_path / "ledger.sqlite"
    Ledger.open(place, key).close()
    for name in (place.name, *((place.name + end,) if end else ())):
        (tmp_path / name).touch(mode=0o600)
    (tmp_path / (place.name + end)).chmod(mode)
    with pytest.raises(LedgerError, match=rf"ledger.sqlite{end} is open to other users; run chmod 600 on it"):
        Ledger.open(place, key)
    (tmp_path / (place.name + end)).chmod(0o600)
    Ledger.open(place, key).close()


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_a_ledger_in_a_folder_that_everybody_can_write_is_refused(key, tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    Ledger.open(folder / "ledger.sqlite", key).close()
    folder.chmod(0o777)
    with pytest.raises(LedgerError, match="folder of the ledger .* is open to other users"):
        Ledger.open(folder / "ledger.sqlite", key)
    folder.chmod(0o1777)  # as /tmp: names there belong to whoever made them
    Ledger.open(folder / "ledger.sqlite", key).close()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_write_ahead_log_of_another_user_is_refused(key, tmp_path):
    Ledger.open(tmp_path / "ledger.sqlite", key).close()
    log = tmp_path / "ledger.sqlite-wal"
    log.touch(mode=0o600)
    os.chown(log, 65534, 65534)
    with pytest.raises(LedgerError, match="ledger.sqlite-wal is open to other users"):
        Ledger.open(tmp_path / "ledger.sqlite", key)


def test_a_fresh_ledger_is_its_users_own(key, tmp_path):
    before = os.umask(0)
    try:
        with Ledger.open(tmp_path / "ledger.sqlite", key) as ledger:
            ledger.datasets()
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes
    assert set(modes.values()) == {0o600}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_data_set_is_free_again_although_a_forked_process_lives_on(tmp_path):
    at = open_database(tmp_path / "ledger.sqlite")
    with at.alone("patients"):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        started = time.monotonic()
        with at.alone("patients"):
            assert time.monotonic() - started < 30
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_one_data_set_does_not_wait_for_another(tmp_path):
    at = open_database(tmp_path / "ledger.sqlite")
    with at.alone("patients"), at.alone("others"):
        waiting = threading.Thread(target=lambda: at.alone("patients").__enter__(), daemon=True)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()


def test_another_database_is_not_a_ledger(place: str, key: OwnerKey) -> None:
    if "://" not in place:
        Path(place).touch()
    with tampering(place) as connection:
        connection.exec_driver_sql("CREATE TABLE schema_version (version INTEGER)")
    with pytest.raises(LedgerError, match="a database, but not a ledger"):
        Ledger.open(place, key)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, key: OwnerKey) -> None:
    wrong = tmp_path / "notes.txt"
    wrong.write_bytes(b"these are only my notes of the day\n" * 100)
    with pytest.raises(LedgerError, match=r"notes.txt is not a ledger"):
        Ledger.open(wrong, key)
    with pytest.raises(LedgerError, match="is not a file"):
        Ledger.open(tmp_path, key)
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger.open(tmp_path / "absent" / "ledger.sqlite", key)


def test_a_corrupt_file_is_named(sqlite_place: str, key: OwnerKey) -> None:
    with Ledger.open(sqlite_place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
        for _ in range(4):
            ledger.charge("patients", gaussian(), question=QUESTION)
    content = bytearray(Path(sqlite_place).read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    Path(sqlite_place).write_bytes(content)
    with (
        pytest.raises(LedgerError, match="is corrupt; restore a backup"),
        Ledger.open(sqlite_place, key) as ledger,
    ):
        ledger.verify()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://host/ledger",
        "sqlite:///ledger.sqlite?mode=ro",
        "postgresql://[",
        "nonsense://",
        "",
        "sqlite://",
    ],
)
def test_a_url_that_is_no_place_for_a_ledger_is_refused(key: OwnerKey, url: str) -> None:
    with pytest.raises(LedgerError, match="ledger"):
        Ledger.open(url, key)


def test_sqlite_is_durable_and_private_to_its_user(sqlite_place: str, key: OwnerKey) -> None:
    with Ledger.open(f"sqlite:///{sqlite_place}", key) as ledger, ledger._storage.reading() as tables:
        asked = {name: tables.connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in PRAGMAS}
    assert asked == PRAGMAS
    assert Path(sqlite_place).stat().st_mode & 0o777 == 0o600


PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 120_000}
