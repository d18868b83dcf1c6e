"""Rows from any source, as batches of encoded features whose integer sums can be taken.

An answer is a sum of small integer arrays over records. `Rows.total` maps a function over batches
and adds what it returns, so a function of one batch is all that an answerer writes; a Parquet set
larger than memory streams through. Integers are added exactly: the total is the same, bit for
bit, however the rows are divided into batches, on how many threads or machines, and in whatever
order these are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from privada._arrays import IntArray
from privada.exceptions import SchemaError
from privada.parties.compute import Adding, Engine, Handles, Merging
from privada.parties.compute.batch import AT_ONCE, BATCH, Batch
from privada.parties.compute.threads import Threads
from privada.parties.schema import Schema, is_missing
from privada.parties.sources import Source, open_source
from privada.privacy.accounting.filters import Vintage
from privada.privacy.noise import Noise

S = TypeVar("S")
T = TypeVar("T")
Sums = TypeVar("Sums", IntArray, dict[str, IntArray])


class Rows:
    """All rows of one data set under one schema.

    Parameters
    ----------
    data : array, frame, Arrow data, path, URL, database or Source
        A pandas or polars frame (lazy ones, too), an Arrow table, data set or stream; the path of a Parquet
        or CSV file or of a folder of them; a URL such as ``s3://bucket/rows.parquet``;
        `StoredRows` with a dialect of CSV; a `Database`; a `Source` of your own.
    schema : Schema
    y, person : array, optional
        Label and person of each row, beside a NumPy array.
    noise : Noise, optional
        Needed when the unit is a person: rows beyond ``max_rows`` of one
        person are dropped at random, once, before anything else.
    compute : Threads or Cluster, optional
        Where totals are computed. By default on every processor of this process.
    vintage : Vintage, optional
        Leaves out all rows whose date is outside its period. By default none is left out.

    Examples
    --------
    >>> schema = Schema.of_numbers(bounds=(0, 9), width=2)
    >>> rows = Rows(np.array([[1.0, 2.0], [3.0, 4.0]]), schema=schema)
    >>> rows.total(lambda batch: batch.X.astype(np.int64).sum(axis=0)).tolist()
    [4, 6]
    """

    def __init__(
        self,
        data: Any,
        *,
        schema: Schema,
        y: Any = None,
        person: Any = None,
        noise: Noise | None = None,
        compute: Engine | None = None,
        vintage: Vintage | None = None,
    ) -> None:
        self.schema = schema
        self._compute: Engine = Threads() if compute is None else compute
        self._source, self._noise = open_source(data, schema, y, person, vintage), noise
        self._compute.check_source(self._source)
        if schema.person_id is not None and noise is None:
            raise SchemaError("Rows of persons need a noise source to choose which rows are kept.")

    @cached_property
    def _parts(self) -> Handles:
        """Parts that are read at once. Which rows of persons are kept is chosen when this is first used."""
        parts = self._compute.place(self._source, self.schema)
        if self.schema.person_id is None:
            return parts
        parts, people = self._compute.remember(parts, self.schema.person_id)
        # An empty part says nothing about the type of persons, and must not change that of the others.
        people_of_rows = np.concatenate([part for part in people if len(part)] or people)
        chosen = choose_rows(people_of_rows, self.schema, self._noise)
        return self._compute.narrow(parts, _split(chosen, [len(part) for part in people]))

    def __repr__(self) -> str:
        return "<Rows>"

    def total(self, sums: Callable[[Batch], Sums], *, numbers: int = 1) -> Sums:
        """Add up the results of ``sums`` for each batch.

        Parameters
        ----------
        sums : callable
            Of one `Batch`: an array of integers, or a mapping of names to such arrays, whose shapes
            follow from the question; for no rows it returns zeros. It must be pure, and what a
            record adds must depend on that record alone. Several threads may call it at once.
        numbers : int, default=1
            Intermediate numbers that ``sums`` needs for a row: batches are cut so that they fit the memory.

        Returns
        -------
        array or dict of arrays of int64
            The same bits whatever the batches. Additions wrap modulo 2**64 as those of the noise do;
            they never fail because of what the rows contain.
        """
        return self._compute.fold(self._parts, self.schema, sums, Adding(), numbers)

    def merged(self, make: Callable[[Batch], T], merge: Callable[[T, T], T], *, numbers: int = 1) -> T:
        """Merge the results of ``make`` for each batch, if they are not sums: for example, the best t rows.

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
        return self._compute.fold(self._parts, self.schema, make, Merging(merge), numbers)

    def prepared(self, make: Callable[[Batch], T]) -> Prepared[T]:
        """Keep the result of ``make`` for each batch in memory, for answers that sum repeatedly."""
        return Prepared(self._compute, self._compute.prepare(self._parts, self.schema, make))

    def gathered(self) -> Batch:
        """All rows at once, in memory, for answers that are not sums."""
        parts = list(self.batches()) or [Batch.of_none(self.schema)]
        labels = [part.y for part in parts if part.y is not None]
        return Batch(np.concatenate([part.X for part in parts]), np.concatenate(labels) if labels else None)

    def batches(self) -> Iterator[Batch]:
        """Encoded rows in their order, at most `BATCH` at a time."""
        return self._compute.batches(self._parts)

    def reading(self, *, features: frozenset[int] | None, label: bool) -> Rows:
        """These rows, of which only what a question needs is read; see `Question.needed_features`.

        All columns were checked when the rows were loaded. Persons are always read.
        """
        names = self.schema.needed_for(features, label=label)
        if names == self.schema.needed:
            return self
        fewer = copy(self)
        fewer._parts = self._compute.select(self._parts, names)
        return fewer

    def check(self) -> int:
        """Read everything once: errors come now, on the owner's side, before anything is charged.

        Returns the number of rows that count; it never leaves the owner.
        """
        return sum(self._compute.counts(self._parts))

    def at_most(self, size: int, noise: Noise) -> Rows:
        """These rows, or ``size`` of them, if there are more, chosen at random.

        If the first rows were taken, a replaced record that changes the order of a file would change them
        all (the proof is in `privada.methods.reweighting.questions.adaptation`).
        """
        counts = self._compute.counts(self._parts)
        if sum(counts) <= size:
            return self
        chosen = np.zeros(sum(counts), dtype=np.bool_)
        chosen[noise.permutation(len(chosen))[:size]] = True
        fewer = copy(self)
        fewer._parts = self._compute.narrow(self._parts, _split(chosen, counts))
        return fewer

    @contextmanager
    def pinned(self) -> Iterator[Rows]:
        """The rows of one moment, for one answer: one snapshot of a database, files that stay the same.

        Rows that have changed since they were loaded, or change meanwhile, are a `SourceError`. Parts that a
        cluster has lost are brought there again, between two answers only: other rows of a person may be kept
        then.
        """
        if "_parts" in self.__dict__ and not self._compute.has(self._parts):
            del self._parts
        with self._source.pinned() as source:
            yield self if source is self._source else self._from(source)

    def _from(self, source: Source) -> Rows:
        """The same rows as another source has them; which rows of persons are kept is chosen anew."""
        rows = copy(self)
        rows.__dict__.pop("_parts", None)
        rows._source = source
        return rows

    def reopened(self) -> Rows:
        """The rows of the same place as they are there now."""
        return self._from(self._source.reopened())

    @property
    def source(self) -> Source:
        """Where the rows are read from."""
        return self._source

    @property
    def identity(self) -> str | None:
        """Text that differs whenever the rows may be others; None if nothing tells."""
        return self._source.identity()


class Prepared(Generic[T]):
    """The prepared result of each batch, kept where it was computed; see `Rows.prepared`."""

    def __init__(self, compute: Engine, parts: Handles) -> None:
        self._compute, self._parts = compute, parts

    def __repr__(self) -> str:
        return "<Prepared>"

    def total(self, sums: Callable[[T], Sums]) -> Sums:
        """Add up what ``sums`` makes of each batch, as `Rows.total` does."""
        return self._compute.fold_prepared(self._parts, sums, Adding())

    def advanced(self, make: Callable[[T], S]) -> Prepared[S]:
        """What ``make`` makes of each, kept in place of it: the next state of records."""
        return Prepared(self._compute, self._compute.map_prepared(self._parts, make))


def _split(whole: npt.NDArray[np.bool_], lengths: Sequence[int]) -> list[npt.NDArray[np.bool_]]:
    return np.split(whole, np.cumsum(lengths)[:-1])


def choose_rows(people: npt.NDArray[Any], schema: Schema, noise: Noise | None) -> npt.NDArray[np.bool_]:
    """Which rows count so that no person has more than ``max_rows``, chosen at random."""
    assert schema.person_id is not None
    assert schema.max_rows is not None
    if noise is None:
        raise SchemaError("Rows of persons need a noise source to choose which rows are kept.")
    if is_missing(people).any():
        raise SchemaError(f"Column {schema.person_id!r} holds a missing person.")
    codes = number_persons(people, schema.person_id)
    # All rows in random order, then by person: a person's rows stay in random order, and the first count.
    order = noise.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    grouped = codes[order]
    first = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]]) if len(grouped) else np.zeros(0, int)
    rank = np.arange(len(grouped)) - np.repeat(first, np.diff(np.r_[first, len(grouped)]))
    chosen = np.zeros(len(codes), dtype=np.bool_)
    chosen[order[rank < schema.max_rows]] = True
    return chosen


def number_persons(people: npt.NDArray[Any], name: str) -> npt.NDArray[np.intp]:
    """A number for each person. Columns in which two persons might look the same are refused."""
    kinds: set[type] = {people.dtype.type}
    if people.dtype.kind == "O":  # integers are of one type, Python's or NumPy's; true and false are none
        integers = (int, np.integer)
        kinds = {
            int if isinstance(person, integers) and not isinstance(person, bool) else type(person)
            for person in people
        }
    if len(kinds) > 1:
        raise SchemaError(f"Column {name!r} holds persons of several types; write all as strings.")
    kind = next(iter(kinds), int)
    if issubclass(kind, (complex, np.complexfloating)):
        raise SchemaError(f"Column {name!r} holds complex numbers; write persons as integers or strings.")
    if issubclass(kind, (float, np.floating)):
        # A float can stand for a person only where its type has every whole number: float32 below 2**24.
        floats = people.astype(kind)
        bits = np.finfo(floats.dtype).nmant + 1
        if not (np.abs(floats) < 2.0**bits).all():
            raise SchemaError(
                f"Column {name!r} holds persons as {floats.dtype} too large to tell apart: from 2**{bits} on "
                "one number stands for several; write them as integers or strings."
            )
        if not (floats == np.floor(floats)).all():
            raise SchemaError(f"Column {name!r} holds fractions; write persons as integers or strings.")
    try:
        return np.unique(people, return_inverse=True)[1]
    except (TypeError, ArithmeticError):
        raise SchemaError(
            f"Column {name!r} holds persons that have no order; write them as strings."
        ) from None


__all__ = ["AT_ONCE", "BATCH", "Batch", "Prepared", "Rows", "choose_rows", "number_persons"]
