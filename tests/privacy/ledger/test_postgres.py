"""What only PostgreSQL has; the common contract is in the files beside it, which run on both databases."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import dp_accounting
import pytest
import sqlalchemy
from sqlalchemy.exc import DBAPIError

from privada.exceptions import LedgerError
from privada.privacy import ZCDP, Ledger, OwnerKey, Price, Receipt

pytestmark = pytest.mark.postgres

QUESTION = "ab" * 32
BUDGET = ZCDP(rho=0.5, relation="add/remove")
PRICE = Price(event=dp_accounting.GaussianDpEvent(5.0), guarantee=ZCDP(rho=0.02, relation="add/remove"))
WORKER = Path(__file__).with_name("ledger_worker.py")


@pytest.fixture
def ledger(postgres_place: str, key: OwnerKey) -> Iterator[Ledger]:
    with Ledger.open(postgres_place, key) as opened:
        opened.open_budget("patients", BUDGET)
        yield opened


@pytest.fixture
def engine(postgres_place: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(postgres_place, poolclass=sqlalchemy.pool.NullPool)


def test_a_table_cannot_be_emptied(ledger: Ledger, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection, pytest.raises(DBAPIError, match="append-only"):
        connection.exec_driver_sql("TRUNCATE lines, datasets, answers, unlisted")
    assert ledger.verify().lines == 1


def test_a_charge_waits_for_the_disk(ledger: Ledger, engine: sqlalchemy.Engine) -> None:
    """A server whose default is asynchronous commits is overruled for every line."""
    with engine.connect() as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar()
        connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET synchronous_commit TO off')
        connection.commit()
    ledger._storage.engine.dispose()
    with ledger._storage.reading() as tables:
        assert tables.connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "off"
    with ledger._storage.writing() as tables:
        assert tables.connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"


def test_one_writer_waits_for_another_of_the_same_data_set_only(
    ledger: Ledger, postgres_place: str, key: OwnerKey
) -> None:
    ledger.open_budget("others", BUDGET)
    with Ledger.open(postgres_place, key) as second, ledger._storage.writing() as tables:
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
    assert ledger.verify().lines == 4


def test_a_plain_postgresql_url_is_enough(ledger: Ledger, postgres_place: str, key: OwnerKey) -> None:
    with Ledger.open(postgres_place.replace("+psycopg", ""), key) as again:
        assert again.datasets() == ("patients",)


def test_a_restarted_connection_is_found(ledger: Ledger, engine: sqlalchemy.Engine) -> None:
    ledger.charge("patients", PRICE, question=QUESTION)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    ledger.charge("patients", PRICE, question=QUESTION)
    assert ledger.verify().lines == 3


def test_a_commit_without_an_answer_is_named(ledger: Ledger, engine: sqlalchemy.Engine) -> None:
    def cut_off() -> None:
        with ledger._storage.writing() as tables, engine.connect() as other:
            pid = tables.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            other.exec_driver_sql(f"SELECT pg_terminate_backend({pid}, 5000)")

    with pytest.raises(LedgerError, match="did not confirm its last line, which may stand"):
        cut_off()
    ledger.charge("patients", PRICE, question=QUESTION)


def test_an_unreachable_server_is_named_without_its_password(key: OwnerKey, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"ledger db on .* failed") as refused:
        Ledger.open(f"postgresql://me:secret@/db?host={tmp_path}", key)
    assert "secret" not in str(refused.value)


def test_kill_loses_nothing_that_was_promised(ledger: Ledger, postgres_place: str, key_file: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(WORKER), "killed", postgres_place, str(key_file), "40"],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    receipts = [Receipt.from_dict(line["receipt"]) for line in said if "receipt" in line]
    assert len(receipts) > 20
    ledger.verify(receipts)
