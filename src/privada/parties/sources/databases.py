"""Rows in a database: a table or a query, read in batches from one snapshot that cannot write.

PostgreSQL is read by ADBC, SQLite by Python's own module, DuckDB by its own. One snapshot of PostgreSQL can
be read by several processes, each of which opens it by its name. The session that exported it stays open as
long as the answer takes. A plain table is divided by the pages in which its rows lie, so that every row is in
one part and parts are in the order of one scan; a view or a query is one part. PostgreSQL keeps the pages
where they are while the session is open, since it holds a lock on the table.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError, SourceError, SourceOutageError
from privada.parties.schema import Schema
from privada.parties.sources.files import are_settled, identify_files
from privada.parties.sources.source import COLUMN_ROWS, Source, join_values
from privada.parties.tables import Table, check_names, read_batch

SECRETS = frozenset({"password", "sslpassword", "passwd", "secret", "token"})
PART_PAGES = 4096  # of 8 kB each, of a part
LOST = ("08", "53", "57", "58")  # SQLSTATE: lost connections, no resources, an operator's stop, the system
_PAGES = (
    "SELECT pg_relation_size(oid) / current_setting('block_size')::bigint AS pages FROM pg_class "
    "WHERE oid = {table}::regclass AND relkind IN ('r', 'm')"
)


@dataclass(frozen=True, kw_only=True)
class Database:
    """Where rows are in a database.

    Parameters
    ----------
    url : str
        ``postgresql://user@host/database``, ``sqlite:///file.sqlite`` or ``duckdb:///file.duckdb``. It
        holds no password: PostgreSQL takes that from PGPASSWORD or from the file that PGPASSFILE names.
    table : str, optional
        A table or view, perhaps with its schema: "patients" or "clinic.patients".
    query : str, optional
        Instead of a table, a SELECT.
    """

    url: str
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise InputError("Expected either table or query beside database.")
        if self.query is not None and ";" in self.query.rstrip().rstrip(";"):
            raise InputError("Expected query to be one SELECT.")
        parts = urlsplit(self.url)
        if parts.scheme not in ENGINES:
            raise InputError(f"Expected a URL that begins with {', '.join(ENGINES)}, got {parts.scheme!r}.")
        if parts.password is not None or SECRETS & {key.lower() for key, _ in parse_qsl(parts.query)}:
            raise InputError("The URL holds a password; a secret belongs in the environment, not in a file.")

    @property
    def engine(self) -> str:
        """The kind of database: the scheme of the URL."""
        return urlsplit(self.url).scheme

    @property
    def file(self) -> Path | None:
        """The file of an embedded database."""
        return None if self.engine.startswith("postgres") else Path(urlsplit(self.url).path[1:])

    def relative_to(self, home: Path) -> Database:
        """The same, with the path of its file, if it has one, taken from a folder."""
        return self if self.file is None else self._with_file(home / self.file)

    def seen_from(self, home: Path) -> Database:
        """The same, with the path of its file, if it has one, as seen from a folder."""
        return self if self.file is None else self._with_file(os.path.relpath(self.file.resolve(), home))

    def _with_file(self, path: Path | str) -> Database:
        return Database(url=f"{self.engine}:///{path}", table=self.table, query=self.query)

    @property
    def quoted_table(self) -> str:
        """The table's name, as a statement has it."""
        return ".".join(_quote(part) for part in (self.table or "").split("."))

    def select(self, names: tuple[str, ...]) -> str:
        """The statement that reads some columns."""
        columns = ", ".join(_quote(name) for name in names) or "*"
        if self.table is not None:
            source = self.quoted_table
        else:
            source = f"({(self.query or '').rstrip().rstrip(';')}\n) AS privada_rows"  # a comment may end it
        return f"SELECT {columns} FROM {source}"  # noqa: S608 - the owner's own names, quoted


def _quote(name: str) -> str:
    if "\0" in name or not name:
        raise InputError("Expected names of tables and columns to be text.")
    return '"' + name.replace('"', '""') + '"'


def write_literal(text: str) -> str:
    """Text as a statement has it; backslashes are refused, which a server's setting gives a meaning."""
    if "\\" in text or "\0" in text:
        raise InputError("Expected names in a database without backslashes.")
    return "'" + text.replace("'", "''") + "'"


class Session(ABC):
    """One snapshot of a database."""

    def names(self, statement: str) -> list[str]:
        """Names of a statement's columns; no row is read."""
        return list(self.declared(statement))

    @abstractmethod
    def declared(self, statement: str) -> dict[str, Any]:
        """The Arrow type of each column of a statement, None where none is declared; no row is read."""

    @abstractmethod
    def tables(self, statement: str, schema: Schema, size: int) -> Iterator[Table]:
        """What a statement selects, at most ``size`` rows at a time."""


class _ArrowSession(Session):
    """A session that gives Arrow batches: ``read`` those of a statement, of at most so many rows.

    ``is_away`` tells whether a driver raised its error because the database is away.
    """

    def __init__(
        self, read: Callable[[str, int], AbstractContextManager[Any]], is_away: Callable[[Exception], bool]
    ) -> None:
        self._read, self._is_away = read, is_away

    def declared(self, statement: str) -> dict[str, Any]:
        with _name_faults(self._is_away), self._read(f"{statement} LIMIT 0", 1) as reader:
            return {field.name: field.type for field in reader.schema}

    def tables(self, statement: str, schema: Schema, size: int) -> Iterator[Table]:
        with _name_faults(self._is_away), self._read(statement, size) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, size):
                    yield read_batch(batch.slice(start, size), coded=schema.coded)


class _SqliteSession(Session):
    """SQLite gives a type to each value, not to a column: values are taken as they are."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def names(self, statement: str) -> list[str]:
        with _name_faults(_is_file_away):  # a list, in which two columns of one name are seen
            return [column[0] for column in self._connection.execute(f"{statement} LIMIT 0").description]

    def declared(self, statement: str) -> dict[str, Any]:
        return dict.fromkeys(self.names(statement))

    def tables(self, statement: str, schema: Schema, size: int) -> Iterator[Table]:  # noqa: ARG002
        with _name_faults(_is_file_away), closing(self._connection.execute(statement)) as cursor:
            names = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(size):
                columns: Table = {}
                for name, values in zip(names, zip(*rows, strict=True), strict=True):
                    # Filled, not converted: np.array would find one type for values of several.
                    columns[name] = np.empty(len(values), dtype=object)
                    columns[name][:] = values
                yield columns


@contextmanager
def open_postgresql(database: Database, snapshot: str | None = None) -> Iterator[Session]:
    """A session of PostgreSQL: of its own snapshot, or of one that another session has exported."""
    dbapi = _load("adbc_driver_postgresql.dbapi")
    with ExitStack() as stack:
        with _name_faults(lambda _: True):  # no row is read yet: only the server can be at fault
            connection = stack.enter_context(_closing(dbapi.connect(database.url, autocommit=True)))
            with closing(connection.cursor()) as cursor:
                cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                if snapshot is not None:  # before anything else of the transaction
                    cursor.execute(f"SET TRANSACTION SNAPSHOT {write_literal(snapshot)}")
                cursor.execute("SET LOCAL synchronize_seqscans = off")  # every reading in the same order
                cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")

        @contextmanager
        def read(statement: str, _: int) -> Iterator[Any]:
            with closing(connection.cursor()) as cursor:
                cursor.execute(statement)
                with closing(cursor.fetch_record_batch()) as reader:
                    yield reader

        def is_away(error: Exception) -> bool:
            # A server that ended a session or has no resources says so by SQLSTATE. An error on the way of a
            # result comes without one, be it the loss of the server or a value in a row: then it is asked.
            state = getattr(error, "sqlstate", None)
            if state is None:
                try:
                    with closing(connection.cursor()) as cursor:
                        cursor.execute("SELECT 1")
                except Exception as fault:  # a live server says that the transaction is aborted
                    state = getattr(fault, "sqlstate", None) or LOST[0]
            return str(state)[:2] in LOST

        yield _ArrowSession(read, is_away)


@contextmanager
def _open_duckdb(database: Database) -> Iterator[Session]:
    duckdb = _load("duckdb")
    config = {"enable_external_access": "false", "threads": "1"}

    def is_away(error: Exception) -> bool:
        return isinstance(error, duckdb.IOException)

    with ExitStack() as stack:
        with _name_faults(is_away):
            _check_file(database)
            connection = duckdb.connect(str(database.file), read_only=True, config=config)
            stack.enter_context(_closing(connection))
            connection.execute("BEGIN TRANSACTION READ ONLY")
        yield _ArrowSession(
            lambda statement, size: closing(connection.sql(statement).to_arrow_reader(size)), is_away
        )


@contextmanager
def _open_sqlite(database: Database) -> Iterator[Session]:
    import sqlite3

    file = database.file
    assert file is not None
    with ExitStack() as stack:
        with _name_faults(_is_file_away):
            _check_file(database)
            address = f"{file.resolve().as_uri()}?mode=ro"
            connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            stack.enter_context(_closing(connection))
            connection.execute("PRAGMA query_only = true")
            connection.execute("BEGIN")
        yield _SqliteSession(connection)


ENGINES: dict[str, Callable[[Any], AbstractContextManager[Session]]] = {
    "postgresql": open_postgresql,
    "postgres": open_postgresql,
    "sqlite": _open_sqlite,
    "duckdb": _open_duckdb,
}


@contextmanager
def _closing(connection: Any) -> Iterator[Any]:
    """A connection that is closed whether or not its server still answers."""
    try:
        yield connection
    finally:
        with suppress(Exception):
            connection.close()


def _is_file_away(error: Exception) -> bool:
    """Whether SQLite could not open, lock or read its file."""
    import sqlite3

    away = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in away


def _check_file(database: Database) -> None:
    if database.file is not None and not database.file.is_file():
        raise SourceOutageError(f"There is no database at {database.file.name}.", part="database")


@contextmanager
def _name_faults(is_away: Callable[[Exception], bool]) -> Iterator[None]:
    """What a driver raises, without its message: that may show a value, or where the database is."""
    drivers = {"adbc_driver_manager", "duckdb", "_duckdb", "sqlite3", "pyarrow"}
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in drivers and not isinstance(error, OSError):
            raise
        state = getattr(error, "sqlstate", None)
        kind = type(error).__name__ + (f", SQLSTATE {state}" if state else "")
        message = f"The database cannot be read, or went away: {kind}."
        if is_away(error):
            raise SourceOutageError(message, part="database") from None
        raise SourceError(message) from None


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError("Rows in a database need an extra: pip install 'privada[sql]'.") from None


class DatabaseSource(Source):
    """Rows of a database. Every reading is of one snapshot; an answer reads all from the same one.

    Privacy
    -------
    The session can only read. Rows may be others in the next answer: each answer bounds the rows of
    persons anew, in its own snapshot.
    """

    def __init__(self, database: Database, schema: Schema) -> None:
        self._database, self._schema = database, schema
        self.check_unchanged()

    @classmethod
    def claims(cls, data: Any) -> bool:
        return isinstance(data, Database)

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        with self.pinned() as rows:
            yield from rows.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        with self.pinned() as rows:
            return rows.column(name)

    @contextmanager
    def pinned(self) -> Iterator[Source]:
        with ENGINES[self._database.engine](self._database) as session:
            yield SessionRows(session, self._database, self._schema)

    def check_unchanged(self) -> None:
        """Make sure that the database answers, and that it still has the columns."""
        with ENGINES[self._database.engine](self._database) as session:
            check_names(session.names(self._database.select(())), self._schema.needed)

    def identity(self) -> str | None:
        file = self._database.file
        if file is None:
            return None
        files = [file, *(file.with_name(file.name + end) for end in ("-wal", ".wal"))]
        return identify_files(files) if are_settled(files) else None

    @property
    def travels(self) -> bool:
        """Only PostgreSQL shares a snapshot."""
        return self._database.engine.startswith("postgres")


class SessionRows(Source):
    """Rows as one session sees them; all, or those of a condition."""

    def __init__(self, session: Session, database: Database, schema: Schema, condition: str = "") -> None:
        self._session, self._database, self._schema = session, database, schema
        self._condition = condition

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        return self._session.tables(self._make_statement(names), self._schema, size)

    def column(self, name: str) -> npt.NDArray[Any]:
        tables = self._session.tables(self._make_statement((name,)), self._schema, COLUMN_ROWS)
        return join_values(np.asarray(table[name]) for table in tables)

    def _make_statement(self, names: Sequence[str] | None) -> str:
        """Rows of persons are always read by one statement, whose order stays the same.

        An index that has all columns of a shorter list would be read instead of the table, in its own order.
        """
        shortened = names is not None and self._schema.person_id is None
        columns = tuple(names) if shortened and names else self._schema.needed
        return self._database.select(columns) + self._condition

    def addresses(self) -> list[Source]:
        """Parts of the rows that other processes can read while the session stays open."""
        # This statement locks the table, so that its rows stay in their pages.
        self._session.names(self._database.select(()))
        snapshot = self._read_one("SELECT pg_export_snapshot() AS name")
        starts = range(0)
        if self._database.table is not None:
            table = write_literal(self._database.quoted_table)
            starts = range(0, int(self._read_one(_PAGES.format(table=table)) or 0), PART_PAGES)
        pages: list[tuple[int, int | None] | None] = [None]
        if len(starts) > 1:
            # The last part has no end: pages that are added later hold no row of the snapshot.
            pages = [*((start, start + PART_PAGES) for start in starts[:-1]), (starts[-1], None)]
        return [SharedSnapshot(self._database, self._schema, snapshot, part) for part in pages]

    def _read_one(self, statement: str) -> Any:
        """The only value of a statement; None if it has no row."""
        tables = self._session.tables(statement, self._schema, 1)
        return next((value for table in tables for value in next(iter(table.values()))), None)


@dataclass(frozen=True, eq=False, repr=False)
class SharedSnapshot(Source):
    """Some rows of an exported snapshot, opened by whoever reads them.

    The password comes from the environment of the process that reads.
    """

    database: Database
    schema: Schema
    snapshot: str  # PostgreSQL's name of it
    pages: tuple[int, int | None] | None = None  # the first, and the one after the last; by default all

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        with self._open_session() as rows:
            yield from rows.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        with self._open_session() as rows:
            return rows.column(name)

    @contextmanager
    def _open_session(self) -> Iterator[SessionRows]:
        condition = ""
        if self.pages is not None:
            first, end = self.pages
            condition = f" WHERE ctid >= '({first},0)'::tid"
            condition += "" if end is None else f" AND ctid < '({end},0)'::tid"
        with open_postgresql(self.database, self.snapshot) as session:
            yield SessionRows(session, self.database, self.schema, condition)


__all__ = [
    "ENGINES", "PART_PAGES", "Database", "DatabaseSource", "Session", "SessionRows", "SharedSnapshot",
    "open_postgresql", "write_literal",
]  # fmt: skip
