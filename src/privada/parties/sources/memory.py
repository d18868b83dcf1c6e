"""Rows, or plans of rows, that are objects of this process: arrays, frames, lazy frames, Dask collections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError, SourceError
from privada.parties.schema import Schema
from privada.parties.sources.files import ArrowSource
from privada.parties.sources.source import COLUMN_ROWS, Source, join_values
from privada.parties.tables import (
    Table,
    as_arrow,
    check_names,
    raise_if_out_of_reach,
    read_batch,
    read_values,
)


def read_persons(values: Any) -> npt.NDArray[Any]:
    """An array of persons. A list's are taken as they are: a common type would make one of 1 and "1"."""
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values)


class ArraySource(Source):
    """A NumPy matrix, with labels and persons beside it."""

    def __init__(self, data: Any, schema: Schema, y: Any = None, person: Any = None) -> None:
        X, width = np.asarray(data), len(schema.columns)
        if X.ndim != 2 or X.shape[1] != width:
            shape = f"(rows, {X.shape[1:]})"
            raise SchemaError(f"Expected rows of {width} columns, got an array of shape {shape}.")
        self._columns = {column.name: X[:, i] for i, column in enumerate(schema.columns)}
        self._height = len(X)
        if schema.label is not None:
            self._add(schema.label.name, y, "label")
        if schema.person_id is not None:
            self._add(schema.person_id, person, "person")

    def _add(self, name: str, values: Any, what: str) -> None:
        """Add a column that is passed beside the matrix."""
        if values is None:
            raise SchemaError(f"The schema has a {what}; pass it beside the array.")
        column = read_persons(values) if what == "person" else np.asarray(values)
        if column.ndim != 1:
            shape = f"(rows, {', '.join(map(str, column.shape[1:]))})" if column.ndim else "()"
            raise SchemaError(f"Expected one {what} for each row, got an array of shape {shape}.")
        if len(column) != self._height:
            raise SchemaError(f"Expected one {what} for each row; the lengths differ.")
        self._columns[name] = column

    @classmethod
    def claims(cls, data: Any) -> bool:
        return isinstance(data, (np.ndarray, list, tuple))

    @property
    def is_held(self) -> bool:
        return True

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for start in range(0, self._height, size):
            yield {name: self._columns[name][start : start + size] for name in names or self._columns}

    def column(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]


class FrameSource(ArrowSource):
    """A pandas or polars frame, an Arrow table, batch or stream, or a data set of Arrow's."""

    @classmethod
    def claims(cls, data: Any) -> bool:
        # Claims are disjoint, so that their order means nothing: plans of frames look like frames.
        if LazyFrameSource.claims(data) or Collection.claims(data):
            return False
        return any(hasattr(data, name) for name in ("__arrow_c_stream__", "iloc", "to_batches"))

    @classmethod
    def open(cls, data: Any, schema: Schema) -> Source:
        import pyarrow.dataset as ds

        if isinstance(data, ds.Dataset):
            return cls(data, schema)
        table = as_arrow(data)
        check_names(table.schema.names, ())
        return cls(ds.dataset(table), schema)


class LazyFrameSource(Source):
    """Rows of a polars lazy frame, computed again for each reading, so the plan must not be random."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        self._frame, self._schema = frame, schema
        check_names(self._compute(lambda: frame.collect_schema().names()), schema.needed)

    @classmethod
    def claims(cls, data: Any) -> bool:
        return hasattr(data, "collect_schema") and hasattr(data, "collect_batches")

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for batch in self._batches(names or self._schema.needed, size):
            yield read_batch(batch, coded=self._schema.coded)

    def column(self, name: str) -> npt.NDArray[Any]:
        return join_values(read_values(batch.column(0)) for batch in self._batches((name,), COLUMN_ROWS))

    def _batches(self, names: Sequence[str], size: int) -> Iterator[Any]:
        columns = self._frame.select(list(names))
        frames = iter(columns.collect_batches(chunk_size=size, maintain_order=True, engine="streaming"))
        while (frame := self._compute(lambda: next(frames, None))) is not None:
            for start in range(0, frame.height, size):  # a chunk may be larger than what was asked for
                yield from frame.slice(start, size).to_arrow().combine_chunks().to_batches()

    def _compute(self, work: Any) -> Any:
        import polars as pl

        try:
            return work()
        except (pl.exceptions.PolarsError, OSError) as error:  # its message may show a value
            raise_if_out_of_reach(error, "The lazy frame")
            raise SourceError(f"The lazy frame cannot be computed: {type(error).__name__}.") from None


@dataclass(frozen=True, eq=False, repr=False)
class Collection(Source):
    """A Dask data frame: its partitions are the parts, and stay where they are."""

    frame: Any
    schema: Schema

    def __post_init__(self) -> None:
        check_names(list(self.frame.columns), self.schema.needed)

    @classmethod
    def claims(cls, data: Any) -> bool:
        """Dask is not imported for it."""
        return all(hasattr(data, name) for name in ("__dask_graph__", "to_delayed", "columns"))

    @property
    def travels(self) -> bool:
        """Partitions are on the workers already."""
        return True

    def parts(self) -> list[Source]:
        """Its partitions, read in this process."""
        return list(self.partitions())

    def partitions(self) -> list[Partition]:
        """Its partitions, of the columns that are needed."""
        frame = self.frame[list(self.schema.needed)]
        return [Partition(delayed, self.schema) for delayed in frame.to_delayed()]

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for part in self.parts():
            yield from part.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([part.column(name) for part in self.parts()])


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Source):
    """One partition, computed in this process when it is read; a cluster computes it on a worker."""

    delayed: Any
    schema: Schema

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        yield from self._compute().tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        return self._compute().column(name)

    def _compute(self) -> Source:
        try:
            frame = self.delayed.compute(scheduler="synchronous")
        except Exception as error:  # whatever the owner's graph raises: its message may show a value
            raise SourceError(f"A partition cannot be computed: {type(error).__name__}.") from None
        return FrameSource.open(frame, self.schema)


__all__ = ["ArraySource", "Collection", "FrameSource", "LazyFrameSource", "Partition", "read_persons"]
