"""Where a ledger keeps its lines: what a storage can do, and the storage in this process's memory.

A `Storage` gives transactions: `Storage.reading` and `Storage.writing` yield a `Transaction`, whose methods
are the few queries that a ledger needs. `Memory` is here; `privada.privacy.ledger.database` has SQLite and
PostgreSQL. All rules of budgets are in `privada.privacy.ledger.ledger.Ledger`, which is the same for every
storage.

*The outbox.* A storage also keeps what each charged question is owed (`Debt`), and the release once it was
drawn. The charge and the debt are written in one transaction, before rows are opened, and the release is kept
here before it is delivered anywhere. So whatever happens in between (a process that is killed, a full disk,
two processes at once), the question is neither charged again nor lost: if it is asked again, the kept release
is returned, or the next process draws the answer.

*Why drawing again is sound.* A draw that was not kept never left the owner: releases are delivered from here
only, and the first one that is kept is returned to everyone. An answer that failed on the rows is a different
matter, because the failure may reveal something about them: it is marked as failed, for good. So is one whose
process ended `MOST_TRIES` times.
"""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from privada.exceptions import BudgetError, LedgerError, TamperError
from privada.privacy.ledger.chain import KEY, HandOver, Line
from privada.privacy.wire import canonical

OWED, KEPT, FAILED = "owed", "kept", "failed"
MOST_TRIES = 20  # of one answer: what ends the owner's process each time must not do so for ever


@dataclass(frozen=True, kw_only=True)
class Debt:
    """What a charged question is owed.

    Attributes
    ----------
    dataset, question : str
        The data set, and the digest of the question.
    position : int
        The line that paid.
    state : str
        ``"owed"``, ``"kept"`` (the release is here) or ``"failed"``.
    tries : int
        How often rows were opened for it.
    """

    dataset: str
    question: str
    position: int
    state: str = OWED
    tries: int = 0


class Transaction(Protocol):
    """One transaction on a ledger: what it reads is of one moment, and what it writes is written as one."""

    def owner(self) -> str:
        """The public key that the ledger was created with."""

    def hand_overs(self) -> list[HandOver]:
        """All hand-overs of the key, the oldest first."""

    def add_hand_over(self, statement: HandOver) -> None:
        """Write one more hand-over."""

    def names(self) -> list[str]:
        """The data sets that have a budget, in alphabetical order."""

    def names_in_lines(self) -> list[str]:
        """The data sets that lines speak of: the same, unless someone tampered."""

    def line(self, dataset: str, index: int) -> Line | None:
        """One line by its number."""

    def last_line(self, dataset: str) -> Line | None:
        """The line with the largest number."""

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
        """Lines in order: of some kinds, about a question (``""`` for lines about none), or of a learner.

        A learner is a name and a key; lines about this name *or* this key are found. Lines up to number
        ``after``, and those before the moment ``since``, are left out.
        """

    def page(self, dataset: str, after: int) -> Sequence[Line]:
        """The next lines of a data set after one; empty at the end."""

    def lock_everything(self) -> None:
        """Keep all other writers out until the transaction ends."""

    def lock_dataset(self, dataset: str) -> bool:
        """Keep other writers of a data set out until the transaction ends; False if it is unknown."""

    def begin(self, line: Line) -> None:
        """Write line 0 of a new data set."""

    def append(self, *lines: Line) -> None:
        """Write more lines of one data set."""

    def debt(self, dataset: str, question: str) -> Debt | None:
        """The debt of a question, None if it was never charged here."""

    def debts(self) -> list[Debt]:
        """Everything that was ever owed."""

    def release(self, dataset: str, question: str) -> bytes | None:
        """The release that is kept for a question."""

    def owe(self, debt: Debt, release: bytes | None = None) -> None:
        """Write a new debt."""

    def change(
        self, debt: Debt, *, state: str | None = None, tries: int | None = None, release: bytes | None = None
    ) -> bool:
        """Write what is given of a debt, if it is owed still; say whether it was."""

    def give_up(self) -> None:
        """Mark all that is owed as failed: under another key, a receipt and its release would not agree."""

    def find_orphan(self) -> Debt | None:
        """A debt without the line that paid for it, which only damage can cause."""

    def unlisted(self) -> list[tuple[str, str, int]]:
        """Data set, day (UTC) and number of refusals that got no line, in order."""

    def count_unlisted(self, dataset: str, day: str, number: int = 1) -> None:
        """Count refusals without a line."""

    def last(self, dataset: str) -> Line:
        """The last line of a known data set."""
        line = self.last_line(dataset)
        if line is None:
            raise TamperError(f"The lines of {dataset!r} are gone.")
        return line

    def lock(self, dataset: str) -> Line:
        """Keep other writers of a data set out, then read its last line."""
        if not self.lock_dataset(dataset):
            raise absent(dataset)
        return self.last(dataset)

    def count_try(self, debt: Debt) -> Debt:
        """Count one more try at an answer, before rows are opened; one too many and it has failed."""
        if debt.state != OWED:
            return debt
        has_failed = debt.tries >= MOST_TRIES
        changed = replace(debt, state=FAILED) if has_failed else replace(debt, tries=debt.tries + 1)
        self.change(debt, state=changed.state, tries=changed.tries)
        return changed

    def key_lines(self, dataset: str) -> list[Line]:
        """The hand-overs in a chain, in order."""
        return list(self.find(dataset, kinds=(KEY,))) if self.hand_overs() else []


def absent(dataset: str, known: Sequence[str] = ()) -> BudgetError:
    """The error of a data set that the ledger does not know."""
    others = f" (it knows {', '.join(map(repr, known[:5]))})" if known else ""
    return BudgetError(
        f"The budget of {dataset!r} is absent: the ledger does not know this data set{others}. "
        "If it is a new one, open its budget: privada owner open-budget, or Ledger.open_budget. "
        "Nothing was charged."
    )


class Storage(ABC):
    """What differs between the places where a ledger can be."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The place for messages, without any secret."""

    @property
    def heads(self) -> Path | None:
        """Where the owner records the heads of chains by default."""
        return None

    @abstractmethod
    def prepare(self, owner: str, *, create: bool) -> None:
        """Create a ledger for this key, or update an older layout; refuse that of another owner."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that reads."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that writes: durable when it ends, undone when it fails."""

    @abstractmethod
    def alone(self, dataset: str) -> AbstractContextManager[None]:
        """Wait until nobody else answers for a data set, on any machine: it spares two the same work."""

    @abstractmethod
    def claim(self, dataset: str) -> None:
        """Be the only process that serves a data set, until the storage is closed or the process ends."""

    @abstractmethod
    def check_reachable(self) -> None:
        """Raise `LedgerOutageError` unless the storage answers; lost claims are made again."""

    def free_bytes(self) -> int | None:
        """Free space for the ledger, None if it is unknown here."""
        return None

    def copy_pages(self, target: Path) -> bool:  # noqa: ARG002 - for those that can
        """Copy everything into an empty SQLite file by the storage's own means; False if it has none."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Close it; it cannot be used afterwards."""

    def lines(self, dataset: str) -> Iterator[Line]:
        """All lines of a data set in order, by pages: no transaction stays open while a caller thinks."""
        after = -1
        while True:
            with self.reading() as tables:
                page = tables.page(dataset, after)
            if not page:
                return
            yield from page
            after = page[-1].index


class Memory(Storage):
    """A ledger that ends with its process, for this process alone.

    Parent and child of a fork would both spend the same budget, so the child cannot use it.
    """

    place = ":memory:"

    def __init__(self) -> None:
        self._process, self._is_closed = os.getpid(), False
        self._gate = threading.RLock()
        self._answering: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._tables = _MemoryTables()

    def prepare(self, owner: str, *, create: bool) -> None:  # noqa: ARG002 - a new one is always created
        self._tables.public = owner

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        self._check_usable()  # before the lock, which another thread may have had when the process forked
        with self._gate:
            yield self._tables

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        self._check_usable()
        with self._gate:
            undo = self._tables.undo
            undo.clear()
            try:
                yield self._tables
            except BaseException:
                while undo:
                    undo.pop()()
                raise

    def _check_usable(self) -> None:
        if self._is_closed:
            raise LedgerError(f"The ledger {self.place} is closed.")
        if os.getpid() != self._process:
            raise LedgerError(
                f"The ledger {self.place} is held in the memory of another process; keep it in a file."
            )

    @contextmanager
    def alone(self, dataset: str) -> Iterator[None]:
        self._check_usable()
        with self._answering[dataset]:
            yield

    def claim(self, dataset: str) -> None:
        """Nothing to do: no other process has this ledger."""

    def check_reachable(self) -> None:
        self._check_usable()

    def close(self) -> None:
        self._is_closed = True


class _MemoryTables(Transaction):
    """The only transaction object of a `Memory`, whose lock makes transactions exclusive.

    ``undo`` takes back what the current transaction wrote, the last change first.
    """

    def __init__(self) -> None:
        self.public, self.undo = "", list[Callable[[], object]]()
        self._hand_overs: list[HandOver] = []
        self._chains: dict[str, list[Line]] = {}
        self._by_question: defaultdict[tuple[str, str], list[Line]] = defaultdict(list)
        self._debts: dict[tuple[str, str], tuple[Debt, bytes | None]] = {}
        self._unlisted: dict[tuple[str, str], int] = {}

    def owner(self) -> str:
        return self.public

    def hand_overs(self) -> list[HandOver]:
        return [*self._hand_overs]

    def add_hand_over(self, statement: HandOver) -> None:
        self._hand_overs.append(statement)
        self.undo.append(self._hand_overs.pop)

    def names(self) -> list[str]:
        return sorted(self._chains)

    def names_in_lines(self) -> list[str]:
        return self.names()

    def line(self, dataset: str, index: int) -> Line | None:
        chain = self._chains.get(dataset, [])
        if 0 <= index < len(chain) and chain[index].index == index:
            return chain[index]
        return next((line for line in chain if line.index == index), None)

    def last_line(self, dataset: str) -> Line | None:
        chain = self._chains.get(dataset)
        return chain[-1] if chain else None

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
        chain = self._chains.get(dataset, [])
        if question is not None:
            chain = self._by_question.get((dataset, question), [])
        for line in [*chain]:
            if (kinds and line.kind not in kinds) or line.index <= after or line.time < since:
                continue
            asker = line.asker
            if learner is None or (asker and (asker.learner == learner[0] or asker.key == learner[1])):
                yield line

    def page(self, dataset: str, after: int) -> Sequence[Line]:
        return [line for line in self._chains.get(dataset, []) if line.index > after]

    def lock_everything(self) -> None:
        """Nothing to do: a writer is alone already."""

    def lock_dataset(self, dataset: str) -> bool:
        return dataset in self._chains

    def begin(self, line: Line) -> None:
        self._chains[line.dataset] = []
        self.undo.append(lambda: self._chains.pop(line.dataset))
        self.append(line)

    def append(self, *lines: Line) -> None:
        for line in lines:
            # As a database returns it, and independent of what the caller does with its own objects.
            stored = replace(line, detail=json.loads(canonical(line.detail)))
            for chain in (self._chains[line.dataset], self._by_question[line.dataset, line.question]):
                chain.append(stored)
                self.undo.append(chain.pop)

    def debt(self, dataset: str, question: str) -> Debt | None:
        return self._debts.get((dataset, question), (None, None))[0]

    def debts(self) -> list[Debt]:
        return [debt for debt, _ in self._debts.values()]

    def release(self, dataset: str, question: str) -> bytes | None:
        return self._debts.get((dataset, question), (None, None))[1]

    def owe(self, debt: Debt, release: bytes | None = None) -> None:
        key = (debt.dataset, debt.question)
        self._debts[key] = (debt, release)
        self.undo.append(lambda: self._debts.pop(key))

    def change(
        self, debt: Debt, *, state: str | None = None, tries: int | None = None, release: bytes | None = None
    ) -> bool:
        key = (debt.dataset, debt.question)
        before = self._debts.get(key)
        if before is None or before[0].state != OWED:
            return False
        now = before[0]
        after = replace(now, state=state or now.state, tries=now.tries if tries is None else tries)
        self._debts[key] = (after, release)
        self.undo.append(lambda: self._debts.update({key: before}))
        return True

    def give_up(self) -> None:
        for debt in self.debts():
            self.change(debt, state=FAILED)

    def find_orphan(self) -> Debt | None:
        return None

    def unlisted(self) -> list[tuple[str, str, int]]:
        return [(dataset, day, number) for (dataset, day), number in sorted(self._unlisted.items())]

    def count_unlisted(self, dataset: str, day: str, number: int = 1) -> None:
        before = dict(self._unlisted)
        self._unlisted[dataset, day] = before.get((dataset, day), 0) + number
        self.undo.append(lambda: setattr(self, "_unlisted", before))


def open_storage(place: str | os.PathLike[str], *, create: bool = True) -> Storage:
    """Choose the storage of a path or URL; a file that is not there is an error unless ``create``."""
    if os.fspath(place) in (":memory:", "sqlite:///:memory:"):
        return Memory()
    # Importing SQLAlchemy takes longer than fitting an estimator whose budget is in memory.
    from privada.privacy.ledger.database import open_database

    return open_database(place, create=create)


__all__ = [
    "FAILED",
    "KEPT",
    "MOST_TRIES",
    "OWED",
    "Debt",
    "Memory",
    "Storage",
    "Transaction",
    "absent",
    "open_storage",
]
