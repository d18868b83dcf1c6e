"""A shift pair of an ordinary table: which rows are public, which are private, and how they are encoded.

Everything that encodes is public: bounds and categories are stated by the pair (from the data sheet), or
follow from the public side's rows. A category that the public list lacks counts as missing; a number beyond
its bounds is clipped; a missing number is the middle of its bounds and a mark beside it
(`privada.parties.schema`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import BoolArray, FloatArray
from privada.exceptions import InputError
from privada.parties.schema import Category, Number, Schema, is_missing

HALVES = ("development", "final")
MOST_PUBLIC, MOST_TEST = 10_000, 3_000
ROOM = 0.5  # of the public range, added on both sides where no range is documented
FEWEST_OF_A_CATEGORY = 10  # public rows; rarer values count as missing


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Named columns of one length: numbers as floats (NaN is missing), anything else as objects (or None)."""

    columns: Mapping[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Some rows, by index or by mask."""
        return Table({name: values[rows] for name, values in self.columns.items()})

    def with_columns(self, **more: npt.NDArray[Any]) -> Table:
        """The same rows with further or other columns."""
        return Table({**self.columns, **more})


@dataclass(frozen=True, kw_only=True)
class NumberBySource:
    """A number whose public bounds are the public rows' range and half its width more on both sides."""

    name: str
    missing: bool = False

    def stated(self, source: Table) -> Number:
        """The column as the schema states it."""
        values = source[self.name]
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        room = ROOM * (high - low) if high > low else 1.0
        return Number(name=self.name, low=low - room, high=high + room, missing=self.missing)


@dataclass(frozen=True, kw_only=True)
class CategoryBySource:
    """A category whose public list are the values of at least ten public rows; others count as missing."""

    name: str

    def stated(self, source: Table) -> Category:
        """The column as the schema states it."""
        values = source[self.name]
        names, counts = np.unique(values[~is_missing(values)].astype(str), return_counts=True)
        known = tuple(names[counts >= FEWEST_OF_A_CATEGORY].tolist())
        if len(known) < 2:
            raise InputError(f"Expected at least two frequent values of {self.name!r} among the public rows.")
        return Category(name=self.name, values=known, missing=True)


Column = Number | Category | NumberBySource | CategoryBySource


@dataclass(frozen=True, eq=False, repr=False)
class TablePart:
    """Rows as the file has them, the same rows encoded, and their labels."""

    table: Table
    X: FloatArray
    y: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Any) -> TablePart:
        """Some rows."""
        return TablePart(self.table.take(rows), self.X[rows], self.y[rows])


@dataclass(frozen=True, eq=False, repr=False)
class TableSplit:
    """One split of a pair.

    Attributes
    ----------
    schema : Schema
        Public: columns, label and the number of private rows.
    source : TablePart
        Public rows, in random order.
    train, test : TablePart
        Of the private side: what an owner would hold, and what only scores.
    """

    pair: TablePair
    schema: Schema
    source: TablePart
    train: TablePart
    test: TablePart

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Public limits of the encoded features."""
        box = self.schema.box
        return np.asarray(box.low), np.asarray(box.high)

    @property
    def label_bounds(self) -> tuple[float, float]:
        """Public limits of a numeric label."""
        bounds = self.schema.label_bounds
        assert bounds is not None
        return bounds

    @property
    def classes(self) -> tuple[Any, ...]:
        """Public list of the classes."""
        return self.schema.classes.names


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePair:
    """A table, a label, and a rule that says which rows are private.

    Parameters
    ----------
    name : str
        "data set: public side to private side".
    half : "development" or "final"
        Whether it may be looked at while methods change, or only for final figures.
    read : function of the data folder
        The table, without rows whose label is missing.
    columns : tuple
        Features; a rule that splits by a column leaves it out.
    label : Number or Category
        A number is clipped to its bounds on both sides: they are part of the task.
    private : function of the table
        BoolArray of the rows of the private side.
    public : function of the table, optional
        BoolArray of the rows of the public side; all others by default.
    rows : int
        Private rows, at most; of a small side two thirds.
    """

    name: str
    half: str
    read: Callable[[Path | None], Table]
    columns: tuple[Column, ...]
    label: Number | Category
    private: Callable[[Table], BoolArray]
    public: Callable[[Table], BoolArray] | None = None
    rows: int

    def __post_init__(self) -> None:
        _check.one_of(HALVES, half=self.half)
        _check.count(rows=self.rows)

    @property
    def dataset(self) -> str:
        """Name of the table."""
        return self.name.partition(":")[0]

    @property
    def task(self) -> str:
        """What is to be predicted."""
        return "regression" if self.label.label_role == "number" else "classification"

    def split(self, folder: Path | None, seed: int) -> TableSplit:
        """A random split of the private side: at most two thirds train; others, at most 3,000, test."""
        table, rng = self.read(folder), np.random.default_rng(seed)
        there = np.asarray(self.private(table), dtype=np.bool_)
        here = ~there if self.public is None else np.asarray(self.public(table), dtype=np.bool_)
        if (here & there).any():
            raise InputError(f"{self.name}: a row is on both sides.")
        private, public = (rng.permutation(np.flatnonzero(side)) for side in (there, here))
        cut = min(self.rows, 2 * len(private) // 3)
        train, test = private[:cut], private[cut : cut + MOST_TEST]
        source = table.take(public[:MOST_PUBLIC])
        schema = Schema(
            columns=tuple(_stated(each, source) for each in self.columns), label=self.label, size=len(train)
        )
        parts = [_part(schema, part) for part in (source, table.take(train), table.take(test))]
        return TableSplit(self, schema, *parts)


def _stated(column: Column, source: Table) -> Number | Category:
    return column if isinstance(column, (Number, Category)) else column.stated(source)


def _part(schema: Schema, table: Table) -> TablePart:
    """Rows encoded by the schema alone."""
    X = np.hstack([each.encode(_known(each, table[each.name])) for each in schema.columns])
    label = schema.label
    assert label is not None
    y = table[label.name]
    if schema.label_bounds is not None:
        return TablePart(table, X, np.clip(y.astype(np.float64), *schema.label_bounds))
    return TablePart(table, X, np.asarray(y.tolist()))


def _known(column: object, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values of a category that the public list has; any other is missing."""
    if not isinstance(column, Category):
        return values
    found: npt.NDArray[Any] = values.astype(object)
    found[~np.isin(values.astype(str), np.asarray(column.values).astype(str))] = None
    return found


__all__ = [
    "HALVES",
    "CategoryBySource",
    "Column",
    "NumberBySource",
    "Table",
    "TablePair",
    "TablePart",
    "TableSplit",
]
