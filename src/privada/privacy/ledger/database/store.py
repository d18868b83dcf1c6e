"""Short transactions on one ledger, safe for threads and across a fork."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from privada.exceptions import LedgerError, LedgerOutageError
from privada.privacy.ledger.database.backends import BUSY_SECONDS, Backend, is_passing


class Store:
    """Short transactions on one ledger, safe for threads and across a fork.

    One thread at a time uses the connection. Before a fork it is closed, so a
    child never holds a connection of its parent (SQLite forbids it).
    """

    def __init__(self, at: Backend) -> None:
        self.backend = at
        self._gate = threading.RLock()
        self._closed = ""
        self.engine = at.engine()
        weakref.finalize(self, self.engine.dispose)
        _STORES.add(self)
        _watch_forks()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads."""
        with self._connected() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes: durable when it ends, undone when it fails."""
        with self._connected() as connection:
            self.backend.write(connection)
            yield connection
            self._commit(connection)

    @contextmanager
    def alone(self, dataset: str) -> Iterator[None]:
        """Wait until nobody else answers for a data set, and keep others waiting."""
        with ExitStack() as stack:
            with _named_faults(self.backend.place):
                stack.enter_context(self.backend.alone(dataset))
            yield

    def claim(self, dataset: str) -> None:
        """Be the only process that serves a data set; see `Backend.claim`."""
        with _named_faults(self.backend.place):
            self.backend.claim(dataset)

    def check_reachable(self) -> None:
        """Raise `LedgerOutageError` unless the ledger answers; claims of a lost session are made again."""
        with self.reading() as connection:
            connection.exec_driver_sql("SELECT 1")
        for dataset in self.backend.claims:
            self.claim(dataset)

    def _commit(self, connection: Connection) -> None:
        """Commit; where the database does not answer, nobody knows, and the caller must hear that."""
        try:
            connection.commit()
        except DBAPIError as error:
            said = f"did not confirm its last line, which may stand: {error.orig}"
            raise _kind_of(error)(f"The ledger {self.backend.place} {said}") from error

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._gate, _named_faults(self.backend.place):
            if self._closed:
                raise LedgerError(f"The ledger {self.backend.place} {self._closed}.")
            try:
                with self._connect() as connection:
                    yield connection
            except OperationalError:
                if self.backend.follows_a_fork:  # a ledger in memory would end with its connection
                    self.engine.dispose()  # what is open may be of a server or a share that was away
                raise

    def _connect(self) -> Connection:
        """Connect; wait where another process makes the file or the server has no seat left."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self.engine.connect()
            except DBAPIError as error:
                if not is_passing(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def close(self) -> None:
        """Close the connection."""
        with self._gate:
            self._closed = self._closed or "is closed"
            self.engine.dispose()
            self.backend.release_claims()

    def before_fork(self) -> None:
        """Let transactions finish and close the connection."""
        self._gate.acquire()
        if self.backend.follows_a_fork:
            self.engine.dispose()

    def after_fork_in_child(self) -> None:
        """Open again on the next use, or never."""
        if not self.backend.follows_a_fork:
            self._closed = "is held in the memory of another process; keep it in a file"
        self._gate.release()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._gate.release()


_FAULTS = {
    "database is locked": f"is busy: no turn within {BUSY_SECONDS} s; nothing was written",
    "lock timeout": f"is busy: no turn within {BUSY_SECONDS} s; nothing was written",
    "file is not a database": "is not a ledger, nor any SQLite database",
    "malformed": "is corrupt; restore a backup and verify it with the receipts",
    "unable to open": "cannot be opened",
    "readonly": "cannot be written",
}


def _kind_of(error: SQLAlchemyError) -> type[LedgerError]:
    """An outage, where the database or its disk is at fault and not what was written to it.

    Drivers raise an ``OperationalError`` for a server that is away or stops, a lock that is not had, a disk
    that is full and a file that cannot be opened; damaged files are a ``DatabaseError``.
    """
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    return LedgerOutageError if lost or isinstance(error, OperationalError) else LedgerError


@contextmanager
def _named_faults(place: str) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        said, kind = str(getattr(error, "orig", None) or error), _kind_of(error)
        for sign, fault in _FAULTS.items():
            if sign in said:
                raise kind(f"The ledger {place} {fault}.") from None
        raise kind(f"The ledger {place} failed: {said}") from error
    except UnicodeDecodeError:
        raise LedgerError(f"The ledger {place} is damaged: it holds text that is none.") from None


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_HELD = threading.local()


@cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _before() -> None:
    _HELD.stores = sorted(_STORES, key=id)  # in one order, so that two forks cannot wait for each other
    for store in _HELD.stores:
        store.before_fork()


def _in_parent() -> None:
    for store in _HELD.stores:
        store.after_fork_in_parent()
    _HELD.stores = []


def _in_child() -> None:
    for store in _HELD.stores:
        store.after_fork_in_child()
    _HELD.stores = []


__all__ = ["Store"]
