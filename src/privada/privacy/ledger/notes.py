"""Lines that cost nothing: what a person decided, what was refused, what was disclosed.

*Decisions.* A person approves or refuses a question by its digest, once; the first
decision stands, until somebody reconsiders. It binds the question and, if a learner is named,
only that learner's asking.

*Refusals.* A refusal of a learner that the owner knows is a line of the chain: whose
question, and the reason in public words. Nobody can fill the disk by being refused: the
same refusal is written once, each learner gets at most `MOST_REFUSALS` such lines a day,
and refusals of anybody else get none. What has no line is counted by day, in one row
of the table ``unlisted``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

from sqlalchemy import Connection, insert, select, update

from privada._text import bounded, printable_line
from privada.exceptions import InputError, PolicyError
from privada.privacy.asker import LONGEST_NAME, Asker, check_line
from privada.privacy.keys import OwnerKey
from privada.privacy.ledger import rotation
from privada.privacy.ledger.database import table
from privada.privacy.ledger.database.schema import unlisted
from privada.privacy.ledger.database.store import Store
from privada.privacy.ledger.heads import Heads
from privada.privacy.ledger.lines import (
    ALLOWANCE,
    APPROVAL,
    BUDGET,
    CHARGE,
    COPY,
    KEY,
    REFUSAL,
    RESTORE,
    Line,
    check_digest,
    check_text,
    moment,
)
from privada.privacy.receipt import Receipt

MOST_REFUSALS = 100  # lines that one learner's refusals may fill in a day
_TAKEN = (BUDGET, CHARGE, KEY, APPROVAL, REFUSAL, COPY, ALLOWANCE, RESTORE)


class Notes(ABC):
    """The verbs of a ledger that charge nothing."""

    key: OwnerKey
    _store: Store
    _heads: Heads

    @abstractmethod
    def _known_as(self, dataset: str) -> str:
        """The name under which the ledger knows a data set."""

    @abstractmethod
    def _append(self, connection: Connection, head: Line, **fields: Any) -> Line:
        """Write the line after a head that is genuine."""

    def note(
        self,
        dataset: str,
        kind: str = "disclosure",
        *,
        text: str,
        question: str = "",
        asker: Asker | None = None,
    ) -> Receipt:
        """Write a line that costs nothing: what it records is *not* differentially private.

        Parameters
        ----------
        dataset : str
            The data set.
        kind : str, default="disclosure"
            One lower-case word: rows that went to a named curator.
        text : str
            What happened, in words. Never a row.
        question : str, default=""
            Digest of the question.
        asker : Asker, optional
            The learner that asked.
        """
        if not re.fullmatch(r"[a-z]{1,40}", str(kind)) or kind in _TAKEN:
            raise InputError(
                f"Expected kind to be a lower-case word other than {', '.join(_TAKEN)}, got {kind!r:.80}."
            )
        check_text(text=text, longest=10_000)
        if question:
            check_digest(question=question)
        detail = {"text": text, "guarantee": "not differentially private"}
        name = self._known_as(dataset)
        with self._store.writing() as connection:
            head = table.locked_last(connection, name)
            line = self._append(
                connection, head, kind=kind, cost=0, detail=detail, question=question, asker=asker
            )
        return self._written(line)

    def approve(
        self, dataset: str, question: str, *, by: str, asker: Asker | None = None, reconsider: bool = False
    ) -> Receipt:
        """Record that a person approves a question; approving again changes nothing.

        Parameters
        ----------
        dataset : str
            The data set.
        question : str
            The whole digest of the question.
        by : str
            The person's name.
        asker : Asker, optional
            The learner to whom it may be answered; by default, whoever may ask.
        reconsider : bool, default=False
            Whether an earlier decision may be replaced.

        Raises
        ------
        PolicyError
            It was decided otherwise before.
        """
        return self._decide(dataset, APPROVAL, question, by, "approved", asker, reconsider=reconsider)

    def reject(
        self,
        dataset: str,
        question: str,
        *,
        by: str,
        reason: str,
        asker: Asker | None = None,
        reconsider: bool = False,
    ) -> Receipt:
        """Record that a person refuses a question, with a reason that the learner reads; see `approve`."""
        check_line(reason=reason, longest=1000)
        return self._decide(dataset, REFUSAL, question, by, reason, asker, reconsider=reconsider)

    def _decide(
        self,
        dataset: str,
        kind: str,
        question: str,
        by: str,
        text: str,
        asker: Asker | None,
        *,
        reconsider: bool,
    ) -> Receipt:
        check_digest(question=question)
        check_line(by=by, longest=LONGEST_NAME)
        name = self._known_as(dataset)
        with self._store.writing() as connection:
            head = table.locked_last(connection, name)
            before = _last_decision(table.on_question(connection, name, question), asker)
            if before is not None and not reconsider:
                return _confirmed(before, kind, rotation.signer(connection, before, self.key.public))
            made = {"question": question, "approver": by, "asker": asker}
            line = self._append(connection, head, kind=kind, cost=0, detail={"text": text}, **made)
        return self._written(line)

    def decision(self, dataset: str, question: str, *, asker: Asker | None = None) -> Line | None:
        """What a person last decided on a question of this learner, None if nobody has."""
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            return _last_decision(table.on_question(connection, name, question), asker)

    def refuse(self, dataset: str, *, question: str, reason: str, asker: Asker | None = None) -> None:
        """Record that a question is not answered; nothing is charged.

        Parameters
        ----------
        dataset : str
            The data set.
        question : str
            The digest of the question.
        reason : str
            Why, in public words.
        asker : Asker, optional
            A learner that the owner knows, by the owner's name for it. Anybody else's refusal is counted.
        """
        check_digest(question=question)
        text = printable_line(bounded(reason))
        name = self._known_as(dataset)
        with self._store.writing() as connection:
            head = table.locked_last(connection, name)
            there = table.on_question(connection, name, question)
            if any(_says(line, text, asker) for line in there):
                return
            if asker is None or _is_full(connection, head, asker):
                _count(connection, head)
                return
            detail = {"text": text}
            line = self._append(
                connection, head, kind=REFUSAL, cost=0, detail=detail, question=question, asker=asker
            )
        self._written(line)

    def unlisted(self, dataset: str) -> dict[str, int]:
        """How many refusals got no line, by day (UTC)."""
        query = select(unlisted.c.day, unlisted.c.refusals).where(
            unlisted.c.dataset == self._known_as(dataset)
        )
        with self._store.reading() as connection:
            return {row.day: row.refusals for row in connection.execute(query.order_by(unlisted.c.day))}

    def _written(self, line: Line) -> Receipt:
        self._heads.remember(line)
        return line.receipt(self.key.public)


def _confirmed(before: Line, kind: str, signed_by: str) -> Receipt:
    """The receipt of the same decision, made before; another one is an error."""
    if before.kind == kind:
        return before.receipt(signed_by)
    what = "approved" if before.kind == APPROVAL else "refused"
    raise PolicyError(
        f"Question {before.question[:12]} was {what} by {before.approver} on {before.time[:10]}; "
        "say reconsider to decide otherwise."
    )


def _last_decision(lines: list[Line], asker: Asker | None) -> Line | None:
    """The last line by which a person decided, for everybody or for this learner."""
    key = None if asker is None else asker.key
    decided = (line for line in lines if line.approver and line.kind in (APPROVAL, REFUSAL))
    found = [line for line in decided if line.asker is None or line.asker.key == key]
    return found[-1] if found else None


def _says(line: Line, text: str, asker: Asker | None) -> bool:
    """Whether a line is this very refusal of this learner."""
    same = asker is not None and line.asker is not None and line.asker.key == asker.key
    return same and line.kind == REFUSAL and line.detail.get("text") == text


def _is_full(connection: Connection, head: Line, asker: Asker) -> bool:
    day = moment(head)[:10]
    listed = table.refusals(connection, head.dataset, learner=asker.learner, key=asker.key, since=day)
    return listed >= MOST_REFUSALS


def _count(connection: Connection, head: Line) -> None:
    """Count one more refusal without a line."""
    here = {"dataset": head.dataset, "day": moment(head)[:10]}
    row = (unlisted.c.dataset == here["dataset"]) & (unlisted.c.day == here["day"])
    more = update(unlisted).where(row).values(refusals=unlisted.c.refusals + 1)
    if not connection.execute(more).rowcount:
        connection.execute(insert(unlisted).values(refusals=1, **here))


__all__ = ["MOST_REFUSALS", "Notes"]
