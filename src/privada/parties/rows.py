"""Rows from any source, as batches of encoded features whose integer sums can be taken.

An answer is a sum of small integer arrays over records. `Rows.total` maps a function over batches
and adds what it returns, so a function of one batch is all that an answerer writes; a Parquet set
larger than memory streams through. Integers are added exactly: the total is the same, bit for
bit, however the rows are divided into batches and in whatever order these are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from privada.exceptions import AnswerError, SchemaError
from privada.parties.persons import bounded
from privada.parties.schema import Category, Schema
from privada.parties.sources import Table, open_source
from privada.privacy.noise import Noise

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
T = TypeVar("T")
Sums = TypeVar("Sums", IntArray, dict[str, IntArray])
BATCH = 65_536
AT_ONCE = 2**24  # numbers that an answer makes of some rows before it adds them up: 128 MB
WORTH_A_THREAD = 4096  # rows of a batch that is read in the background


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
            end = start + size
            yield Batch(self.X[start:end], None if self.y is None else self.y[start:end])


class Rows:
    """All rows of one data set under one schema.

    Parameters
    ----------
    data : array, frame, Arrow table, or path of a Parquet or CSV file or of a Parquet directory
    schema : Schema
    y, person : array, optional
        Label and person of each row, beside a NumPy array.
    noise : Noise, optional
        Needed when the unit is a person: rows beyond ``max_rows`` of one
        person are dropped at random, once, before anything else.

    Examples
    --------
    >>> schema = Schema.of_numbers(bounds=(0, 9), width=2)
    >>> rows = Rows(np.array([[1.0, 2.0], [3.0, 4.0]]), schema=schema)
    >>> rows.total(lambda batch: batch.X.astype(np.int64).sum(axis=0)).tolist()
    [4, 6]
    """

    def __init__(
        self, data: Any, *, schema: Schema, y: Any = None, person: Any = None, noise: Noise | None = None
    ) -> None:
        self.schema = schema
        self._source = open_source(data, schema, y, person)
        self._people = np.array(self._source.column(schema.person_id)) if schema.person_id else None
        self._kept = None if self._people is None else bounded(self._people, schema, noise)

    def __repr__(self) -> str:
        return "<Rows>"

    def total(self, sums: Callable[[Batch], Sums], *, numbers: int = 1) -> Sums:
        """Add up what ``sums`` makes of each batch.

        Parameters
        ----------
        sums : callable
            Of one `Batch`: an array of integers, or a mapping of names to such arrays, whose shapes
            follow from the question; of no rows it returns zeros. It must be pure, and what a
            record adds must depend on that record alone.
        numbers : int, default=1
            Numbers that ``sums`` makes of each row on the way: batches are cut so that they fit the memory.

        Returns
        -------
        array or dict of arrays of int64
            The same bits whatever the batches. Additions wrap modulo 2**64 as those of the noise do;
            they never fail because of what the rows contain.
        """
        return _added(map(sums, self._parts(numbers)))

    def merged(self, make: Callable[[Batch], T], merge: Callable[[T, T], T], *, numbers: int = 1) -> T:
        """Merge what ``make`` makes of each batch, where that is not a sum: the best t of all rows, say.

        Parameters
        ----------
        make : callable
            Of one `Batch`, also of one without rows; pure.
        merge : callable
            Of two such results; it may change and return the first. What it keeps must not depend on the
            order in which results are merged.
        numbers : int, default=1
            As in `total`.
        """
        return reduce(merge, map(make, self._parts(numbers)))

    def prepared(self, make: Callable[[Batch], T]) -> Prepared[T]:
        """Keep the result of ``make`` for each batch in memory, for answers that sum repeatedly."""
        return Prepared(map(make, self._parts(1)))

    def gathered(self) -> Batch:
        """All rows at once, in memory, for answers that are not sums."""
        parts = list(self._parts(1))
        labels = [part.y for part in parts if part.y is not None]
        return Batch(np.concatenate([part.X for part in parts]), np.concatenate(labels) if labels else None)

    def batches(self) -> Iterator[Batch]:
        """Encoded rows, at most `BATCH` at a time."""
        start = 0
        for table in self._source.tables(BATCH):
            batch = self._encoded(table)
            if self._kept is not None:
                self._check_people(table, start)
                keep = self._kept[start : start + len(batch)]
                start += len(batch)
                batch = Batch(batch.X[keep], None if batch.y is None else batch.y[keep])
            yield batch

    def check(self) -> int:
        """Read everything once: errors come now, on the owner's side, before anything is charged.

        Returns the number of rows that count; it never leaves the owner.
        """
        return sum(len(batch) for batch in self.batches())

    def _parts(self, numbers: int) -> Iterator[Batch]:
        """Batches that fit the memory. The first one has no rows, so every answer is also one of none."""
        yield self._nothing
        for batch in read_ahead(self.batches()):
            yield from batch.parts(numbers)

    @property
    def _nothing(self) -> Batch:
        label = self.schema.label
        codes = np.zeros(0, dtype=np.int64 if isinstance(label, Category) else np.float64)
        return Batch(np.zeros((0, self.schema.width)), None if label is None else codes)

    def _check_people(self, table: Table, start: int) -> None:
        """Which rows are kept was chosen once: of other rows, one person could have any number."""
        assert self._people is not None
        assert self.schema.person_id is not None
        people = table[self.schema.person_id]
        if not np.array_equal(people, self._people[start : start + len(people)]):
            raise SchemaError("The rows' persons have changed since they were loaded; load the owner again.")

    def _encoded(self, table: Table) -> Batch:
        X = self.schema.encode_features(table)
        return Batch(X, None if self.schema.label is None else self.schema.encode_labels(table))


class Prepared(Generic[T]):
    """The prepared result of each batch, in memory; see `Rows.prepared`."""

    def __init__(self, parts: Iterable[T]) -> None:
        self._parts = list(parts)

    def __repr__(self) -> str:
        return "<Prepared>"

    def total(self, sums: Callable[[T], Sums]) -> Sums:
        """Add up what ``sums`` makes of each batch, as `Rows.total` does."""
        return _added(map(sums, self._parts))


def _added(results: Iterator[Sums]) -> Sums:
    """The sum of all results, of which the first is that of no rows.

    A result may be large: each is forgotten before the next one is made.
    """
    first = next(results)
    if not isinstance(first, dict):
        total = _zeros(first)
        del first
        for result in results:
            _add(total, result)
            del result
        return total
    totals = {name: _zeros(array) for name, array in first.items()}
    del first
    for result in results:
        if result.keys() != totals.keys():
            raise AnswerError("Sums have other names for one batch than for another.")
        for name, total in totals.items():
            _add(total, result[name])
        del result
    return totals


def _zeros(nothing: IntArray) -> IntArray:
    """Where a sum begins: at what is said of no rows, if that is nothing."""
    if np.any(nothing):
        raise AnswerError("Sums over no rows are not zero.")
    total = np.zeros(np.shape(nothing), dtype=np.int64)
    _add(total, nothing)
    return total


def _add(total: IntArray, more: IntArray) -> None:
    if np.shape(more) != total.shape or not np.can_cast(np.asarray(more).dtype, np.int64):
        raise AnswerError("Sums are not integers, or have another shape for one batch than for another.")
    total += more


def read_ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches, each read in the background while the one before it is used."""
    first = next(batches, None)
    if first is None:
        return
    if len(first) < WORTH_A_THREAD:
        yield first
        yield from batches
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming: Future[Batch | None] = pool.submit(next, batches, None)
        yield first
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


__all__ = ["AT_ONCE", "BATCH", "Batch", "Prepared", "Rows", "read_ahead"]
