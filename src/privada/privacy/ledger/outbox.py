"""The owner's outbox: what each charged question is owed, and the release once it was drawn.

A question is charged once. The charge and the debt are written in one
transaction, before rows are opened; the release is kept here before it is
delivered anywhere. So whatever happens in between, a process that is killed, a
disk that is full, two processes at once, the question is neither charged again
nor lost: if it is asked again, the kept release is returned, or the answer is drawn
by the next process.

*Why drawing again is sound.* A draw that was not kept never left the owner:
releases are delivered from here only, and `keep` accepts the first one and returns
it to everyone. An answer that failed on the rows is a different matter, because the
failure may reveal something about them: it is marked as failed, for good. So is one whose
process ended `MOST_TRIES` times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from privada.exceptions import AnswerError, LedgerError, LedgerOutageError, TamperError
from privada.privacy.ledger.database.schema import answers, lines
from privada.privacy.ledger.database.store import Store
from privada.privacy.ledger.lines import Line

OWED, KEPT, FAILED = "owed", "kept", "failed"
LEAST_ROOM = 1 << 20  # bytes of the disk that a charge and its notes may need
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


_COLUMNS = (answers.c.dataset, answers.c.question, answers.c.position, answers.c.state, answers.c.tries)
_OF = (answers.c.dataset == bindparam("of")) & (answers.c.question == bindparam("asked"))
_FIND = select(*_COLUMNS).where(_OF)
_RELEASE = select(answers.c.release).where(_OF)
_SET = update(answers).where(_OF & (answers.c.state == OWED))
_ORPHANS = (
    select(answers.c.dataset, answers.c.position)
    .outerjoin(
        lines,
        (lines.c.dataset == answers.c.dataset)
        & (lines.c.position == answers.c.position)
        & (lines.c.question == answers.c.question),
    )
    .where(lines.c.position.is_(None))
    .limit(1)
)


def find(connection: Connection, dataset: str, question: str) -> Debt | None:
    """The debt of a question, None if it was never charged here."""
    row = connection.execute(_FIND, {"of": dataset, "asked": question}).mappings().first()
    return None if row is None else Debt(**row)


def owe(connection: Connection, paid: Line) -> Debt:
    """Write the debt of a charge, in its transaction; it counts as the first try."""
    debt = Debt(dataset=paid.dataset, question=paid.question, position=paid.index, tries=1)
    connection.execute(
        insert(answers),
        {
            "dataset": debt.dataset,
            "question": debt.question,
            "position": debt.position,
            "state": debt.state,
            "tries": debt.tries,
        },
    )
    return debt


def try_again(connection: Connection, debt: Debt) -> Debt:
    """Count one more try, before rows are opened; one too many and the answer has failed."""
    now = find(connection, debt.dataset, debt.question)
    if now is None:
        raise TamperError(f"The debt of question {debt.question[:12]} is gone from the ledger.")
    if now.state != OWED:
        return now
    changed = replace(now, state=FAILED) if now.tries >= MOST_TRIES else replace(now, tries=now.tries + 1)
    _write(connection, changed, state=changed.state, tries=changed.tries)
    return changed


def not_tried(connection: Connection, debt: Debt) -> None:
    """Take one try back: the disk failed, not the answer."""
    _write(connection, debt, tries=debt.tries - 1)


def keep(connection: Connection, debt: Debt, release: bytes) -> bool:
    """Keep a release, unless there is one: the first stays. Say whether this one is kept."""
    return _write(connection, debt, state=KEPT, release=release)


def fail(connection: Connection, debt: Debt) -> None:
    """Mark an answer as failed, for good."""
    _write(connection, debt, state=FAILED)


def give_up(connection: Connection) -> None:
    """Mark all that is owed as failed: under another key, a receipt and its release would not agree."""
    connection.execute(update(answers).where(answers.c.state == OWED).values(state=FAILED))


def kept(connection: Connection, dataset: str, question: str) -> bytes | None:
    """The release that is kept for a question."""
    blob = connection.scalar(_RELEASE, {"of": dataset, "asked": question})
    return None if blob is None else bytes(blob)


def check(connection: Connection) -> None:
    """Raise `TamperError` if a debt has no line that paid for it."""
    orphan = connection.execute(_ORPHANS).first()
    if orphan is not None:
        raise TamperError(
            f"Line {orphan.position} of {orphan.dataset!r}, which paid for an answer that was drawn, "
            "is not in the ledger: lines were lost or edited."
        )


def _write(connection: Connection, debt: Debt, **values: Any) -> bool:
    """Change a debt that is owed still, and say whether it was."""
    done = connection.execute(_SET.values(**values), {"of": debt.dataset, "asked": debt.question})
    return done.rowcount == 1


class Outbox(ABC):
    """The verbs of a ledger that are about answers: what is owed, what is kept, whether there is room."""

    _store: Store

    @abstractmethod
    def _known_as(self, dataset: str) -> str:
        """The name under which the ledger knows a data set."""

    def debt(self, dataset: str, question: str) -> Debt | None:
        """What a question that was charged by `charge_once` is owed, None if it never was."""
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            return find(connection, name, question)

    def keep(self, debt: Debt, release: bytes) -> bytes:
        """Keep a signed release, and return the one to deliver: the first that was kept."""
        try:
            with self._store.writing() as connection:
                first = keep(connection, debt, release)
        except LedgerError:
            with suppress(LedgerError), self._store.writing() as connection:
                not_tried(connection, debt)
            raise
        if first:
            return release
        kept = self.kept(debt.dataset, debt.question)
        if kept is None:
            raise AnswerError("The answer failed in another process; the charge stands.")
        return kept

    def fail(self, debt: Debt) -> None:
        """Note that an answer failed on the rows: it is not drawn again."""
        with self._store.writing() as connection:
            fail(connection, debt)

    def kept(self, dataset: str, question: str) -> bytes | None:
        """The release that was kept for a question, None if there is none."""
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            return kept(connection, name, question)

    def alone(self, dataset: str) -> AbstractContextManager[None]:
        """Answer for a data set while others who would wait, on whatever machines."""
        return self._store.alone(self._known_as(dataset))

    def claim(self, dataset: str) -> None:
        """Be the only process that serves a data set, until the ledger is closed or the process ends.

        Other processes may answer for it meanwhile: this keeps none of them waiting.

        Raises
        ------
        ServedError
            Another process has claimed it.
        """
        self._store.claim(self._known_as(dataset))

    def check_available(self) -> None:
        """Raise `LedgerOutageError` unless the ledger answers and has room.

        It is a `ServedError` if another process took over what this one had claimed.
        """
        self._store.check_reachable()
        self.check_room(0)

    def check_room(self, size: int) -> None:
        """Raise `LedgerOutageError` if a release of so many bytes could not be kept."""
        free = self._store.backend.free_bytes()
        if free is not None and free < 3 * size + LEAST_ROOM:  # the log holds it, then the file, then a copy
            raise LedgerOutageError(
                f"The disk of the ledger {self._store.backend.place} has {free:,} bytes left, too few for "
                f"an answer of up to {size:,}. Nothing was charged."
            )


__all__ = [
    "FAILED",
    "KEPT",
    "MOST_TRIES",
    "OWED",
    "Debt",
    "Outbox",
    "check",
    "fail",
    "find",
    "give_up",
    "keep",
    "kept",
    "owe",
]
