"""A ledger in a SQLite file or in PostgreSQL: connections, locks, transactions and faults.

There is one writer at a time: SQLite by ``BEGIN IMMEDIATE``, PostgreSQL by row and advisory locks. A commit
is on disk before it returns. A process that answers for a data set holds it `alone` meanwhile, and one that
serves it can `claim` it; both locks end with the process.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError

from privada.exceptions import LedgerError, LedgerOutageError, ServedError
from privada.privacy.ledger.storage import Storage
from privada.privacy.ledger.tables import Tables

BUSY_SECONDS = 120
_BEGIN = "privada_begin"
_PASSING = ("database is locked", "too many clients", "remaining connection slots")
_FAULTS = {
    "database is locked": f"is busy: no turn within {BUSY_SECONDS} s; nothing was written",
    "lock timeout": f"is busy: no turn within {BUSY_SECONDS} s; nothing was written",
    "file is not a database": "is not a ledger, nor any SQLite database",
    "malformed": "is corrupt; restore a backup and verify it with the receipts",
    "unable to open": "cannot be opened",
    "readonly": "cannot be written",
}


class Database(Storage):
    """Short transactions on one database, safe for threads and across a fork.

    One thread at a time uses the connection. Before a fork it is closed, so a child never has a connection of
    its parent (SQLite forbids it).
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self._gate = threading.RLock()
        self._is_closed = False
        self._claimed: dict[str, Any] = {}  # data sets that this process serves, and what holds each lock
        self.engine = self._make_engine()
        weakref.finalize(self, self.engine.dispose)
        _DATABASES.add(self)
        _watch_forks()

    @abstractmethod
    def _make_engine(self) -> Engine:
        """Make the engine."""

    @abstractmethod
    def _begin_writing(self, connection: Connection) -> None:
        """Start a durable write transaction."""

    @abstractmethod
    def _release_claim(self, dataset: str) -> None:
        """Let other processes serve a data set."""

    @property
    @abstractmethod
    def _name(self) -> str:
        """What a message calls a ledger that does not exist."""

    def prepare(self, owner: str, *, create: bool) -> None:
        with self.reading() as tables:
            exists, is_ready = tables.version() is not None, tables.is_ready(owner)
        if not exists and not create:
            raise LedgerError(describe_absent(self._name))
        if not is_ready:
            with self.writing() as tables:
                tables.lock_everything()
                tables.prepare(owner)

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        with self._connected() as connection, connection.begin():
            yield Tables(connection)

    @contextmanager
    def writing(self) -> Iterator[Tables]:
        with self._connected() as connection:
            self._begin_writing(connection)
            yield Tables(connection)
            try:
                connection.commit()
            except DBAPIError as error:
                # Where the database does not answer, nobody knows, and the caller must hear that.
                raise _kind_of(error)(
                    f"The ledger {self.place} did not confirm its last line, which may stand: {error.orig}"
                ) from error

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._gate, _named_faults(self.place):
            if self._is_closed:
                raise LedgerError(f"The ledger {self.place} is closed.")
            try:
                with self._connect() as connection:
                    yield connection
            except OperationalError:
                self.engine.dispose()  # what is open may be of a server or a share that was away
                raise

    def _connect(self) -> Connection:
        """Connect; wait where another process creates the file or the server has no slot left."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self.engine.connect()
            except DBAPIError as error:
                if not _is_passing(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def check_reachable(self) -> None:
        with self.reading() as tables:
            tables.connection.exec_driver_sql("SELECT 1")
        for dataset in [*self._claimed]:
            self.claim(dataset)

    def close(self) -> None:
        with self._gate:
            self._is_closed = True
            self.engine.dispose()
            for dataset in [*self._claimed]:
                self._release_claim(dataset)

    def before_fork(self) -> None:
        """Let transactions finish and close the connection."""
        self._gate.acquire()
        self.engine.dispose()

    def after_fork(self) -> None:
        """Go on, in the parent and in the child; the connection is opened again on the next use."""
        self._gate.release()


class SQLite(Database):
    """One file: write-ahead log, full synchronisation, one writer at a time."""

    def __init__(self, url: URL) -> None:
        self._path = Path(str(url.database))
        create_file(self._path)
        check_private(self._path)
        self._inode = self._path.stat().st_ino
        super().__init__(url)

    @property
    def place(self) -> str:
        return str(self._path)

    @property
    def _name(self) -> str:
        return self._path.name

    @property
    def heads(self) -> Path | None:
        return Path(f"{self.place}.heads")

    def _make_engine(self) -> Engine:
        engine = sqlalchemy.create_engine(
            self.url, pool_size=1, max_overflow=0, connect_args={"timeout": BUSY_SECONDS}
        )

        def set_up(connection: Any, _: Any) -> None:
            connection.isolation_level = None
            for pragma in ("synchronous = FULL", "fullfsync = ON", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise LedgerError(f"The file system does not carry a write-ahead log (journal mode {mode}).")

        def begin(connection: Connection) -> None:
            connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))

        # SQLAlchemy's recipe: Python's own BEGIN is switched off, ours is sent instead.
        sqlalchemy.event.listen(engine, "connect", set_up)
        sqlalchemy.event.listen(engine, "begin", begin)
        return engine

    def _begin_writing(self, connection: Connection) -> None:
        connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"}).begin()

    def _open_lock(self, dataset: str, ending: str) -> int:
        name = f".{self._path.name}.{sha256(dataset.encode()).hexdigest()[:16]}.{ending}"
        try:
            return os.open(self._path.with_name(name), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LedgerOutageError(f"The ledger's lock {name} cannot be made: {error.strerror}.") from None

    @contextmanager
    def alone(self, dataset: str) -> Iterator[None]:
        """A lock file, which the system releases when the process ends, for whatever reason."""
        import fcntl

        handle = self._open_lock(dataset, "lock")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process that was forked meanwhile may have it open still
            os.close(handle)

    def claim(self, dataset: str) -> None:
        """A lock file, which the system releases when the process ends."""
        import fcntl

        if dataset in self._claimed:
            return
        handle = self._open_lock(dataset, "serve.lock")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise _served(dataset) from None
        self._claimed[dataset] = handle

    def _release_claim(self, dataset: str) -> None:
        os.close(self._claimed.pop(dataset))

    def free_bytes(self) -> int | None:
        """Also makes sure that the file is still there: SQLite goes on writing to one that was removed."""
        try:
            inode = self._path.stat().st_ino
            free = shutil.disk_usage(self._path.parent).free
        except OSError as error:
            raise LedgerOutageError(f"The ledger {self.place} is out of reach: {error.strerror}.") from None
        if inode != self._inode:
            raise LedgerOutageError(
                f"Another file is at the place of the ledger {self.place}. Nothing was charged; put the "
                "ledger back, or start this process again to have the file checked."
            )
        return free

    def copy_pages(self, target: Path) -> bool:
        """SQLite's own online backup."""
        with self.reading() as tables, closing(sqlite3.connect(target)) as copy:
            source: Any = tables.connection.connection.driver_connection
            source.backup(copy)
        return True


class PostgreSQL(Database):
    """A shared server; one writer per data set."""

    @property
    def place(self) -> str:
        return f"{self.url.database} on {self.url.host or 'PostgreSQL'}"

    @property
    def _name(self) -> str:
        return "that database"

    def _make_engine(self) -> Engine:
        try:
            engine = sqlalchemy.create_engine(
                self.url, pool_size=1, max_overflow=0, pool_pre_ping=True, isolation_level="READ COMMITTED"
            )
        except ModuleNotFoundError:
            raise LedgerError("PostgreSQL needs psycopg: pip install 'privada[postgres]'.") from None

        def check_durable(connection: Any, _: Any) -> None:
            with connection.cursor() as cursor:
                (fsync,) = cursor.execute("SHOW fsync").fetchone()
            connection.rollback()
            if fsync != "on":
                raise LedgerError(
                    "The PostgreSQL server runs with fsync = off: a charge would not be durable."
                )

        sqlalchemy.event.listen(engine, "connect", check_durable)
        return engine

    def _begin_writing(self, connection: Connection) -> None:
        connection.begin()
        connection.exec_driver_sql(
            f"SET LOCAL synchronous_commit TO on; SET LOCAL lock_timeout TO '{BUSY_SECONDS}s'"
        )

    @contextmanager
    def alone(self, dataset: str) -> Iterator[None]:
        """A session's lock, which ends with its connection; a waiting process keeps no connection."""
        with _named_faults(self.place):
            connection = self._wait_for_lock(dataset)
        try:
            yield
        finally:
            connection.close()

    def _wait_for_lock(self, dataset: str) -> Connection:
        """A connection that has the lock of a data set; also waits while the server has no free slot."""
        engine = sqlalchemy.create_engine(self.url, poolclass=sqlalchemy.pool.NullPool)
        while True:
            try:
                connection = engine.connect()
            except DBAPIError as error:
                if not _is_passing(error):
                    raise
            else:
                if _try_lock(connection, dataset):
                    return connection
                connection.close()
            time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 - those who wait should not meet again

    def claim(self, dataset: str) -> None:
        """A lock of a session of its own; a session that was lost is opened anew."""
        with _named_faults(self.place):
            if (session := self._claimed.get(dataset)) is not None:
                try:
                    session.exec_driver_sql("SELECT 1")
                except DBAPIError:
                    session.close()
                    self._claimed[dataset] = None  # its session is lost
                else:
                    return
            pool = sqlalchemy.pool.NullPool
            engine = sqlalchemy.create_engine(self.url, poolclass=pool, isolation_level="AUTOCOMMIT")
            session = engine.connect()
            if not _try_lock(session, f"serve {dataset}"):
                session.close()
                raise _served(dataset)
            self._claimed[dataset] = session

    def _release_claim(self, dataset: str) -> None:
        if (session := self._claimed.pop(dataset)) is not None:
            session.close()


def _try_lock(connection: Connection, name: str) -> bool:
    """Take an advisory lock of this name for the session, unless another session has it."""
    number = int.from_bytes(sha256(name.encode()).digest()[:7])
    return bool(connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({number})").scalar())


def _served(dataset: str) -> ServedError:
    return ServedError(
        f"Another process serves {dataset!r} already. Stop it first, or let it go on in place of this one."
    )


def _is_passing(error: DBAPIError) -> bool:
    """Whether a connection may succeed a little later."""
    return any(sign in str(error.orig) for sign in _PASSING)


def _kind_of(error: SQLAlchemyError) -> type[LedgerError]:
    """An outage, where the database or its disk is at fault and not what was written to it.

    Drivers raise an ``OperationalError`` for a server that is away or stops, a lock that is not granted, a
    disk that is full and a file that cannot be opened; damaged files are a ``DatabaseError``.
    """
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    return LedgerOutageError if lost or isinstance(error, OperationalError) else LedgerError


@contextmanager
def _named_faults(place: str) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        message, kind = str(getattr(error, "orig", None) or error), _kind_of(error)
        for sign, fault in _FAULTS.items():
            if sign in message:
                raise kind(f"The ledger {place} {fault}.") from None
        raise kind(f"The ledger {place} failed: {message}") from error
    except UnicodeDecodeError:
        raise LedgerError(f"The ledger {place} is damaged: it holds text that is none.") from None


_DATABASES: weakref.WeakSet[Database] = weakref.WeakSet()
_FORKING = threading.local()


@cache
def _watch_forks() -> None:
    """Close the connections of all databases before each fork."""

    def before() -> None:
        # In one order, so that two forks cannot wait for each other.
        _FORKING.databases = sorted(_DATABASES, key=id)
        for database in _FORKING.databases:
            database.before_fork()

    def after() -> None:
        for database in _FORKING.databases:
            database.after_fork()
        _FORKING.databases = []

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)


def open_database(place: str | os.PathLike[str], *, create: bool = True) -> Database:
    """Open the database of a path or URL; a file that is not there is an error unless ``create``."""
    text = os.fspath(place)
    try:
        url = sqlalchemy.make_url(text) if "://" in text else URL.create("sqlite", database=text)
    except ArgumentError:
        raise LedgerError(
            "The ledger's URL cannot be read; expected sqlite:///PATH or postgresql://…."
        ) from None
    name = url.get_backend_name()
    if name == "postgresql":
        return PostgreSQL(url.set(drivername="postgresql+psycopg"))
    if name != "sqlite" or url.query:
        raise LedgerError(f"A ledger is kept in a SQLite file or in PostgreSQL, not in {name} with options.")
    if not url.database:
        raise LedgerError(
            "The ledger's place names no file; say ':memory:' for one that ends with the process."
        )
    if not create and not Path(url.database).exists():
        raise LedgerError(describe_absent(Path(url.database).name))
    return SQLite(url)


def describe_absent(name: str) -> str:
    """The message for a ledger that does not exist."""
    return (
        f"There is no ledger at {name}. A lost ledger is a lost budget: restore its backup, "
        "or, if there never was one, make it with Ledger.open(place, key)."
    )


def create_file(path: Path) -> None:
    """Create an empty file for its user alone, unless there is one; its name is on disk on return."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        sync_folder(path.parent)
    except FileExistsError:
        if not path.is_file():
            raise LedgerError(f"The ledger {path} is not a file.") from None
    except OSError as error:
        raise LedgerError(f"The ledger {path} cannot be made: {error.strerror}.") from None


def check_private(path: Path) -> None:
    """Refuse a ledger that other users can write: they could put an older one in its place."""
    if os.name != "posix":
        return
    owner = path.stat().st_uid
    for end in ("", "-wal", "-shm", "-journal", ".heads"):
        with suppress(FileNotFoundError):  # they come and go with the connections of others
            status = path.with_name(path.name + end).stat()
            if status.st_mode & 0o022 or status.st_uid != owner:
                raise LedgerError(f"The ledger {path}{end} is open to other users; run chmod 600 on it.")
    mode = path.resolve().parent.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise LedgerError(
            f"The folder of the ledger {path} is open to other users, who could put another ledger in its "
            "place; run chmod o-w on it."
        )


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


__all__ = [
    "BUSY_SECONDS",
    "Database",
    "PostgreSQL",
    "SQLite",
    "check_private",
    "create_file",
    "describe_absent",
    "open_database",
    "sync_folder",
]
