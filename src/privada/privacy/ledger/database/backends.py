"""Where a ledger is kept: a SQLite file, the memory of a process, or PostgreSQL.

There is one writer at a time: SQLite by ``BEGIN IMMEDIATE``, PostgreSQL by row and
advisory locks. A commit is on disk before it returns. A process that answers for a data
set holds it `alone` meanwhile, and one that serves it can `claim` it; both locks end with
the process.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy
from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError

from privada.exceptions import LedgerError, LedgerOutageError, ServedError

BUSY_SECONDS = 120
_BEGIN = "privada_begin"
_LOCK = 0x70726976616461  # the advisory lock for creating tables and opening budgets


class Backend(ABC):
    """What differs between the databases."""

    follows_a_fork: ClassVar[bool] = True  # whether a forked process finds the same ledger

    def __init__(self, url: URL) -> None:
        self.url = url

    @property
    @abstractmethod
    def place(self) -> str:
        """The database for messages, without any secret."""

    @abstractmethod
    def engine(self) -> Engine:
        """Make the engine."""

    @abstractmethod
    def write(self, connection: Connection) -> None:
        """Start a durable write transaction."""

    @abstractmethod
    def lock_everything(self, connection: Connection) -> None:
        """Keep all other writers out until the write transaction ends."""

    @abstractmethod
    @contextmanager
    def alone(self, dataset: str) -> Iterator[None]:
        """Wait until nobody else answers for a data set, on any machine, and keep others waiting.

        Nothing unpaid could leave without it: it spares two processes the same work.
        """
        yield

    @abstractmethod
    def claim(self, dataset: str) -> None:
        """Be the only process that serves a data set, until `release_claims` or the process's end.

        A second call makes sure that the claim still holds. Raises `ServedError` if another process has it.
        """

    @property
    @abstractmethod
    def claims(self) -> list[str]:
        """The data sets that this process has claimed."""

    @abstractmethod
    def release_claims(self) -> None:
        """Let other processes serve."""

    @property
    def heads(self) -> Path | None:
        """Where the owner records the heads of chains by default."""
        return None

    def free_bytes(self) -> int | None:
        """Free space for the ledger, None if it is unknown here."""
        return None


class SQLite(Backend):
    """One file: write-ahead log, full synchronisation, one writer at a time."""

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self._claimed: dict[str, int] = {}
        self._inode: int | None = None

    @property
    def place(self) -> str:
        return str(self.url.database)

    def engine(self) -> Engine:
        create_file(Path(self.place))
        check_private(Path(self.place))
        self._inode = Path(self.place).stat().st_ino
        return self._listening(
            sqlalchemy.create_engine(
                self.url, pool_size=1, max_overflow=0, connect_args={"timeout": BUSY_SECONDS}
            )
        )

    @staticmethod
    def _listening(engine: Engine) -> Engine:
        """SQLAlchemy's recipe: Python's own BEGIN is switched off, ours is sent instead."""
        sqlalchemy.event.listen(engine, "connect", _set_up_sqlite)
        sqlalchemy.event.listen(engine, "begin", _begin_sqlite)
        return engine

    def write(self, connection: Connection) -> None:
        connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"}).begin()

    def lock_everything(self, connection: Connection) -> None:
        """Nothing to do: a writer is alone already."""

    @contextmanager
    def alone(self, dataset: str) -> Iterator[None]:
        with _locked(self._lock_file(dataset, "lock")):
            yield

    def _lock_file(self, dataset: str, ending: str) -> Path:
        file = Path(self.place)
        return file.with_name(f".{file.name}.{sha256(dataset.encode()).hexdigest()[:16]}.{ending}")

    def claim(self, dataset: str) -> None:
        """A lock file, which the system releases when the process ends."""
        import fcntl

        if dataset in self._claimed:
            return
        handle = _open_lock(self._lock_file(dataset, "serve.lock"))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise ServedError(_served(dataset)) from None
        self._claimed[dataset] = handle

    @property
    def claims(self) -> list[str]:
        return [*self._claimed]

    def release_claims(self) -> None:
        while self._claimed:
            os.close(self._claimed.popitem()[1])

    @property
    def heads(self) -> Path | None:
        return Path(f"{self.place}.heads")

    def free_bytes(self) -> int | None:
        """Also makes sure that the file is there: SQLite goes on writing to one that was removed."""
        try:
            inode = Path(self.place).stat().st_ino
            free = shutil.disk_usage(Path(self.place).parent).free
        except OSError as error:
            raise LedgerOutageError(f"The ledger {self.place} is out of reach: {error.strerror}.") from None
        if inode != self._inode:
            raise LedgerOutageError(
                f"Another file is at the place of the ledger {self.place}. Nothing was charged; put the "
                "ledger back, or start this process again to have the file checked."
            )
        return free


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file; the system releases it when the process ends, for whatever reason."""
    import fcntl

    handle = _open_lock(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)  # a process that was forked meanwhile may have it open still
        os.close(handle)


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise LedgerOutageError(f"The ledger's lock {path.name} cannot be made: {error.strerror}.") from None


def _served(dataset: str) -> str:
    return f"Another process serves {dataset!r} already. Stop it first, or let it go on in place of this one."


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None
    for pragma in ("synchronous = FULL", "fullfsync = ON", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode not in ("wal", "memory"):
        raise LedgerError(f"The file system does not carry a write-ahead log (journal mode {mode}).")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


class Memory(SQLite):
    """A ledger that ends with its process, for one process alone."""

    follows_a_fork: ClassVar[bool] = False  # parent and child would spend the same budget twice

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    @contextmanager
    def alone(self, dataset: str) -> Iterator[None]:
        with self._locks[dataset]:
            yield

    def claim(self, dataset: str) -> None:
        """Nothing to do: no other process has this ledger."""

    @property
    def heads(self) -> Path | None:
        return None

    def free_bytes(self) -> int | None:
        return None

    def engine(self) -> Engine:
        pool = sqlalchemy.pool.StaticPool
        engine = sqlalchemy.create_engine(self.url, poolclass=pool, connect_args={"check_same_thread": False})
        return self._listening(engine)


class PostgreSQL(Backend):
    """A shared server; one writer per data set."""

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self._claimed: dict[str, Connection | None] = {}  # None while its session is lost

    @property
    def place(self) -> str:
        return f"{self.url.database} on {self.url.host or 'PostgreSQL'}"

    def engine(self) -> Engine:
        try:
            engine = sqlalchemy.create_engine(
                self.url, pool_size=1, max_overflow=0, pool_pre_ping=True, isolation_level="READ COMMITTED"
            )
        except ModuleNotFoundError:
            raise LedgerError("PostgreSQL needs psycopg: pip install 'privada[postgres]'.") from None
        sqlalchemy.event.listen(engine, "connect", _check_postgresql)
        return engine

    def write(self, connection: Connection) -> None:
        connection.begin()
        connection.exec_driver_sql(
            f"SET LOCAL synchronous_commit TO on; SET LOCAL lock_timeout TO '{BUSY_SECONDS}s'"
        )

    def lock_everything(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")

    @contextmanager
    def alone(self, dataset: str) -> Iterator[None]:
        """A session's lock, which ends with its connection; a waiting process keeps no connection."""
        engine = sqlalchemy.create_engine(self.url, poolclass=sqlalchemy.pool.NullPool)
        number = _advisory_number(dataset)
        while (connection := _advised(engine, number)) is None:
            time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 - those who wait should not meet again
        try:
            yield
        finally:
            connection.close()

    def claim(self, dataset: str) -> None:
        """A lock of a session of its own; a session that was lost is opened anew."""
        if (session := self._claimed.get(dataset)) is not None:
            try:
                session.exec_driver_sql("SELECT 1")
            except DBAPIError:
                session.close()
                self._claimed[dataset] = None
            else:
                return
        pool = sqlalchemy.pool.NullPool
        engine = sqlalchemy.create_engine(self.url, poolclass=pool, isolation_level="AUTOCOMMIT")
        session = engine.connect()
        number = _advisory_number(f"serve {dataset}")
        if not session.exec_driver_sql(f"SELECT pg_try_advisory_lock({number})").scalar():
            session.close()
            raise ServedError(_served(dataset))
        self._claimed[dataset] = session

    @property
    def claims(self) -> list[str]:
        return [*self._claimed]

    def release_claims(self) -> None:
        while self._claimed:
            if (session := self._claimed.popitem()[1]) is not None:
                session.close()


def _advisory_number(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:7])


def _advised(engine: Engine, number: int) -> Connection | None:
    """A connection that holds an advisory lock, None if another does or the server has no free slot."""
    try:
        connection = engine.connect()
    except DBAPIError as error:
        if not is_passing(error):
            raise
        return None
    if connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({number})").scalar():
        return connection
    connection.close()
    return None


_PASSING = ("database is locked", "too many clients", "remaining connection slots")


def is_passing(error: DBAPIError) -> bool:
    """Whether a connection may succeed a little later."""
    return any(sign in str(error.orig) for sign in _PASSING)


def _check_postgresql(connection: Any, _: Any) -> None:
    with connection.cursor() as cursor:
        (fsync,) = cursor.execute("SHOW fsync").fetchone()
    connection.rollback()
    if fsync != "on":
        raise LedgerError("The PostgreSQL server runs with fsync = off: a charge would not be durable.")


def absent(place: str | os.PathLike[str]) -> str:
    """The message for a ledger that does not exist."""
    name = "that database" if "://" in os.fspath(place) else Path(place).name
    return (
        f"There is no ledger at {name}. A lost ledger is a lost budget: restore its backup, "
        "or, if there never was one, make it with Ledger.open(place, key)."
    )


def backend(place: str | os.PathLike[str], *, create: bool = True) -> Backend:
    """Choose the backend of a path or URL; a file that is not there is an error unless ``create``."""
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
    if url.database == ":memory:":
        return Memory(url)
    if not create and not Path(url.database).exists():
        raise LedgerError(absent(url.database))
    return SQLite(url)


def create_file(path: Path) -> None:
    """Make an empty file for its user alone, unless there is one; its name is on disk on return."""
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
            found = path.with_name(path.name + end).stat()
            if found.st_mode & 0o022 or found.st_uid != owner:
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
    "Backend",
    "Memory",
    "PostgreSQL",
    "SQLite",
    "backend",
    "check_private",
    "create_file",
    "is_passing",
    "sync_folder",
]
