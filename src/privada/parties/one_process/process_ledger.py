"""The process's own ledger: what private rows given as arrays were used for, over all fits of this process.

Every `fit` of an estimator on arrays is a *use* of its rows, with an owner and a budget of its own. That
alone would state the loss of one fit where a grid search made ten. So this process remembers, by keyed
fingerprints (`privada.parties.one_process.fingerprints`), which rows each use had; what a row has lost is
what all its uses cost together (`privada.privacy.accounting.accountant`), and what a fit states as ``spent_``
is that of the row that has lost most.

That is true only if a row is in the same fits whatever the other rows are. So a use is of a table, or of a
part that was drawn by a secret label for each row (`privada.parties.one_process.tables`). Where fits without
a name had different rows that nobody told apart, nothing is stated.

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
from privada.parties.one_process.tables import (
    UNKNOWN,
    Division,
    Labels,
    Register,
    Table,
    key_of,
    keys_of_parts,
    possible_histories,
)
from privada.privacy.accounting.accountant import Price, Use, add_statements, state_total, weakest
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
    tables : tuple of Table
        The table that its rows are a part of; several if that cannot be told.
    labels : tuple
        Which part of the table: its labels in each secret division. ``rows`` are those of the whole table.
    scope : tuple of str, or None
        The name that the caller gave the table: its own, or that of the budget.
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
    tables: tuple[Table, ...] = ()
    labels: tuple[Labels, ...] = ()
    scope: tuple[str, str] | None = None
    name: str = field(default_factory=lambda: secrets.token_hex(16))

    def prices(self) -> tuple[Price, ...]:
        """What was charged so far."""
        if self.ledger is not None:
            found = (line.price for line in self.ledger.lines(self.dataset) if line.index >= self.since)
            self.charged = tuple(price for price in found if price is not None)
        return self.charged

    def spent(self) -> Guarantee | None:
        """What its rows have lost, over all their uses; None before the first charge to a given budget.

        Raises
        ------
        InputError
            Fits of this process had different rows, and nobody knows how they were divided.
        """
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
        self._tables = Register()

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
        table: str | None = None,
    ) -> OpenUse:
        """Note a use of some rows before anything is charged for it.

        Where persons are protected, what counts is the persons; their rows are noted, too, so that nobody
        uses them as rows: a loss for rows says nothing about a person with any number of them. Rows whose
        columns have names are noted in the order of the columns and in that of the names.
        """
        kind = "row" if guarantee.unit == ROW else guarantee.unit.name
        views, people = self._fingerprint(rows, person, columns, kind)
        keys = [key_of(view, people) for view in views]
        scope = None if table is None else ("table", table)
        if given is not None:
            scope = ("budget", given.identity)
        with self._lock:
            parts = self._tables.find(keys, _units_and_rows(views, people), guarantee.relation)
            noted = [
                np.unique(np.concatenate(same)) for same in zip(*(p.table.noted for p in parts), strict=True)
            ]
            use = OpenUse(
                guarantee=guarantee,
                ledger=ledger,
                dataset=dataset,
                rows=noted[0],
                book=self,
                since=0 if given is None else sum(1 for _ in ledger.lines(dataset)),
                given=given,
                tables=tuple(part.table for part in parts),
                labels=parts[0].labels,
                scope=scope,
            )
            for rows_or_people in noted:
                _check_units(self._earlier(rows_or_people), guarantee)
            use.uses = 1 + self._most_earlier_uses(use)
            for rows_or_people in noted:
                self._continue(rows_or_people, use)
            self._named[use.name] = use
        return use

    def divide(
        self,
        rows: Any,
        labels: npt.NDArray[np.integer],
        *,
        count: int,
        has_fixed_sizes: bool = False,
        person: Any = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        """Note a secret division, so that fits on its parts are recognised.

        Parameters
        ----------
        rows : array
            The table that was divided.
        labels : array of int
            Label of each row, from 0 to ``count - 1``, drawn without looking at a row; a person's rows have
            the same.
        count : int
            How many labels there are.
        has_fixed_sizes : bool, default=False
            Whether the number of rows, or of persons, decides how many have each label.
        person : array, default=None
            Person of each row, if persons were divided.
        columns : sequence of str, default=None
            Names of the columns, if they have some.
        """
        views, people = self._fingerprint(rows, person, columns, "row" if person is None else "person")
        keys = keys_of_parts(views, people, labels, count)
        with self._lock:
            whole = [key_of(view, people) for view in views]
            parts = self._tables.find(whole, _units_and_rows(views, people))
            self._tables.divide(parts, Division(count, has_fixed_sizes), keys)

    def join_fit(self, uses: Sequence[OpenUse]) -> None:
        """Note that these are the uses of one fit: its parties have different tables."""
        with self._lock:
            self._tables.tell_apart([table for use in uses for table in use.tables])

    def _fingerprint(
        self, rows: Any, person: Any, columns: Sequence[str] | None, kind: str
    ) -> tuple[list[Fingerprints], Fingerprints | None]:
        """Fingerprints of each row, in one or two orders of its columns, and of the person of each."""
        views = self._hasher.hash_each_row(rows, kind=kind if person is None else "row", columns=columns)
        return views, None if person is None else self._hasher.hash_each_row(person, kind=kind)[0]

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
            if self._is_divided_unknown(use):
                raise InputError(UNKNOWN)
            histories = self._earlier(use.rows) or [(use,)]
        possible = [tuple(each) for history in histories for each in possible_histories(history) if each]
        if use.given is None:
            return weakest([_state(history) or use.guarantee for history in possible])
        paid, beside = use.given.read(), [_state(_beside(history, use)) for history in possible]
        sums = [[each for each in (paid, other) if each is not None] for other in beside]
        stated = [add_statements(each) for each in sums if each]
        return weakest(stated) if stated else None

    def _most_earlier_uses(self, use: OpenUse) -> int:
        """How many uses a row may have had before this one, beside those that the same budget paid for."""
        histories = [(*history, use) for history in self._earlier(use.rows)]
        possible = (uses for history in histories for uses in possible_histories(history) if use in uses)
        return max((len(_beside(uses[:-1], use)) for uses in possible), default=0)

    def _is_divided_unknown(self, use: OpenUse) -> bool:
        """Whether another use was charged for rows that may be another part of the same table."""
        for other in self._named.values():
            if set(other.tables) & set(use.tables) or self._tables.are_apart(use.tables, other.tables):
                continue
            if other.scope == use.scope:
                suspect = use.given is None  # what a budget's charges mean is for whoever named it to know
            elif None in (other.scope, use.scope):
                suspect = bool(np.isin(use.rows, other.rows).any())
            else:
                suspect = False
            if suspect and other.prices():
                return True
        return False

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


def _units_and_rows(views: Sequence[Fingerprints], people: Fingerprints | None) -> list[Fingerprints]:
    """The distinct fingerprints of what is protected, and of rows if that is persons."""
    rows = np.unique(np.concatenate(views))
    return [rows] if people is None else [np.unique(people), rows]


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


def note_division(rows: Any, labels: npt.NDArray[np.integer], **more: Any) -> None:
    """Note a secret division of rows in this process's ledger, as `ProcessLedger.divide` does."""
    if not _PUBLIC.get():
        THE_LEDGER.divide(rows, labels, **more)


def join_fit(uses: Sequence[OpenUse]) -> None:
    """Note in this process's ledger that these are the uses of one fit."""
    THE_LEDGER.join_fit(uses)


def find_use(name: str) -> OpenUse | None:
    """The use of this name, if this process made it."""
    return THE_LEDGER.find(name)


THE_LEDGER = ProcessLedger()

__all__ = ["OpenUse", "ProcessLedger", "enter_rows", "find_use", "join_fit", "note_division", "public_rows"]
