"""Some rows of a data set: a batch that is encoded, and a part that is read in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import SchemaError, SourceError
from privada.parties.schema import Schema
from privada.parties.sources import Source
from privada.parties.tables import Table

BATCH = 65_536
WORTH_COMPILED = 4096  # rows of a batch that are encoded by compiled code
AT_ONCE = 2**24  # numbers that an answer makes of some rows before it adds them up: 128 MB


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Some rows: encoded features and, if the schema has one, the label (codes or numbers)."""

    X: FloatArray
    y: npt.NDArray[Any] | None

    def __repr__(self) -> str:
        return "<Batch>"

    def __len__(self) -> int:
        return len(self.X)

    @property
    def labels(self) -> npt.NDArray[Any]:
        """``y``, where the question has made sure that the schema has a label."""
        assert self.y is not None
        return self.y

    def parts(self, numbers: int) -> Iterator[Batch]:
        """The same rows in parts, so small that ``numbers`` for each of their rows fit the memory.

        How much an answer takes is then known from the question: without this, a long question would
        fail at an owner of many rows and be answered at one of few.

        >>> batch = Batch(np.zeros((5, 1)), None)
        >>> [len(part) for part in batch.parts(AT_ONCE // 2)]
        [2, 2, 1]
        """
        size = max(1, AT_ONCE // max(1, numbers))
        if size >= len(self):
            yield self
            return
        for start in range(0, len(self), size):
            yield self.where(slice(start, start + size))

    def where(self, rows: slice | npt.NDArray[np.bool_]) -> Batch:
        """Some of the rows."""
        return Batch(self.X[rows], None if self.y is None else self.y[rows])

    @classmethod
    def of_none(cls, schema: Schema) -> Batch:
        """No rows, of the schema's width."""
        label = schema.label
        y: Any = None if label is None else np.zeros(0, dtype=label.label_dtype)
        return cls(np.zeros((0, schema.width)), y)


@dataclass(frozen=True, eq=False, repr=False)
class Raw:
    """Columns of some rows as they were read, and where in their part they begin."""

    part: Part
    table: Table
    start: int

    def encode(self) -> Batch:
        """Features and labels of the rows that count."""
        return self.part.encode(self)


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Rows that are read one after another: a whole source, or a part of one."""

    source: Source
    schema: Schema
    counted: npt.NDArray[np.bool_] | None = None  # which rows count; by default all
    people: npt.NDArray[Any] | None = None  # the person of each row when ``counted`` was chosen
    names: tuple[str, ...] | None = None  # columns that are read; by default all that the schema has

    def __repr__(self) -> str:
        return "<Part>"

    def read(self) -> Iterator[Raw]:
        """Rows as they are, at most `BATCH` at a time."""
        start = 0
        for table in self.source.tables(BATCH, self.names):
            rows = _count_rows(table, self.names or self.schema.needed)
            yield Raw(self, table, start)
            start += rows

    def batches(self) -> Iterator[Batch]:
        """Encoded rows that count, at most `BATCH` at a time."""
        for raw in self.read():
            yield raw.encode()

    def encode(self, raw: Raw) -> Batch:
        """Features and labels of those rows that count."""
        schema, table = self.schema, raw.table
        has_label = schema.label is not None and schema.label.name in table
        batch = Batch(encode_features(schema, table), schema.encode_labels(table) if has_label else None)
        if self.people is not None:
            # Which rows are kept was chosen once: of other rows, one person could have any number.
            assert schema.person_id is not None
            people = table[schema.person_id]
            if not np.array_equal(people, self.people[raw.start : raw.start + len(people)]):
                raise SchemaError(
                    "The rows' persons have changed since they were loaded; load the owner again."
                )
        if self.counted is None:
            return batch
        return batch.where(self.counted[raw.start : raw.start + len(batch)])

    def only(self, chosen: npt.NDArray[np.bool_]) -> Part:
        """Those of the rows that count which are chosen."""
        counted = chosen
        if self.counted is not None:
            counted = self.counted.copy()
            counted[self.counted] = chosen
        return replace(self, counted=counted)

    def reading(self, names: tuple[str, ...]) -> Part:
        """The same rows, of which some columns are read."""
        return replace(self, names=names)


def _count_rows(table: Table, names: tuple[str, ...]) -> int:
    """Rows of a table. Compiled code relies on the lengths, and a source may be anybody's."""
    if absent := [name for name in names if name not in table]:
        raise SourceError(f"The source gave no column {absent[0]!r}.")
    lengths = {len(values) for values in table.values()}
    if len(lengths) != 1 or (rows := lengths.pop()) > BATCH:
        raise SourceError(f"The source gave columns of several lengths, or more than {BATCH} rows at once.")
    return rows


def encode_features(schema: Schema, table: Table) -> FloatArray:
    """The same as `Schema.encode_features`, bit by bit, and the same errors.

    In a large table, plain numbers are encoded by compiled code. Features of columns that were not read are
    at their lower bounds: these are allowed values, so a question that needs more than it says gets a wrong
    answer, but not a less private one.
    """
    rows = len(next(iter(table.values())))
    if rows < WORTH_COMPILED and all(column.name in table for column in schema.columns):
        return schema.encode_features(table)
    place = _compile_place()
    X, start = np.empty((rows, schema.width)), 0
    for column in schema.columns:
        end, values = start + len(column.features()), table.get(column.name)
        if values is None:
            X[:, start:end] = [low for low, _ in column.limits()]
        elif not (
            column.is_plain
            and isinstance(values, np.ndarray)
            and values.dtype == np.float64
            and values.ndim == 1
            and place(X, start, values, float(column.low), float(column.high))
        ):
            X[:, start:end] = column.encode(values)  # which raises the error of a value that is not finite
        start = end
    return X


@cache
def _compile_place() -> Callable[[FloatArray, int, FloatArray, float, float], bool]:
    """A compiled function, made when it is first needed: the compiler takes long to import."""
    import numba

    @numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
    def place(X, at, values, low, high):  # type: ignore[no-untyped-def] # pragma: no cover
        """Write clipped values into a column of X; False if one of them is not finite."""
        finite = True
        for i in range(values.shape[0]):
            value = values[i]
            finite &= abs(value) < np.inf
            X[i, at] = min(max(value, low), high)
        return finite

    return place


__all__ = ["AT_ONCE", "BATCH", "Batch", "Part", "Raw", "encode_features"]
