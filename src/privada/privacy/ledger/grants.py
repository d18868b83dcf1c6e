"""What each learner was allowed, line by line: who changed it, from what to what, and when.

The chain is the truth. A charge is checked, in its transaction, against the last line that names the
learner's name or key, so a change counts from the moment that its line is written, for every process.
What an owner's file declares is written as a line when it differs from what the file declared last: a file
that is edited changes the allowance, one that is only read again does not undo what a person decided since.
A file that declares for the first time does not raise what a person decided before, and more than the file
declares, which a person granted, is for the name and key that it was granted to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from privada.exceptions import PrivadaError, TamperError
from privada.privacy.accounting.filters import Allowance, Filter, check_part
from privada.privacy.asker import LONGEST_NAME, Asker, check_line
from privada.privacy.guarantee import Guarantee
from privada.privacy.keys import OwnerKey
from privada.privacy.ledger import rotation
from privada.privacy.ledger.database import table
from privada.privacy.ledger.database.store import Store
from privada.privacy.ledger.heads import Heads
from privada.privacy.ledger.lines import ALLOWANCE, Line
from privada.privacy.receipt import Receipt

FILE = "owner.toml"  # who changes an allowance by declaring another one


class Grants(ABC):
    """The verbs of a ledger that change what one learner may have."""

    key: OwnerKey
    _store: Store
    _heads: Heads

    @abstractmethod
    def _known_as(self, dataset: str) -> str:
        """The name under which the ledger knows a data set."""

    @abstractmethod
    def _append(self, connection: Connection, head: Line, **fields: Any) -> Line:
        """Write the line after a head that is genuine."""

    @abstractmethod
    def budget(self, dataset: str) -> Filter:
        """The filter that keeps the budget of a data set."""

    def allow(self, dataset: str, *, learner: str, key: str, most: Guarantee | None, by: str) -> Receipt:
        """Change what may be spent on a learner's questions; it counts from now on, in every process.

        What the learner has used stays used. The same allowance again changes and writes nothing.

        Parameters
        ----------
        dataset : str
            The data set.
        learner, key : str
            The learner's name and public key, as the owner knows them.
        most : Guarantee or None
            The allowance, a part of the budget in the budget's own terms; None leaves it the whole budget.
        by : str
            The person who decides.

        Returns
        -------
        Receipt
            Of the line that says so.
        """
        check_line(by=by, longest=LONGEST_NAME)
        budget = self.budget(dataset)
        part = None if most is None else check_part(most, budget.budget)
        wanted = Allowance.of(learner, key, part, accounting=budget.name)
        with self._store.writing() as connection:
            head, before = self._head_and_grants(connection, dataset, wanted)
            if before and _is_of(before[-1], wanted) and _granted(before[-1]) == part:
                return before[-1].receipt(rotation.signer(connection, before[-1], self.key.public))
            line = self._grant(connection, head, before, wanted, by=by)
        self._heads.remember(line)
        return line.receipt(self.key.public)

    def declare(self, dataset: str, allowance: Allowance) -> None:
        """Record what an owner's file allows a learner, if the file did not say so when it was last read."""
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            if _stands(_grants(connection, name, allowance), allowance):
                return
        with self._store.writing() as connection:
            head, before = self._head_and_grants(connection, dataset, allowance)
            if _stands(before, allowance):
                return
            line = self._grant(connection, head, before, allowance, by=FILE, declared=True)
        self._heads.remember(line)

    def allowed(self, dataset: str, allowance: Allowance) -> Allowance:
        """The terms of a learner as the chain has them now."""
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            return in_force(connection, name, allowance)

    def _head_and_grants(
        self, connection: Connection, dataset: str, allowance: Allowance
    ) -> tuple[Line, list[Line]]:
        name = self._known_as(dataset)
        return table.locked_last(connection, name), _grants(connection, name, allowance)

    def _grant(
        self,
        connection: Connection,
        head: Line,
        before: list[Line],
        allowance: Allowance,
        *,
        by: str,
        declared: bool = False,
    ) -> Line:
        old, new = (_granted(before[-1]) if before else None), _most(allowance)
        detail = {
            "text": f"may have {new or 'the whole budget'}; before: {old or 'the whole budget'}",
            "old": None if old is None else old.to_dict(),
            "new": None if new is None else new.to_dict(),
            "accounting": "" if allowance.filter is None else allowance.filter.name,
            "declared": declared,
        }
        asker = Asker(allowance.learner, allowance.key)
        return self._append(connection, head, kind=ALLOWANCE, cost=0, detail=detail, asker=asker, approver=by)


def in_force(connection: Connection, dataset: str, allowance: Allowance) -> Allowance:
    """A learner's terms with the allowance of the last line about it; as they are if there is none."""
    lines = _grants(connection, dataset, allowance)
    if not lines:
        return allowance
    most, accounting = _granted(lines[-1]), lines[-1].detail.get("accounting") or None
    made = Allowance.of(allowance.learner, allowance.key, most, accounting=accounting)
    return replace(allowance, filter=made.filter)


def _grants(connection: Connection, dataset: str, allowance: Allowance) -> list[Line]:
    return table.grants(connection, dataset, learner=allowance.learner, key=allowance.key)


def _most(allowance: Allowance) -> Guarantee | None:
    return None if allowance.filter is None else allowance.filter.budget


def _stands(lines: list[Line], allowance: Allowance) -> bool:
    """Whether the allowance in force stays what it is, although an owner's file declares this one."""
    most = _most(allowance)
    if not lines:
        return most is None
    within = _is_within(_granted(lines[-1]), most)
    said = [line for line in lines if line.detail.get("declared")]
    if not said:
        return within
    return _granted(said[-1]) == most and (within or _is_of(lines[-1], allowance))


def _is_of(line: Line, allowance: Allowance) -> bool:
    """Whether a line is about a learner of this very name and key."""
    return line.asker == Asker(allowance.learner, allowance.key)


def _is_within(part: Guarantee | None, most: Guarantee | None) -> bool:
    """Whether an allowance is no larger than another; None is the whole budget."""
    return most is None or (part is not None and part <= most)


def _granted(line: Line) -> Guarantee | None:
    """The allowance that a line grants, None for the whole budget."""
    try:
        plain = line.detail["new"]
        return None if plain is None else Guarantee.from_dict(dict(plain))
    except (PrivadaError, KeyError, TypeError, ValueError):
        raise TamperError(f"{line.where} was edited: it holds no allowance.") from None


__all__ = ["FILE", "Grants", "in_force"]
