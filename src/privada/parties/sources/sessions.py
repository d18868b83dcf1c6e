"""Sessions of databases: PostgreSQL by ADBC, SQLite by Python's own module, DuckDB; none can write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from privada.exceptions import InputError, SourceError, SourceOutageError
from privada.parties.schema import Schema
from privada.parties.tables import Table, read_batch

if TYPE_CHECKING:
    from privada.parties.sources.databases import Database


class Session(Protocol):
    """One snapshot of a database."""

    def names(self, statement: str) -> list[str]:
        """Names of a statement's columns; no row is read."""
        ...

    def declared(self, statement: str) -> dict[str, Any]:
        """The Arrow type of each column of a statement, None where none is declared; no row is read."""
        ...

    def tables(self, statement: str, schema: Schema, size: int) -> Iterator[Table]:
        """What a statement selects, at most ``size`` rows at a time."""
        ...


class _ArrowSession:
    """A session that gives Arrow batches.

    Parameters
    ----------
    read : callable
        Arrow batches of a statement, of at most so many rows.
    is_away : callable
        Whether the database is away, and that is why a driver's error was raised.
    """

    def __init__(
        self, read: Callable[[str, int], AbstractContextManager[Any]], is_away: Callable[[Exception], bool]
    ) -> None:
        self._read, self._is_away = read, is_away

    def names(self, statement: str) -> list[str]:
        return list(self.declared(statement))

    def declared(self, statement: str) -> dict[str, Any]:
        with _naming_faults(self._is_away), self._read(f"{statement} LIMIT 0", 1) as reader:
            return {field.name: field.type for field in reader.schema}

    def tables(self, statement: str, schema: Schema, size: int) -> Iterator[Table]:
        with _naming_faults(self._is_away), self._read(statement, size) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, size):
                    yield read_batch(batch.slice(start, size), coded=schema.coded)


@contextmanager
def open_postgresql(database: Database, snapshot: str | None = None) -> Iterator[Session]:
    """A session of PostgreSQL: of its own snapshot, or of one that another session has exported."""
    dbapi = _load("adbc_driver_postgresql.dbapi")
    with ExitStack() as stack:
        with _naming_faults(lambda _: True):  # no row is read yet: only the server can be at fault
            connection = stack.enter_context(_closed_in_the_end(dbapi.connect(database.url, autocommit=True)))
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

        yield _ArrowSession(read, lambda error: _is_server_away(error, connection))


def _is_server_away(error: Exception, connection: Any) -> bool:
    """Whether a server ended a session or has no resources; it is asked, if its error has no SQLSTATE.

    An error on the way of a result comes without one, be it the loss of the server or a value in a row.
    """
    state = getattr(error, "sqlstate", None)
    if state is None:
        try:
            with closing(connection.cursor()) as cursor:
                cursor.execute("SELECT 1")
        except Exception as fault:  # a live server says that the transaction is aborted
            state = getattr(fault, "sqlstate", None) or _LOST[0]
    return str(state)[:2] in _LOST


@contextmanager
def _closed_in_the_end(connection: Any) -> Iterator[Any]:
    """A connection that is closed whether or not its server still answers."""
    try:
        yield connection
    finally:
        with suppress(Exception):
            connection.close()


def write_literal(text: str) -> str:
    """Text as a statement has it; backslashes are refused, which a server's setting gives a meaning."""
    if "\\" in text or "\0" in text:
        raise InputError("Expected names in a database without backslashes.")
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def _duckdb(database: Database) -> Iterator[Session]:
    duckdb = _load("duckdb")
    config = {"enable_external_access": "false", "threads": "1"}

    def is_away(error: Exception) -> bool:
        return isinstance(error, duckdb.IOException)

    with ExitStack() as stack:
        with _naming_faults(is_away):
            _check_file(database)
            connection = duckdb.connect(str(database.file), read_only=True, config=config)
            stack.enter_context(_closed_in_the_end(connection))
            connection.execute("BEGIN TRANSACTION READ ONLY")
        yield _ArrowSession(
            lambda statement, size: closing(connection.sql(statement).to_arrow_reader(size)), is_away
        )


class _SqliteSession:
    """SQLite gives a type to each value, not to a column: values are taken as they are."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def names(self, statement: str) -> list[str]:
        with _naming_faults(_is_file_away):
            return [each[0] for each in self._connection.execute(f"{statement} LIMIT 0").description]

    def declared(self, statement: str) -> dict[str, Any]:
        return dict.fromkeys(self.names(statement))

    def tables(self, statement: str, schema: Schema, size: int) -> Iterator[Table]:  # noqa: ARG002
        with _naming_faults(_is_file_away), closing(self._connection.execute(statement)) as cursor:
            names = [each[0] for each in cursor.description]
            while rows := cursor.fetchmany(size):
                columns = zip(names, zip(*rows, strict=True), strict=True)
                yield {name: _as_objects(values) for name, values in columns}


def _as_objects(values: tuple[Any, ...]) -> Any:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


@contextmanager
def _sqlite(database: Database) -> Iterator[Session]:
    import sqlite3

    file = database.file
    assert file is not None
    with ExitStack() as stack:
        with _naming_faults(_is_file_away):
            _check_file(database)
            address = f"{file.resolve().as_uri()}?mode=ro"
            connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            stack.enter_context(_closed_in_the_end(connection))
            connection.execute("PRAGMA query_only = true")
            connection.execute("BEGIN")
        yield _SqliteSession(connection)


def _is_file_away(error: Exception) -> bool:
    """Whether SQLite could not open, lock or read its file."""
    import sqlite3

    away = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in away


def _check_file(database: Database) -> None:
    if database.file is not None and not database.file.is_file():
        raise SourceOutageError(f"There is no database at {database.file.name}.", part="database")


@contextmanager
def _naming_faults(is_away: Callable[[Exception], bool]) -> Iterator[None]:
    """What a driver raises, without its message: that may show a value, or where the database is."""
    try:
        yield
    except Exception as error:
        if not _is_drivers(error):
            raise
        state = getattr(error, "sqlstate", None)
        kind = type(error).__name__ + (f", SQLSTATE {state}" if state else "")
        message = f"The database cannot be read, or went away: {kind}."
        if is_away(error):
            raise SourceOutageError(message, part="database") from None
        raise SourceError(message) from None


def _is_drivers(error: Exception) -> bool:
    home = type(error).__module__.split(".")[0]
    return home in {"adbc_driver_manager", "duckdb", "_duckdb", "sqlite3", "pyarrow"} or isinstance(
        error, OSError
    )


def _load(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise InputError("Rows in a database need an extra: pip install 'privada[sql]'.") from None


_LOST = ("08", "53", "57", "58")  # SQLSTATE: lost connections, no resources, an operator's stop, the system
ENGINES: dict[str, Callable[[Any], AbstractContextManager[Session]]] = {
    "postgresql": open_postgresql,
    "postgres": open_postgresql,
    "sqlite": _sqlite,
    "duckdb": _duckdb,
}

__all__ = ["ENGINES", "Session", "open_postgresql", "write_literal"]
