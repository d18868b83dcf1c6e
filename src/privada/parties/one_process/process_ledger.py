"""The process's own ledger: what private rows given as arrays were used for, over all fits of this process.

Every `fit` of an estimator on arrays is a *use* of its rows, with an owner and a budget of its own. That
alone would state the loss of one fit where a grid search made ten. So this process remembers, by keyed
fingerprints (`privada.parties.one_process.fingerprints`), which rows each use had; what a row has lost is
what all its uses cost together (`privada.privacy.accounting.odometer`), and what a fit states as ``spent_``
is that of the row that has lost most.

A use that a given ledger or owner pays for is noted, too. Its statement is that of the whole budget, and of
the other uses of its rows beside it.

It holds twelve bytes per distinct row and what was charged for each use, and nothing else: no row and
nothing that could be turned back into one. It ends with the process. Worker processes would each forget
what the others did, so they are refused: there, and wherever a loss has to be known later, give ``ledger=``.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.parties.one_process.fingerprints import Fingerprints, RowHasher
from privada.parties.one_process.given_budget import GivenBudget
from privada.privacy.accounting.odometer import Use, add_statements, state_total, weakest
from privada.privacy.accounting.price import Price
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import Ledger
from privada.privacy.relation import ROW

_PUBLIC: ContextVar[bool] = ContextVar("rows that are public", default=False)
_PROCESS = os.getpid()  # a fork of it has another number


@dataclass(eq=False)
class OpenUse:
    """A use of some rows that may still be charged; its charges are read from its ledger.

    Attributes
    ----------
    uses : int
        Which use it is of the row that was used most, this one included; of one that a given budget pays
        for, beside what that budget paid for.
    given : GivenBudget or None
        The budget that pays for it, if one was given.
    name : str
        By which this process, and no other, knows it; it says nothing of the rows.
    """

    guarantee: Guarantee
    ledger: Ledger | None
    dataset: str
    rows: Fingerprints = field(repr=False)
    book: ProcessLedger = field(repr=False)
    uses: int = 1
    charged: tuple[Price, ...] = ()
    since: int = 0  # lines that the data set had before: a ledger that was given has others' charges, too
    given: GivenBudget | None = None
    name: str = field(default_factory=lambda: secrets.token_hex(16))

    def prices(self) -> tuple[Price, ...]:
        """What was charged so far."""
        if self.ledger is not None:
            found = (line.price for line in self.ledger.lines(self.dataset) if line.index >= self.since)
            self.charged = tuple(price for price in found if price is not None)
        return self.charged

    def spent(self) -> Guarantee | None:
        """What its rows have lost, over all their uses; None before the first charge to a given budget."""
        return self.book.spent(self)

    def settle(self) -> None:
        """Read the charges for the last time; the ledger may be forgotten."""
        self.prices()
        self.ledger = None
        if self.given is not None:
            self.given.release_ledger()

    def is_paid_with(self, other: OpenUse) -> bool:
        """Whether one given budget pays for both."""
        mine, theirs = self.given, other.given
        return mine is not None and theirs is not None and mine.identity == theirs.identity


class ProcessLedger:
    """Which uses each row had.

    Each row has the number of its *history*, the tuple of its uses. Rows that were always used together
    share one, so there are few.
    """

    def __init__(self) -> None:
        self._hasher = RowHasher()
        self._lock = threading.Lock()
        self._rows: Fingerprints = np.zeros(0, dtype=np.uint64)
        self._history: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._histories: list[tuple[OpenUse, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._named: dict[str, OpenUse] = {}

    def __repr__(self) -> str:
        return "<ProcessLedger>"

    def __reduce__(self) -> Any:
        raise TypeError("What a process used belongs to it; it cannot be pickled or copied.")

    def enter(
        self,
        rows: Any,
        *,
        guarantee: Guarantee,
        ledger: Ledger,
        dataset: str,
        person: Any = None,
        columns: Sequence[str] | None = None,
        given: GivenBudget | None = None,
    ) -> OpenUse:
        """Note a use of some rows before anything is charged for it.

        Where persons are protected, what counts is the persons; their rows are noted, too, so that nobody
        uses them as rows: a loss for rows says nothing about a person with any number of them. Rows whose
        columns have names are noted in the order of the columns and in that of the names.
        """
        found = self._hasher.hash_rows(rows, columns=columns)
        noted = [found]
        if guarantee.unit != ROW:
            found = self._hasher.hash_rows(rows if person is None else person, kind=guarantee.unit.name)
            noted = [found] if person is None else [found, *noted]
        use = OpenUse(guarantee=guarantee, ledger=ledger, dataset=dataset, rows=found, book=self, given=given)
        if given is not None:
            use.since = sum(1 for _ in ledger.lines(dataset))
        with self._lock:
            for each in noted:
                _check_units(self._earlier(each), guarantee)
            use.uses = 1 + max((len(_beside(each, use)) for each in self._earlier(found)), default=0)
            for each in noted:
                self._continue(each, use)
            self._named[use.name] = use
        return use

    def find(self, name: str) -> OpenUse | None:
        """The use of this name; None in a process that did not make it."""
        return self._named.get(name)

    def _earlier(self, rows: Fingerprints) -> list[tuple[OpenUse, ...]]:
        """The histories that rows have."""
        places = self._place(rows)
        return [self._histories[number] for number in np.unique(self._history[places])]

    def _continue(self, rows: Fingerprints, use: OpenUse) -> None:
        """Let the histories of rows go on with a use."""
        places = self._place(rows)
        numbers, which = np.unique(self._history[places], return_inverse=True)
        renewed = np.array([self._followed_by(number, use) for number in numbers], dtype=np.int32)
        self._history[places] = renewed[which]

    def spent(self, use: OpenUse) -> Guarantee | None:
        """What the rows of a use have lost so far, over all their uses: that of the worst row."""
        with self._lock:
            histories = self._earlier(use.rows) or [(use,)]
        if use.given is None:
            return weakest([_state(history) or use.guarantee for history in histories])
        paid, beside = use.given.read(), [_state(_beside(history, use)) for history in histories]
        sums = [[each for each in (paid, other) if each is not None] for other in beside]
        stated = [add_statements(each) for each in sums if each]
        return weakest(stated) if stated else None

    def _place(self, rows: Fingerprints) -> npt.NDArray[np.intp]:
        """Where rows are; new ones are added, without a use."""
        new = np.setdiff1d(rows, self._rows, assume_unique=True)
        if len(new):
            at = np.searchsorted(self._rows, new)
            self._rows = np.insert(self._rows, at, new)
            self._history = np.insert(self._history, at, 0)
        return np.searchsorted(self._rows, rows)

    def _followed_by(self, number: Any, use: OpenUse) -> int:
        """The number of a history that goes on with a use."""
        longer = (*self._histories[number], use)
        key = tuple(map(id, longer))
        if key not in self._numbers:
            self._numbers[key] = len(self._histories)
            self._histories.append(longer)
        return self._numbers[key]


def _check_units(histories: Sequence[tuple[OpenUse, ...]], guarantee: Guarantee) -> None:
    """Refuse rows or persons that were used with another unit before: no loss of one is one of the other."""
    for use in (use for history in histories for use in history):
        if use.guarantee.unit != guarantee.unit:
            raise InputError(
                f"Expected one unit in every fit: some of these rows or persons were used as "
                f"{use.guarantee.unit} before, and now as {guarantee.unit}."
            )


def _beside(history: Sequence[OpenUse], use: OpenUse) -> list[OpenUse]:
    """The uses of a history that the budget of this one does not pay for."""
    return [other for other in history if not other.is_paid_with(use)]


def _state(history: Sequence[OpenUse]) -> Guarantee | None:
    """The guarantee of one history; None if nothing was charged. A use that failed before cost nothing."""
    charged = [Use(guarantee=use.guarantee, prices=use.prices()) for use in history]
    paid = [use for use in charged if use.prices]
    return state_total(paid) if paid else None


@contextmanager
def public_rows() -> Iterator[None]:
    """Fit on rows that are public, as experiments on published tables do: nothing is noted or stated.

    Estimators that are fitted inside have ``spent_ = None``.
    """
    token = _PUBLIC.set(True)
    try:
        yield
    finally:
        _PUBLIC.reset(token)


def is_worker() -> bool:
    """Whether another process started this one to work for it."""
    return multiprocessing.parent_process() is not None or os.getpid() != _PROCESS


def enter_rows(rows: Any, *, given: GivenBudget | None = None, **more: Any) -> OpenUse | None:
    """Note a use of rows in this process's ledger, as `ProcessLedger.enter` does; None for public rows.

    Raises
    ------
    InputError
        In a worker process, whose ledger would end with it, unless a given budget pays.
    """
    if _PUBLIC.get():
        return None
    if given is None and is_worker():
        raise InputError(
            "Expected a Dataset with a ledger in a worker process: what it spends would be forgotten with "
            "it. Give the path of a ledger, or fit in one process (n_jobs=1, or threads)."
        )
    return THE_LEDGER.enter(rows, given=given, **more)


def find_use(name: str) -> OpenUse | None:
    """The use of this name, if this process made it."""
    return THE_LEDGER.find(name)


THE_LEDGER = ProcessLedger()

__all__ = ["OpenUse", "ProcessLedger", "enter_rows", "find_use", "public_rows"]
