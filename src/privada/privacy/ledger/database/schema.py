"""The ledger's tables, the triggers that keep them append-only, and the way from one layout to the next.

Version 1 was the first layout; version 2 added ``lines.purpose``, version 3 the
table ``answers``, version 4 who asked and who approved (``learner``,
``learner_key``, ``project``, ``stated``, which is what the learner says that
it asks for, and ``approver``), indexes to find them by, and the table
``unlisted``. A field of a line that is empty is left out of what is hashed,
so a column that is added later leaves old digests as they are.

``answers`` is the owner's outbox: for each question that was charged once, the
line that paid for it and, when it is there, the signed release. It is no part of
the chain and may be updated; what a release says is sealed by its own signature.

``unlisted`` counts, by day, the refusals that got no line of their own
(`privada.privacy.ledger.notes`). It is no part of the chain either.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
)

from privada.exceptions import LedgerError

VERSION = 4

_METADATA = MetaData()

schema_version = Table(
    "schema_version", _METADATA, Column("version", Integer, primary_key=True, autoincrement=False)
)

identity = Table(
    "identity",
    _METADATA,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
)

datasets = Table("datasets", _METADATA, Column("dataset", Text, primary_key=True))

lines = Table(
    "lines",
    _METADATA,
    Column("dataset", Text, ForeignKey("datasets.dataset"), primary_key=True),
    Column("position", BigInteger, CheckConstraint("position >= 0"), primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("time", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("cost", BigInteger, CheckConstraint("cost >= 0"), nullable=False),
    Column("spent", BigInteger, CheckConstraint("spent >= cost"), nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("purpose", Text, nullable=False, server_default=""),
    Column("learner", Text, nullable=False, server_default=""),
    Column("learner_key", Text, nullable=False, server_default=""),
    Column("project", Text, nullable=False, server_default=""),
    Column("stated", Text, nullable=False, server_default=""),
    Column("approver", Text, nullable=False, server_default=""),
)

answers = Table(
    "answers",
    _METADATA,
    Column("dataset", Text, ForeignKey("datasets.dataset"), primary_key=True),
    Column("question", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("tries", Integer, CheckConstraint("tries >= 0"), nullable=False),
    Column("release", LargeBinary, nullable=True),
)

unlisted = Table(
    "unlisted",
    _METADATA,
    Column("dataset", Text, ForeignKey("datasets.dataset"), primary_key=True),
    Column("day", Text, primary_key=True),
    Column("refusals", BigInteger, nullable=False),
)

_INDEXES = tuple(
    Index(f"lines_by_{name}", lines.c.dataset, lines.c[name], lines.c.position)
    for name in ("question", "learner", "learner_key")
)

_KEPT = ("lines", "datasets", "identity")


def _sqlite_triggers() -> list[str]:
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    made = [
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} {refuse}"
        for table in _KEPT
        for verb in ("update", "delete")
    ]
    # INSERT OR REPLACE deletes a row without firing its delete trigger
    replaces = "SELECT 1 FROM lines WHERE dataset = NEW.dataset AND position = NEW.position"
    return [
        *made,
        f"CREATE TRIGGER lines_no_replace BEFORE INSERT ON lines WHEN EXISTS ({replaces}) {refuse}",
    ]


def _postgresql_triggers() -> list[str]:
    function = (
        "CREATE FUNCTION privada_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"
    )
    verbs = "UPDATE OR DELETE OR TRUNCATE"
    return [function] + [
        f"CREATE TRIGGER {table}_append_only BEFORE {verbs} ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION privada_append_only()"
        for table in _KEPT
    ]


_TRIGGERS: dict[str, Callable[[], list[str]]] = {
    "sqlite": _sqlite_triggers,
    "postgresql": _postgresql_triggers,
}


def _add_purpose(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE lines ADD COLUMN purpose TEXT NOT NULL DEFAULT ''")


def _add_answers(connection: Connection) -> None:
    """No row for what was charged before: its release left long ago, and another would be unpaid."""
    answers.create(connection)


def _add_askers(connection: Connection) -> None:
    for name in ("learner", "learner_key", "project", "stated", "approver"):
        connection.exec_driver_sql(f"ALTER TABLE lines ADD COLUMN {name} TEXT NOT NULL DEFAULT ''")
    for index in _INDEXES:
        index.create(connection)
    unlisted.create(connection)


MIGRATIONS: dict[int, Callable[[Connection], None]] = {2: _add_purpose, 3: _add_answers, 4: _add_askers}


def is_there(connection: Connection) -> bool:
    """Whether this is a ledger, of whatever version."""
    return _found_version(connection) is not None


def is_ready(connection: Connection, *, owner: str) -> bool:
    """Whether the tables are there in the current version; refuse what is not this owner's ledger."""
    found = _found_version(connection)
    if found is None:
        return False
    if found > VERSION:
        raise LedgerError(
            f"The ledger has schema version {found}; this privada knows versions up to {VERSION}. "
            "Install a newer one."
        )
    from privada.privacy.ledger.rotation import keys

    *earlier, recorded = keys(connection)
    if owner in earlier:
        raise LedgerError(f"The key is not this ledger's any more: {recorded} took over. Load that key.")
    if recorded != owner:
        raise LedgerError(
            f"The key is not this ledger's: it belongs to {recorded}, the key given is {owner}."
        )
    return found == VERSION


def prepare(connection: Connection, *, owner: str) -> None:
    """Create the tables, or bring them to the current version. The caller holds the lock on everything."""
    if is_ready(connection, owner=owner):
        return
    found = _found_version(connection)
    if found is None:
        _create(connection, owner)
        return
    for version in range(found + 1, VERSION + 1):
        MIGRATIONS[version](connection)
        connection.execute(insert(schema_version).values(version=version))


def _create(connection: Connection, owner: str) -> None:
    _METADATA.create_all(connection)
    for statement in _TRIGGERS[connection.dialect.name]():
        connection.exec_driver_sql(statement)
    connection.execute(insert(identity).values(id=1, owner=owner))
    connection.execute(insert(schema_version).values(version=VERSION))


def _found_version(connection: Connection) -> int | None:
    """The version of the tables, None for an empty database."""
    names = set(inspect(connection).get_table_names())
    if not names:
        return None
    whole = {table.name for table in (schema_version, identity, datasets, lines)} <= names
    version = connection.scalar(select(func.max(schema_version.c.version))) if whole else None
    if version is None:
        raise LedgerError("This is a database, but not a ledger; give the ledger one of its own.")
    return int(version)


__all__ = [
    "MIGRATIONS",
    "VERSION",
    "answers",
    "datasets",
    "identity",
    "is_ready",
    "is_there",
    "lines",
    "prepare",
    "schema_version",
    "unlisted",
]
