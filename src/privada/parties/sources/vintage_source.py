"""The rows of one vintage: whatever is outside its period is left out before anything else sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError
from privada.parties.columns import Coded, Date
from privada.parties.schema import Schema
from privada.parties.sources.dask_frames import is_collection
from privada.parties.sources.source import Source
from privada.parties.tables import Table
from privada.privacy.accounting.filters import Vintage

COLUMN_ROWS = 65_536  # of one column, read at a time


class VintageSource(Source):
    """Rows of a source whose date is in a vintage's period.

    Parameters
    ----------
    source : Source
        All rows, opened with `with_dates`.
    vintage : Vintage
    schema : Schema
        That of the rows, by which they are asked about.

    Privacy
    -------
    A row is in by its own date alone. One without a date is in no vintage.
    """

    def __init__(self, source: Source, vintage: Vintage, schema: Schema) -> None:
        self._source, self._vintage, self._schema = source, vintage, schema
        self._dates = Date(name=vintage.column, first=vintage.since, last=vintage.until)

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        wanted, column = tuple(names or self._schema.needed), self._vintage.column
        read = wanted if column in wanted else (*wanted, column)
        for table in self._source.tables(size, read):
            inside = self._dates.find_between(table[column])  # a missing date is in no period
            if inside.any():
                yield {name: table[name] if inside.all() else _where(table[name], inside) for name in wanted}

    def column(self, name: str) -> npt.NDArray[Any]:
        parts = [np.asarray(table[name]) for table in self.tables(COLUMN_ROWS, (name,))]
        return np.concatenate(parts) if parts else np.zeros(0)

    def parts(self) -> list[Source]:
        return [self._of(part) for part in self._source.parts()]

    @property
    def travels(self) -> bool:
        return self._source.travels

    def addresses(self) -> list[Source]:
        return [self._of(part) for part in self._source.addresses()]

    @contextmanager
    def pinned(self) -> Iterator[Source]:
        with self._source.pinned() as source:
            yield self if source is self._source else self._of(source)

    def check_unchanged(self) -> None:
        self._source.check_unchanged()

    def reopened(self) -> Source:
        return self._of(self._source.reopened())

    def identity(self) -> str | None:
        found = self._source.identity()
        return None if found is None else f"{found}\n{self._vintage}"

    def _of(self, source: Source) -> Source:
        return VintageSource(source, self._vintage, self._schema)


def with_dates(schema: Schema, vintage: Vintage) -> Schema:
    """The schema by which rows are read: with the column of dates, if it is not among the features."""
    declared = {column.name: column for column in schema.columns}
    if vintage.column in declared:
        if not declared[vintage.column].is_time:
            raise SchemaError(f"Expected {vintage.column!r}, which divides vintages, to be of kind date.")
        return schema
    if vintage.column in schema.needed:
        raise SchemaError(f"Expected a column of dates that divides vintages, got {vintage.column!r}.")
    dates = Date(name=vintage.column, first=vintage.since, last=vintage.until, missing=True)
    return replace(schema, columns=(*schema.columns, dates))


def check_dividable(data: Any, *beside: Any) -> None:
    """Refuse rows whose columns have no names, and those of a Dask collection, which is divided already."""
    unnamed = isinstance(data, (np.ndarray, list, tuple)) or any(each is not None for each in beside)
    if unnamed or is_collection(data):
        raise SchemaError("Expected a frame, Arrow data, files or a database beside a vintage.")


def _where(values: Any, chosen: npt.NDArray[np.bool_]) -> Any:
    if isinstance(values, Coded):
        return Coded(values.distinct, values.places[chosen])
    return values[chosen]


__all__ = ["VintageSource", "check_dividable", "with_dates"]
