"""The process's own ledger: what private rows given as arrays were used for, over all fits of this process.

Every `fit` of an estimator on arrays is a *use* of its rows, with an owner and a budget of its own. That
alone would state the loss of one fit where a grid search ran ten. So this process remembers, by keyed
fingerprints (`privada.parties.one_process.recognition`), which rows each use had; what a row has lost is what
all its uses cost together (`privada.privacy.accounting.accountant`), and what a fit states as ``spent_`` is
that of the row that has lost most (`Statement`).

That is true only if a row is in the same fits whatever the other rows are. So a use is of a table, or of a
part that was drawn by a secret label for each row. Where fits without a name had different rows that nobody
told apart, nothing is stated.

A use that a ledger or an owner of the caller pays for is noted, too. Its statement is that of the whole
budget, together with the other uses of its rows.

It stores twelve bytes per distinct row and what was charged for each use, and nothing else: no row and
nothing that could be turned back into one. It ends with the process. Worker processes would each forget what
the others did, so they are refused: there, and wherever a loss has to be known later, give ``ledger=``.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError, PrivadaError
from privada.parties.one_process.recognition import (
    UNKNOWN,
    Division,
    Fingerprints,
    Labels,
    Register,
    RowHasher,
    Table,
    key_of,
    keys_of_parts,
    possible_histories,
)
from privada.privacy.accounting.accountant import Price, Use, add_statements, state_total, weakest
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import Ledger
from privada.privacy.ledger.recovery import heads_of
from privada.privacy.receipt import OwnerKey
from privada.privacy.relation import ROW

KEY_OF_URL = "PRIVADA_LEDGER_KEY"  # environment: path of the key that a ledger at a URL was created with
_PUBLIC: ContextVar[bool] = ContextVar("rows that are public", default=False)
_PROCESS = os.getpid()  # a fork of it has another number


@dataclass(eq=False)
class GivenBudget:
    """A budget that others may charge, too: what it states is read from its ledger whenever it is asked for.

    Attributes
    ----------
    identity : str
        Of the budget: its opening line, which no other budget has.
    place : str or None
        Path or URL, by which it can be read later and in other processes.
    stated : Guarantee or None
        What the ledger stated when it could last be read; None before the first charge.
    """

    dataset: str
    identity: str
    place: str | None = None
    ledger: Ledger | None = None
    stated: Guarantee | None = None

    @classmethod
    def of(cls, ledger: Ledger, dataset: str, given: Any) -> GivenBudget:
        """The budget of a data set on an open ledger, which was given as itself or as a path or URL."""
        first = next(ledger.lines(dataset))
        place = None if isinstance(given, Ledger) else os.fspath(given)
        return cls(dataset, first.signature, place, ledger)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "ledger": None}

    def release_ledger(self) -> None:
        """Read it for the last time from a ledger that is closed then, and from its place later."""
        self.read()
        if self.place is not None:
            self.ledger = None

    def read(self) -> Guarantee | None:
        """What everything that was charged to it has cost; as it was last known if it cannot be read."""
        if self.ledger is None and self.place is None:
            return self.stated
        with suppress(PrivadaError, OSError):
            if self.ledger is not None:
                self.stated = self.ledger.spent(self.dataset)
                return self.stated
            with open_ledger(self.place) as ledger:
                if next(ledger.lines(self.dataset)).signature == self.identity:  # else it is another ledger
                    self.stated = ledger.spent(self.dataset)
        return self.stated


def open_ledger(ledger: Any) -> Ledger:
    """A ledger that was given as itself, as a path (its key is ``PATH.key``) or as a URL.

    The key of a ledger at a URL is in the file that the environment variable ``PRIVADA_LEDGER_KEY`` names,
    and its heads are recorded in ``ledger.heads`` beside that. A ledger that does not exist is never created:
    its budget has to be opened first.
    """
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, (str, os.PathLike)):
        raise InputError(f"Expected ledger to be a Ledger, a path or a URL, got {type(ledger).__name__}.")
    place = os.fspath(ledger)
    if "://" not in place or place.startswith("sqlite:///"):
        key = Path(place.removeprefix("sqlite:///") + ".key")
        return Ledger.open(place, OwnerKey.load(key), create=False)
    if not (path := os.environ.get(KEY_OF_URL)):
        raise InputError(f"Expected {KEY_OF_URL} to name the key file of the ledger at a URL.")
    return Ledger.open(place, OwnerKey.load(path), create=False, heads=heads_of(place, Path(path)))


@dataclass(eq=False)
class OpenUse:
    """A use of some rows that may still be charged; its charges are read from its ledger.

    Attributes
    ----------
    uses : int
        Which use it is of the row that was used most, this one included; not counting uses that the same
        ``budget`` paid for.
    budget : GivenBudget or None
        The budget that pays for it, if the caller gave one.
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
    budget: GivenBudget | None = None
    tables: tuple[Table, ...] = ()
    labels: tuple[Labels, ...] = ()
    scope: tuple[str, str] | None = None
    name: str = field(default_factory=lambda: secrets.token_hex(16))

    def prices(self) -> tuple[Price, ...]:
        """What was charged so far."""
        if self.ledger is not None:
            prices = (line.price for line in self.ledger.lines(self.dataset) if line.index >= self.since)
            self.charged = tuple(price for price in prices if price is not None)
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
        if self.budget is not None:
            self.budget.release_ledger()

    def is_paid_with(self, other: OpenUse) -> bool:
        """Whether one budget of the caller pays for both."""
        mine, theirs = self.budget, other.budget
        return mine is not None and theirs is not None and mine.identity == theirs.identity


class ProcessLedger:
    """Which uses each row had.

    Each row has the number of its *history*, the tuple of its uses. Rows that were always used together share
    one, so there are few.
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
        budget: GivenBudget | None = None,
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
        if budget is not None:
            scope = ("budget", budget.identity)
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
                since=0 if budget is None else sum(1 for _ in ledger.lines(dataset)),
                budget=budget,
                tables=tuple(part.table for part in parts),
                labels=parts[0].labels,
                scope=scope,
            )
            # No loss of a row is one of a person: what was used with another unit before is refused.
            for earlier in (
                earlier
                for rows_or_people in noted
                for history in self._histories_of(rows_or_people)
                for earlier in history
            ):
                if earlier.guarantee.unit != guarantee.unit:
                    raise InputError(
                        f"Expected one unit in every fit: some of these rows or persons were used as "
                        f"{earlier.guarantee.unit} before, and now as {guarantee.unit}."
                    )
            # A row may have had any history that its secret labels allow; the longest one counts.
            possible = (
                uses
                for history in self._histories_of(use.rows)
                for uses in possible_histories((*history, use))
                if use in uses
            )
            use.uses = 1 + max((len(_paid_otherwise(uses[:-1], use)) for uses in possible), default=0)
            for rows_or_people in noted:
                self._extend_histories(rows_or_people, use)
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
            table_keys = [key_of(view, people) for view in views]
            parts = self._tables.find(table_keys, _units_and_rows(views, people))
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

    def _histories_of(self, rows: Fingerprints) -> list[tuple[OpenUse, ...]]:
        """The histories that rows have."""
        places = self._place(rows)
        return [self._histories[number] for number in np.unique(self._history[places])]

    def _extend_histories(self, rows: Fingerprints, use: OpenUse) -> None:
        """Append a use to the histories of rows."""
        places = self._place(rows)
        numbers, inverse = np.unique(self._history[places], return_inverse=True)
        extended = []
        for number in numbers:
            history = (*self._histories[number], use)
            key = tuple(map(id, history))
            if key not in self._numbers:
                self._numbers[key] = len(self._histories)
                self._histories.append(history)
            extended.append(self._numbers[key])
        self._history[places] = np.array(extended, dtype=np.int32)[inverse]

    def spent(self, use: OpenUse) -> Guarantee | None:
        """What the rows of a use have lost so far, over all their uses: that of the worst row."""
        # The worst row counts: of all histories that rows of this use have, under any secret labels.
        with self._lock:
            self._check_division(use)
            histories = self._histories_of(use.rows) or [(use,)]
        possible = [uses for history in histories for uses in possible_histories(history) if uses]
        if use.budget is None:
            return weakest([_state(history) or use.guarantee for history in possible])
        of_budget, totals = use.budget.read(), []
        # The budget states all of its own charges, whoever made them; other uses of the rows come on top.
        for history in possible:
            losses = [loss for loss in (of_budget, _state(_paid_otherwise(history, use))) if loss is not None]
            if losses:
                totals.append(add_statements(losses))
        return weakest(totals) if totals else None

    def _check_division(self, use: OpenUse) -> None:
        """Raise `InputError` if another use was charged for what may be another part of the same table."""
        for other in self._named.values():
            if set(other.tables) & set(use.tables) or self._tables.are_apart(use.tables, other.tables):
                continue
            if other.scope == use.scope:
                suspect = use.budget is None  # what a budget's charges mean is for whoever named it to know
            elif None in (other.scope, use.scope):
                suspect = bool(np.isin(use.rows, other.rows).any())
            else:
                suspect = False
            if suspect and other.prices():
                raise InputError(UNKNOWN)

    def _place(self, rows: Fingerprints) -> npt.NDArray[np.intp]:
        """Where rows are; new ones are added, without a use."""
        new = np.setdiff1d(rows, self._rows, assume_unique=True)
        if len(new):
            at = np.searchsorted(self._rows, new)
            self._rows = np.insert(self._rows, at, new)
            self._history = np.insert(self._history, at, 0)
        return np.searchsorted(self._rows, rows)


def _units_and_rows(views: Sequence[Fingerprints], people: Fingerprints | None) -> list[Fingerprints]:
    """The distinct fingerprints of what is protected, and of rows if that is persons."""
    rows = np.unique(np.concatenate(views))
    return [rows] if people is None else [np.unique(people), rows]


def _paid_otherwise(history: Sequence[OpenUse], use: OpenUse) -> list[OpenUse]:
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


def enter_rows(rows: Any, *, budget: GivenBudget | None = None, **more: Any) -> OpenUse | None:
    """Note a use of rows in this process's ledger, as `ProcessLedger.enter` does; None for public rows.

    Raises
    ------
    InputError
        In a worker process, whose ledger would end with it, unless a budget of the caller pays.
    """
    if _PUBLIC.get():
        return None
    if budget is None and is_worker():
        raise InputError(
            "Expected a Dataset with a ledger in a worker process: what it spends would be forgotten with "
            "it. Give the path of a ledger, or fit in one process (n_jobs=1, or threads)."
        )
    return THE_LEDGER.enter(rows, budget=budget, **more)


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


class Statement:
    """What all uses of what was held for a fit cost together, at most: that of the data set that lost most.

    A copy or a pickle in the same process goes on with it. In another process it states what was known when
    it was pickled, and reads given budgets again that have a path or URL.

    Parameters
    ----------
    uses : sequence of OpenUse
    budgets : sequence of GivenBudget
    known : Guarantee or None
        What another process knew.
    is_unknown : bool
        Whether another process could not state it.

    Privacy
    -------
    Neither a statement nor its pickle holds a fingerprint or anything else of the rows.
    """

    def __init__(
        self,
        uses: Sequence[OpenUse] = (),
        budgets: Sequence[GivenBudget] = (),
        known: Guarantee | None = None,
        is_unknown: bool = False,
    ) -> None:
        self._names = tuple(use.name for use in uses)  # a model refers to its rows by a name alone
        self._budgets, self._known, self._is_unknown = tuple(budgets), known, is_unknown

    @property
    def uses(self) -> list[OpenUse]:
        """The uses that this process knows."""
        return [use for name in self._names if (use := find_use(name)) is not None]

    def read(self) -> Guarantee | None:
        """What was lost so far; None for rows that were declared public.

        Raises
        ------
        InputError
            Fits of this process had different rows, and nobody knows how they were divided.
        """
        if self._is_unknown:
            raise InputError(UNKNOWN)
        now = [use.spent() for use in self.uses] + [budget.read() for budget in self._budgets]
        losses = [loss for loss in (self._known, *now) if loss is not None]
        return weakest(losses) if losses else None

    def __repr__(self) -> str:
        stated, is_unknown = self.try_to_read()
        return f"<Statement: {'unknown' if is_unknown else stated}>"

    def __reduce__(self) -> Any:
        budgets = [use.budget for use in self.uses if use.budget is not None]
        return _restore_statement, (self._names, (*budgets, *self._budgets), *self.try_to_read())

    def try_to_read(self) -> tuple[Guarantee | None, bool]:
        """What was lost so far, and whether that is unknown."""
        try:
            return self.read(), False
        except InputError:
            return None, True


def join_statements(statements: Sequence[Statement]) -> Statement:
    """One statement for all."""
    losses = [statement._known for statement in statements if statement._known is not None]
    return Statement(
        [use for statement in statements for use in statement.uses],
        [budget for statement in statements for budget in statement._budgets],
        weakest(losses) if losses else None,
        any(statement._is_unknown for statement in statements),
    )


def _restore_statement(
    names: Sequence[str],
    budgets: Sequence[GivenBudget],
    known: Guarantee | None,
    is_unknown: bool,
) -> Statement:
    uses = [use for name in names if (use := find_use(name)) is not None]
    if names and len(uses) == len(names):
        return Statement(uses)
    return Statement(uses, budgets, known, is_unknown)


__all__ = [
    "GivenBudget",
    "OpenUse",
    "ProcessLedger",
    "Statement",
    "enter_rows",
    "find_use",
    "join_fit",
    "join_statements",
    "note_division",
    "open_ledger",
    "public_rows",
]
