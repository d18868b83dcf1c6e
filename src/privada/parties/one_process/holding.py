"""Who holds the private side of an estimator's fit, and which ledger pays for it.

======================================  ==================================================================
given to the estimator                  charged to
======================================  ==================================================================
an `Owner`                              that owner's ledger
arrays, a `Dataset` with a ledger       the budget of that data set, which has to be open
arrays                                  a budget of this fit alone; the process's own ledger recognises rows
                                        that were used before (`privada.parties.one_process.process_ledger`)
======================================  ==================================================================

With a ledger, every fit asks new questions (`salt_learner`): the rows of a data set may be others each time,
as the folds of a cross-validation are, and an answer that is kept for some of them is not one for others.
"""

from __future__ import annotations

import os
import secrets
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from privada.exceptions import InputError, PrivacyLeakWarning, SchemaError
from privada.parties.in_memory import owner_in_memory
from privada.parties.one_process.process_ledger import OpenUse, enter_rows, note_rows
from privada.parties.owner import Owner
from privada.parties.permissions.policy import Policy
from privada.parties.persons import number_persons, read_persons
from privada.parties.protocol import Ask, Learner, PlannedLearner
from privada.parties.schema import Schema, is_missing
from privada.privacy.accounting.odometer import weakest
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import Ledger
from privada.privacy.receipt import OwnerKey
from privada.privacy.release import Question

T = TypeVar("T")
USED_BEFORE = (
    "Private rows of this fit were used before in this process: guarantee_ is of this fit alone, spent_ of "
    "everything that they were used for. Give dataset=Dataset(name, ledger=...) to charge one budget, which "
    "is a limit."
)
OURS = ("privada", "contextlib")  # between a warning and whoever called
KEY_OF_URL = "PRIVADA_LEDGER_KEY"  # environment: path of the key that a ledger at a URL was made with


class Holding:
    """An owner for one fit, and what its rows have lost.

    Attributes
    ----------
    owner : Owner
        Answers the fit's questions.
    salt : str
        Of the fit's questions; empty where no ledger was given.
    """

    def __init__(
        self,
        owner: Owner,
        *,
        use: OpenUse | None = None,
        salt: str = "",
        stated: bool = True,
        opened: bool = False,
    ) -> None:
        self.owner, self.salt = owner, salt
        self._use, self._stated, self._opened = use, stated, opened
        self.noted: OpenUse | None = None

    @property
    def is_notable(self) -> bool:
        """Whether it is the second, fourth, eighth, … use of one of the rows in this process."""
        uses = 0 if self._use is None else self._use.uses
        return uses > 1 and uses & (uses - 1) == 0 and self.owner.is_private

    def spent(self) -> Guarantee | None:
        """What everything that the rows were used for has cost; None for rows that were declared public."""
        if self._use is not None:
            return self._use.spent()
        return self.owner.ledger.spent(self.owner.dataset) if self._stated else None

    def settle(self) -> None:
        """End the fit: read the charges for the last time, and close a ledger that was opened for it."""
        if self._use is not None:
            self._use.settle()
        if self.noted is not None:
            self.noted.settle()
        if self._opened:
            self.owner.ledger.close()


@contextmanager
def settling(held: Iterable[Holding]) -> Iterator[None]:
    """Settle what is held for a fit at its end, however it ends."""
    holdings = tuple(held)
    try:
        yield
    finally:
        for each in holdings:
            each.settle()


def state_spent(held: Iterable[Holding]) -> Guarantee | None:
    """What all uses of what is held cost together, at most: that of the data set that lost most."""
    known = [spent for each in held if (spent := each.spent()) is not None]
    return weakest(known) if known else None


def warn_of_earlier_uses(held: Iterable[Holding]) -> None:
    """Say that rows were used before, at their second use and whenever their number of uses has doubled."""
    if any(each.is_notable for each in held):
        warnings.warn(USED_BEFORE, PrivacyLeakWarning, stacklevel=_levels_to_caller())


def _levels_to_caller() -> int:
    """How many levels above the caller of this function the code is that called privada."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in OURS:
        frame, levels = frame.f_back, levels + 1
    return levels


def hold_owner(owner: Owner) -> Holding:
    """Hold what an owner has."""
    if not isinstance(owner, Owner):
        raise InputError(f"Expected owner to be an Owner, got {type(owner).__name__}.")
    return Holding(owner)


def hold_rows(
    rows: Any,
    questions: Sequence[Question],
    *,
    schema: Schema,
    budget: Guarantee,
    name: str,
    ledger: Any = None,
    dataset: str | None = None,
    y: Any = None,
    person: Any = None,
    policy: Policy | None = None,
    rehearsal: int | None = None,
    allow_empty: bool = False,
) -> Holding:
    """Hold rows for one fit.

    Parameters
    ----------
    rows, questions, schema, budget, y, policy, rehearsal, allow_empty
        As for `owner_in_memory`; ``budget`` is what the fit may cost by itself.
    name : str
        What the rows are called where no ledger is given.
    ledger : Ledger, path or URL, default=None
        Where the fit is charged.
    dataset : str, default=None
        Name of the data set in that ledger.
    person : array, default=None
        Person of each row.

    Privacy
    -------
    A row is noted as used before anything is charged for it, and stays so if the fit fails.
    """
    more = {"y": y, "person": person, "policy": policy, "rehearsal": rehearsal, "allow_empty": allow_empty}
    if ledger is not None:
        held = _hold_on_ledger(rows, ledger, dataset, schema=schema, **more)
        held.noted = note_rows(
            rows,
            person=person,
            guarantee=budget,
            ledger=held.owner.ledger,
            dataset=held.owner.dataset,
        )
        return held
    if dataset is not None:
        raise InputError(f"Expected ledger= beside dataset={dataset!r}: which ledger has its budget?")
    owner = owner_in_memory(rows, questions, schema=schema, budget=budget, dataset=name, **more)
    use = enter_rows(rows, person=person, guarantee=budget, ledger=owner.ledger, dataset=owner.dataset)
    return Holding(owner, use=use, stated=False)


def count_persons(given: Any) -> int:
    """How many persons there are: public where a person is replaced by another."""
    people = read_persons(given)
    if is_missing(people).any():
        raise SchemaError("Expected a person for each row; one is missing.")
    return len(np.unique(number_persons(people, "person")))


def _hold_on_ledger(rows: Any, given: Any, dataset: str | None, **more: Any) -> Holding:
    """An owner whose budget is the one that is open for a data set."""
    ledger = open_ledger(given)
    try:
        if not dataset:
            known = ", ".join(ledger.datasets()) or "none"
            raise InputError(f"Expected the Dataset to name a budget of its ledger; it has: {known}.")
        keeps = ledger.budget(dataset)
        owner = Owner(
            rows, ledger=ledger, dataset=dataset, budget=keeps.budget, accounting=keeps.name, **more
        )
    except BaseException:
        if ledger is not given:
            ledger.close()
        raise
    return Holding(owner, salt=f"fit {secrets.token_hex(16)}", opened=ledger is not given)


def open_ledger(ledger: Any) -> Ledger:
    """A ledger that was given as itself, as a path (its key is ``PATH.key``) or as a URL.

    The key of a ledger at a URL is in the file that the environment variable ``PRIVADA_LEDGER_KEY`` names.
    A ledger that does not exist is never created: its budget has to be opened first.
    """
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, (str, os.PathLike)):
        raise InputError(f"Expected ledger to be a Ledger, a path or a URL, got {type(ledger).__name__}.")
    place = os.fspath(ledger)
    return Ledger.open(place, OwnerKey.load(_key_of(place)), create=False)


def _key_of(place: str) -> Path:
    if "://" not in place or place.startswith("sqlite:///"):
        return Path(place.removeprefix("sqlite:///") + ".key")
    if not (path := os.environ.get(KEY_OF_URL)):
        raise InputError(f"Expected {KEY_OF_URL} to name the key file of the ledger at a URL.")
    return Path(path)


def salt_learner(learner: Learner[T], salt: str) -> Learner[T]:
    """A learner that asks the same questions with another salt, so that no answer that is kept is theirs."""
    if not salt:
        return learner
    salted = _SaltedLearner(learner, salt)
    if isinstance(learner, PlannedLearner):
        return PlannedLearner(salted, [salt_ask(ask, salt) for ask in learner.asks])
    return salted


def salt_ask(ask: Ask, salt: str) -> Ask:
    """The ask with another salt; its own is kept in it."""
    return replace(ask, question=replace(ask.question, salt=f"{ask.question.salt} {salt}".strip()))


class _SaltedLearner(Generator[Ask | Sequence[Ask], Any, T]):
    def __init__(self, learner: Learner[T], salt: str) -> None:
        self._learner, self._salt = learner, salt

    def send(self, value: Any) -> Ask | Sequence[Ask]:
        return self._salted(self._learner.send(value))

    def throw(self, *error: Any) -> Ask | Sequence[Ask]:
        return self._salted(self._learner.throw(*error))

    def _salted(self, asked: Ask | Sequence[Ask]) -> Ask | Sequence[Ask]:
        if isinstance(asked, Ask):
            return salt_ask(asked, self._salt)
        return [salt_ask(ask, self._salt) for ask in asked]


__all__ = [
    "Holding",
    "count_persons",
    "hold_owner",
    "hold_rows",
    "open_ledger",
    "read_persons",
    "salt_ask",
    "salt_learner",
    "settling",
    "state_spent",
    "warn_of_earlier_uses",
]
