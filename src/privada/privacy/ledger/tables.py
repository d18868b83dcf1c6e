"""A ledger's tables in SQL: their columns, the triggers that keep them append-only, and the queries.

Version 1 was the first layout; version 2 added ``lines.purpose``, version 3 the table ``answers``, version 4
who asked and who approved (``learner``, ``learner_key``, ``project``, ``stated``, which is what the learner
says that it asks for, and ``approver``), indexes to find them by, and the table ``unlisted``. A field of a
line that is empty is left out of what is hashed, so a column that is added later leaves old digests as they
are.

``answers`` is the owner's outbox (`privada.privacy.ledger.storage`). It is not part of the chain and may be
updated; what a release says is sealed by its own signature. ``unlisted`` counts, by day, the refusals that
got no line of their own. It is not part of the chain either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

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
    Select,
    Table,
    Text,
    bindparam,
    func,
    insert,
    inspect,
    or_,
    select,
    update,
)

from privada.exceptions import LedgerError, TamperError
from privada.privacy.ledger.chain import KEY, HandOver, Line, keys, replaced_key
from privada.privacy.ledger.storage import FAILED, OWED, Debt, Transaction
from privada.privacy.wire import canonical

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

successors = Table(  # created by the first hand-over; a ledger without one has a single key
    "successors",
    MetaData(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("statement", Text, nullable=False),
)


def _protect(name: str, dialect: str, *, same_row: str = "") -> list[str]:
    """The triggers that keep a table append-only; ``same_row`` finds the row that an insert would replace."""
    if dialect == "postgresql":
        return [
            f"CREATE TRIGGER {name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION privada_append_only()"
        ]
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    triggers = [
        f"CREATE TRIGGER {name}_no_{verb} BEFORE {verb} ON {name} {refuse}" for verb in ("update", "delete")
    ]
    if same_row:  # INSERT OR REPLACE deletes a row without firing its delete trigger
        exists = f"WHEN EXISTS (SELECT 1 FROM {name} WHERE {same_row})"  # noqa: S608 - our own words
        triggers.append(f"CREATE TRIGGER {name}_no_replace BEFORE INSERT ON {name} {exists} {refuse}")
    return triggers


def _create(connection: Connection, owner: str) -> None:
    """Create the tables of a new ledger."""
    _METADATA.create_all(connection)
    dialect = connection.dialect.name
    statements = [
        *_protect("lines", dialect, same_row="dataset = NEW.dataset AND position = NEW.position"),
        *_protect("datasets", dialect),
        *_protect("identity", dialect),
    ]
    if dialect == "postgresql":
        statements.insert(
            0,
            "CREATE FUNCTION privada_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        )
    for statement in statements:
        connection.exec_driver_sql(statement)
    connection.execute(insert(identity).values(id=1, owner=owner))
    connection.execute(insert(schema_version).values(version=VERSION))


def _add_purpose(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE lines ADD COLUMN purpose TEXT NOT NULL DEFAULT ''")


def _add_answers(connection: Connection) -> None:
    # No row for what was charged before: its release left long ago, and another would be unpaid.
    answers.create(connection)


def _add_askers(connection: Connection) -> None:
    for name in ("learner", "learner_key", "project", "stated", "approver"):
        connection.exec_driver_sql(f"ALTER TABLE lines ADD COLUMN {name} TEXT NOT NULL DEFAULT ''")
    for index in _INDEXES:
        index.create(connection)
    unlisted.create(connection)


MIGRATIONS: dict[int, Callable[[Connection], None]] = {2: _add_purpose, 3: _add_answers, 4: _add_askers}

_PAGE = 1000
_LOCK_NUMBER = 0x70726976616461  # the advisory lock for creating tables and opening budgets
# Statements are built once, because building one takes longer than running it.
_LINES = select(lines).where(lines.c.dataset == bindparam("dataset")).order_by(lines.c.position)
_LINE = select(lines).where(
    lines.c.dataset == bindparam("dataset"), lines.c.position == bindparam("position")
)
_LAST = (
    select(lines).where(lines.c.dataset == bindparam("dataset")).order_by(lines.c.position.desc()).limit(1)
)
_LOCK = select(datasets.c.dataset).where(datasets.c.dataset == bindparam("dataset")).with_for_update()
_BEGIN, _APPEND = insert(datasets), insert(lines)
_DEBTS = select(answers.c.dataset, answers.c.question, answers.c.position, answers.c.state, answers.c.tries)
_OF_QUESTION = (answers.c.dataset == bindparam("of")) & (answers.c.question == bindparam("digest"))
_DEBT = _DEBTS.where(_OF_QUESTION)
_RELEASE = select(answers.c.release).where(_OF_QUESTION)
_CHANGE = update(answers).where(_OF_QUESTION & (answers.c.state == OWED))
_ORPHAN = (
    _DEBTS.outerjoin(
        lines,
        (lines.c.dataset == answers.c.dataset)
        & (lines.c.position == answers.c.position)
        & (lines.c.question == answers.c.question),
    )
    .where(lines.c.position.is_(None))
    .limit(1)
)


@cache
def _build_search(
    kinds: tuple[str, ...], *, by_question: bool, by_learner: bool, since: bool, page: int
) -> Select[Any]:
    query = _LINES.where(lines.c.position > bindparam("after")).limit(page)
    if kinds:
        query = query.where(lines.c.kind.in_(kinds))
    if by_question:
        query = query.where(lines.c.question == bindparam("question"))
    if by_learner:
        query = query.where(
            or_(lines.c.learner == bindparam("learner"), lines.c.learner_key == bindparam("key"))
        )
    return query.where(lines.c.time >= bindparam("since")) if since else query


class Tables(Transaction):
    """A transaction on the tables, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def version(self) -> int | None:
        """The version of the tables, None for an empty database."""
        names = set(inspect(self.connection).get_table_names())
        if not names:
            return None
        expected = {table.name for table in (schema_version, identity, datasets, lines)}
        query = select(func.max(schema_version.c.version))
        version = self.connection.scalar(query) if expected <= names else None
        if version is None:
            raise LedgerError("This is a database, but not a ledger; give the ledger one of its own.")
        return int(version)

    def is_ready(self, owner: str) -> bool:
        """Whether the tables are there in the current version; refuse what is not this owner's ledger."""
        version = self.version()
        if version is None:
            return False
        if version > VERSION:
            raise LedgerError(
                f"The ledger has schema version {version}; this privada knows versions up to {VERSION}. "
                "Install a newer one."
            )
        *earlier, current = keys(self)
        if owner in earlier:
            raise replaced_key(current)
        if current != owner:
            raise LedgerError(
                f"The key is not this ledger's: it belongs to {current}, the key given is {owner}."
            )
        return version == VERSION

    def prepare(self, owner: str) -> None:
        """Create the tables, or update them to the current version. The caller locks everything."""
        if self.is_ready(owner):
            return
        version = self.version()
        if version is None:
            _create(self.connection, owner)
            return
        for number in range(version + 1, VERSION + 1):
            MIGRATIONS[number](self.connection)
            self.connection.execute(insert(schema_version).values(version=number))

    def owner(self) -> str:
        return str(self.connection.scalar(select(identity.c.owner)))

    def hand_overs(self) -> list[HandOver]:
        if not self._has_successors():
            return []
        texts = self.connection.scalars(select(successors.c.statement).order_by(successors.c.position)).all()
        try:
            return [HandOver.from_dict(json.loads(text)) for text in texts]
        except (ValueError, TypeError):
            raise TamperError("A hand-over of the ledger's key was edited: it cannot be read.") from None

    def add_hand_over(self, statement: HandOver) -> None:
        count = len(self.hand_overs())
        if not self._has_successors():
            successors.create(self.connection)
            for sql in _protect(
                "successors", self.connection.dialect.name, same_row="position = NEW.position"
            ):
                self.connection.exec_driver_sql(sql)
            self.connection.exec_driver_sql(  # finds the few lines of kind key
                f"CREATE INDEX IF NOT EXISTS key_lines ON lines (dataset, position) WHERE kind = '{KEY}'"
            )
        text = canonical(statement.to_dict()).decode("ascii")
        row = {"position": count + 1, "owner": statement.new, "statement": text}
        self.connection.execute(insert(successors), row)

    def _has_successors(self) -> bool:
        return bool(inspect(self.connection).has_table(successors.name))

    def names(self) -> list[str]:
        return sorted(self.connection.scalars(select(datasets.c.dataset)))

    def names_in_lines(self) -> list[str]:
        return sorted(self.connection.scalars(select(lines.c.dataset).distinct()))

    def line(self, dataset: str, index: int) -> Line | None:
        row = self.connection.execute(_LINE, {"dataset": dataset, "position": index}).mappings().first()
        return None if row is None else Line.from_row(row)

    def last_line(self, dataset: str) -> Line | None:
        row = self.connection.execute(_LAST, {"dataset": dataset}).mappings().first()
        return None if row is None else Line.from_row(row)

    def find(
        self,
        dataset: str,
        *,
        kinds: tuple[str, ...] = (),
        question: str | None = None,
        learner: tuple[str, str] | None = None,
        after: int = -1,
        since: str = "",
    ) -> Iterator[Line]:
        query = _build_search(
            kinds,
            by_question=question is not None,
            by_learner=learner is not None,
            since=since != "",
            page=_PAGE,
        )
        values: dict[str, Any] = {"dataset": dataset}
        if question is not None:
            values["question"] = question
        if learner is not None:
            values["learner"], values["key"] = learner
        if since:
            values["since"] = since
        while True:
            rows = self.connection.execute(query, values | {"after": after}).mappings().all()
            yield from map(Line.from_row, rows)
            if len(rows) < _PAGE:
                return
            after = rows[-1]["position"]

    def page(self, dataset: str, after: int) -> Sequence[Line]:
        query = _build_search((), by_question=False, by_learner=False, since=False, page=_PAGE)
        rows = self.connection.execute(query, {"dataset": dataset, "after": after}).mappings().all()
        return [Line.from_row(row) for row in rows]

    def lock_everything(self) -> None:
        if self.connection.dialect.name == "postgresql":  # a writer on SQLite is alone already
            self.connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})")

    def lock_dataset(self, dataset: str) -> bool:
        return self.connection.scalar(_LOCK, {"dataset": dataset}) is not None

    def begin(self, line: Line) -> None:
        self.connection.execute(_BEGIN, {"dataset": line.dataset})
        self.append(line)

    def append(self, *lines: Line) -> None:
        if lines:
            self.connection.execute(_APPEND, [line.to_row() for line in lines])

    def debt(self, dataset: str, question: str) -> Debt | None:
        row = self.connection.execute(_DEBT, {"of": dataset, "digest": question}).mappings().first()
        return None if row is None else Debt(**row)

    def debts(self) -> list[Debt]:
        return [Debt(**row) for row in self.connection.execute(_DEBTS).mappings()]

    def release(self, dataset: str, question: str) -> bytes | None:
        blob = self.connection.scalar(_RELEASE, {"of": dataset, "digest": question})
        return None if blob is None else bytes(blob)

    def owe(self, debt: Debt, release: bytes | None = None) -> None:
        self.connection.execute(insert(answers), asdict(debt) | {"release": release})

    def change(
        self, debt: Debt, *, state: str | None = None, tries: int | None = None, release: bytes | None = None
    ) -> bool:
        changes = {"state": state, "tries": tries, "release": release}
        values = {name: value for name, value in changes.items() if value is not None}
        statement = _CHANGE.values(**values)
        return self.connection.execute(statement, {"of": debt.dataset, "digest": debt.question}).rowcount == 1

    def give_up(self) -> None:
        self.connection.execute(update(answers).where(answers.c.state == OWED).values(state=FAILED))

    def find_orphan(self) -> Debt | None:
        row = self.connection.execute(_ORPHAN).mappings().first()
        return None if row is None else Debt(**row)

    def unlisted(self) -> list[tuple[str, str, int]]:
        query = select(unlisted.c.dataset, unlisted.c.day, unlisted.c.refusals)
        rows = self.connection.execute(query.order_by(unlisted.c.dataset, unlisted.c.day))
        return [(row.dataset, row.day, row.refusals) for row in rows]

    def count_unlisted(self, dataset: str, day: str, number: int = 1) -> None:
        row = (unlisted.c.dataset == dataset) & (unlisted.c.day == day)
        more = update(unlisted).where(row).values(refusals=unlisted.c.refusals + number)
        if not self.connection.execute(more).rowcount:
            self.connection.execute(insert(unlisted).values(dataset=dataset, day=day, refusals=number))


__all__ = [
    "MIGRATIONS",
    "VERSION",
    "Tables",
    "answers",
    "datasets",
    "identity",
    "lines",
    "schema_version",
    "successors",
    "unlisted",
]
