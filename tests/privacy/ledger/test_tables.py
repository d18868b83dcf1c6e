"""The tables: append-only, read by pages, and those of older versions are brought up to date."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy.exc import DBAPIError

from privada.exceptions import BudgetError, LedgerError, TamperError
from privada.privacy import Ledger, OwnerKey, Receipt
from privada.privacy.ledger import tables as module
from privada.privacy.ledger.storage import absent
from privada.privacy.ledger.tables import VERSION
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, tampering


def test_a_ledger_of_a_newer_version_is_refused(place: str, key: OwnerKey) -> None:
    Ledger.open(place, key).close()
    with tampering(place) as connection:
        connection.exec_driver_sql("INSERT INTO schema_version VALUES (99)")
    with pytest.raises(LedgerError, match=f"version 99; this privada knows versions up to {VERSION}"):
        Ledger.open(place, key)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lines SET cost = 0",
        "DELETE FROM lines WHERE position = 3",
        "DELETE FROM datasets",
        "UPDATE identity SET owner = 'me'",
    ],
)
def test_the_tables_are_append_only(
    durable_paid: tuple[Ledger, list[Receipt]], place: str, statement: str
) -> None:
    url = place if "://" in place else f"sqlite:///{place}"
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
    with engine.connect() as connection, pytest.raises(DBAPIError, match="the ledger is append-only"):
        connection.exec_driver_sql(statement)
    assert durable_paid[0].verify(durable_paid[1]).lines == 6


def test_sqlite_refuses_a_replaced_line(sqlite_place: str, key: OwnerKey) -> None:
    with Ledger.open(sqlite_place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
        engine = sqlalchemy.create_engine(f"sqlite:///{sqlite_place}", poolclass=sqlalchemy.pool.NullPool)
        with engine.connect() as connection, pytest.raises(DBAPIError, match="append-only"):
            connection.exec_driver_sql("INSERT OR REPLACE INTO lines SELECT * FROM lines")


VERSION_1 = """
CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY);
CREATE TABLE identity (id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), owner TEXT NOT NULL);
CREATE TABLE datasets (dataset TEXT NOT NULL PRIMARY KEY);
CREATE TABLE lines (
    dataset TEXT NOT NULL REFERENCES datasets (dataset),
    position BIGINT NOT NULL CHECK (position >= 0),
    kind TEXT NOT NULL,
    time TEXT NOT NULL,
    question TEXT NOT NULL,
    detail TEXT NOT NULL,
    cost BIGINT NOT NULL CHECK (cost >= 0),
    spent BIGINT NOT NULL CHECK (spent >= cost),
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (dataset, position)
);
INSERT INTO schema_version VALUES (1);
INSERT INTO identity VALUES (1, '03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8');
INSERT INTO datasets VALUES ('patients');
INSERT INTO lines VALUES ('patients', 0, 'budget', '2026-01-01T00:00:00.000000+00:00', '',
    '{"budget":{"kind":"zcdp","relation":"add/remove","rho":0.5,"unit":{"max_rows":1,"name":"row"}},"capacity":500000000000000,"filter":"zcdp"}',
    0, 0, '0000000000000000000000000000000000000000000000000000000000000000',
    '9158a3eaf10c58c5ba80c2b9c43ef653b14dadee3087ee1c0175cd641c74995c',
    '4bbd33d8be25bb8eb7c96c3d14a5621dac7dbdea580ba1e1b46e6b08ef45b4e50f6de702c6dc6369cc904eddc8627634962ebfc4f41641c7f68be3f189991905');
INSERT INTO lines VALUES ('patients', 1, 'charge', '2026-01-02T00:00:00.000000+00:00',
    'abababababababababababababababababababababababababababababababab',
    '{"epsilon":null,"event":{"noise_multiplier":2.0,"type":"GaussianDpEvent"},"guarantee":{"kind":"zcdp","relation":"add/remove","rho":0.125,"unit":{"max_rows":1,"name":"row"}},"times":1}',
    125000000000000, 125000000000000, '9158a3eaf10c58c5ba80c2b9c43ef653b14dadee3087ee1c0175cd641c74995c',
    '21d7ee37a47ff6b09ece5fe896afc59558f7f141188d74f8d289906030a917ed',
    'bb8a0ae2b84643e26faf4706fa5543e8c20734da0bc4c81829d09c90861acd4acd8648094921003dd82a8e2d34f8bed3a7e71caee6dea52014d6c836fb1ed505');
INSERT INTO lines VALUES ('patients', 2, 'disclosure', '2026-01-03T00:00:00.000000+00:00',
    'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd', '{"text":"ten rows to the curator"}',
    0, 125000000000000, '21d7ee37a47ff6b09ece5fe896afc59558f7f141188d74f8d289906030a917ed',
    '3730c8cfa6f333fd8424e5828816381d2b2000d64ef0e869f54148980b0b4d84',
    '9133285024fa0907814eea761ba10ad34a411a477d56c758f063929329c98dc1960fcda6b363a08782e0364c57906054c3ca156b26c4fa9463bfa27a34656002');
"""


def test_version_1_is_upgraded_and_still_verifies(place: str) -> None:
    """The digests above were computed once and for all: what is hashed must never change."""
    old_key = OwnerKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    if "://" not in place:
        Path(place).touch()
    with tampering(place) as connection:
        for statement in VERSION_1.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    for _ in range(2):
        with Ledger.open(place, old_key) as ledger:
            found = ledger.verify()
            assert (
                found.heads["patients"] == "3730c8cfa6f333fd8424e5828816381d2b2000d64ef0e869f54148980b0b4d84"
            )
    if "://" not in place:
        with Ledger.open(place, old_key) as ledger, pytest.raises(LedgerError, match="where they end"):
            ledger.charge("patients", gaussian(), question=QUESTION)
    (restored,) = Ledger.restore(place, old_key, by="Ada", lost="nothing")  # it is older than any record
    assert restored.index == 3
    with Ledger.open(place, old_key) as ledger:
        receipt = ledger.charge("patients", gaussian(), question=QUESTION, purpose="a mean")
        assert ledger.verify([receipt]).lines == 5
    with tampering(place) as connection:
        names = {column["name"] for column in sqlalchemy.inspect(connection).get_columns("lines")}
        versions = connection.exec_driver_sql("SELECT version FROM schema_version ORDER BY 1").scalars().all()
    assert "purpose" in names
    assert versions == list(range(1, VERSION + 1))


def test_a_migrated_and_a_new_ledger_have_the_same_columns(tmp_path: Path, key: OwnerKey) -> None:
    old_key = OwnerKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    connection = sqlite3.connect(old)
    connection.executescript(VERSION_1)
    connection.close()
    Ledger.open(old, old_key).close()
    Ledger.open(new, key).close()
    with tampering(str(old)) as one, tampering(str(new)) as two:
        columns = [
            {
                (c["name"], str(c["type"]), c["nullable"])
                for c in sqlalchemy.inspect(each).get_columns("lines")
            }
            for each in (one, two)
        ]
    assert columns[0] == columns[1]


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


def test_lines_that_are_gone_are_named(durable_opened, place):
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
    with durable_opened._storage.reading() as tables:
        assert tables.names() == ["patients"]
        assert tables.names_in_lines() == []
        with pytest.raises(TamperError, match="lines of 'patients' are gone"):
            tables.last("patients")


def test_an_unknown_data_set_is_told_apart_from_a_known_one(opened):
    assert "it knows 'patients'" in str(absent("patient", ["patients"]))
    with opened._storage.writing() as tables, pytest.raises(BudgetError, match="is absent"):
        tables.lock("nobody")
