"""SQLite and PostgreSQL: private to their user, durable, safe for many processes, also if they are killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dp_accounting
import pytest
import sqlalchemy
from sqlalchemy.exc import DBAPIError

from privada.exceptions import BudgetError, LedgerError
from privada.privacy import ZCDP, Ledger, OwnerKey, Price, Receipt
from privada.privacy.ledger.database import open_database
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, receipts_of, tampering, worker


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


PRICE = Price(event=dp_accounting.GaussianDpEvent(5.0), guarantee=ZCDP(rho=0.02, relation="add/remove"))


@pytest.fixture
def on_server(postgres_place: str, key: OwnerKey) -> Iterator[Ledger]:
    with Ledger.open(postgres_place, key) as opened:
        opened.open_budget("patients", BUDGET)
        yield opened


@pytest.fixture
def engine(postgres_place: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(postgres_place, poolclass=sqlalchemy.pool.NullPool)


@pytest.mark.postgres
def test_a_table_cannot_be_emptied(on_server: Ledger, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection, pytest.raises(DBAPIError, match="append-only"):
        connection.exec_driver_sql("TRUNCATE lines, datasets, answers, unlisted")
    assert on_server.verify().lines == 1


@pytest.mark.postgres
def test_a_charge_waits_for_the_disk(on_server: Ledger, engine: sqlalchemy.Engine) -> None:
    """A server whose default is asynchronous commits is overruled for every line."""
    with engine.connect() as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar()
        connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET synchronous_commit TO off')
        connection.commit()
    on_server._storage.engine.dispose()
    with on_server._storage.reading() as tables:
        assert tables.connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "off"
    with on_server._storage.writing() as tables:
        assert tables.connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"


@pytest.mark.postgres
def test_one_writer_waits_for_another_of_the_same_data_set_only(
    on_server: Ledger, postgres_place: str, key: OwnerKey
) -> None:
    on_server.open_budget("others", BUDGET)
    with Ledger.open(postgres_place, key) as second, on_server._storage.writing() as tables:
        connection = tables.connection
        connection.exec_driver_sql("SELECT * FROM datasets WHERE dataset = 'patients' FOR UPDATE")
        second.charge("others", PRICE, question=QUESTION)
        waiting = threading.Thread(
            target=second.charge, args=("patients", PRICE), kwargs={"question": QUESTION}
        )
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        connection.rollback()
        connection.begin()
        waiting.join(10)
        assert not waiting.is_alive()
    assert on_server.verify().lines == 4


@pytest.mark.postgres
def test_a_plain_postgresql_url_is_enough(on_server: Ledger, postgres_place: str, key: OwnerKey) -> None:
    with Ledger.open(postgres_place.replace("+psycopg", ""), key) as again:
        assert again.datasets() == ("patients",)


@pytest.mark.postgres
def test_a_restarted_connection_is_found(on_server: Ledger, engine: sqlalchemy.Engine) -> None:
    on_server.charge("patients", PRICE, question=QUESTION)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    on_server.charge("patients", PRICE, question=QUESTION)
    assert on_server.verify().lines == 3


@pytest.mark.postgres
def test_a_commit_without_an_answer_is_named(on_server: Ledger, engine: sqlalchemy.Engine) -> None:
    def cut_off() -> None:
        with on_server._storage.writing() as tables, engine.connect() as other:
            pid = tables.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            other.exec_driver_sql(f"SELECT pg_terminate_backend({pid}, 5000)")

    with pytest.raises(LedgerError, match="did not confirm its last line, which may stand"):
        cut_off()
    on_server.charge("patients", PRICE, question=QUESTION)


@pytest.mark.postgres
def test_an_unreachable_server_is_named_without_its_password(key: OwnerKey, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"ledger db on .* failed") as refused:
        Ledger.open(f"postgresql://me:secret@/db?host={tmp_path}", key)
    assert "secret" not in str(refused.value)


@pytest.mark.postgres
def test_kill_loses_nothing_that_was_promised_on_a_server(
    on_server: Ledger, postgres_place: str, key_file: Path
) -> None:
    receipts = receipts_of(worker("killed", postgres_place, key_file, 40))
    assert len(receipts) > 20
    on_server.verify(receipts)
