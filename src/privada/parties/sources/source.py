"""What every source of rows offers, how rows are pinned while an answer reads them, and vintages of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError, SourceError
from privada.parties.columns import Coded, Date
from privada.parties.csv_files import CsvFile
from privada.parties.schema import Schema
from privada.parties.tables import Table
from privada.privacy.accounting.filters import Vintage

COLUMN_ROWS = 65_536  # of one column, read at a time


class Source(ABC):
    """Rows that can be read again and again, in the same order.

    Write one for rows that are nowhere else, such as rows that a program computes: `tables` and `column` are
    enough; `parts` lets several threads read at once. Pass it to `Owner` in place of a path. If it also has
    `claims` and `open`, an entry point in the group ``privada.sources`` makes it known to everybody: then
    `Owner` and ``owner.toml`` take what it claims.

    Attributes
    ----------
    schemes : tuple of str
        Schemes of URLs that `open` accepts, as ``("s3",)``.

    Examples
    --------
    >>> import numpy as np
    >>> from privada.parties import Rows, Schema
    >>> class Squares(Source):
    ...     def tables(self, size, names=None):
    ...         for start in range(0, 10, size):
    ...             yield {"x0": np.arange(start, min(start + size, 10)) ** 2.0}
    ...     def column(self, name):
    ...         return np.arange(10) ** 2.0
    >>> Rows(Squares(), schema=Schema.of_numbers(bounds=(0, 50), width=1)).check()
    10
    """

    schemes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def claims(cls, data: Any) -> bool:  # noqa: ARG003 - a source that is passed itself claims nothing
        """Whether `open` reads data of this kind."""
        return False

    @classmethod
    def open(cls, data: Any, schema: Schema) -> Source:
        """The rows of data that `claims` said yes to; by default, made of the data and the schema."""
        return cls(data, schema)  # type: ignore[call-arg]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"  # no row, and no place of rows

    @abstractmethod
    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        """Columns of at most ``size`` rows at a time: those of some names, by default all that are needed.

        Columns that are not named are not read, where the source can leave them out. The order of the rows
        is the same whatever is named.
        """

    @abstractmethod
    def column(self, name: str) -> npt.NDArray[Any]:
        """One whole column, in memory."""

    def parts(self) -> list[Source]:
        """The same rows in the same order, in parts that can be read at once; itself if there are none."""
        return [self]

    @property
    def travels(self) -> bool:
        """Whether another process can read the parts that `addresses` gives."""
        return False

    @property
    def is_held(self) -> bool:
        """Whether the rows are objects of this process, which may use them in other ways, too."""
        return False

    @property
    def csv_files(self) -> Sequence[CsvFile]:
        """The CSV files that all rows are read from, in which faults can be found; none for other rows."""
        return ()

    def addresses(self) -> list[Source]:
        """The same rows in the same order, in parts that another process can open by itself."""
        return self.parts()

    def pinned(self) -> AbstractContextManager[Source]:
        """The rows of one moment: what is read within belongs together, or is an error."""
        return nullcontext(self)

    def check_unchanged(self) -> None:  # noqa: B027 - most sources cannot tell
        """Raise a `SourceError` if the rows are known to be others than those that were opened.

        It is a `SourceOutageError` if they are out of reach. No row is read.
        """

    def reopened(self) -> Source:
        """The same place, opened again: files may be others now, or have other times."""
        return self

    def identity(self) -> str | None:
        """Text that differs whenever the rows may be others; None if nothing tells."""
        return None


def join_values(parts: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Parts of one column as one array."""
    arrays = list(parts)
    return np.concatenate(arrays) if arrays else np.zeros(0)


class _WrappedSource(Source):
    """Rows of another source, of which a subclass changes something."""

    source: Source

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        return self.source.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        return self.source.column(name)

    def parts(self) -> list[Source]:
        return self.source.parts()

    @property
    def travels(self) -> bool:
        return self.source.travels

    def addresses(self) -> list[Source]:
        return self.source.addresses()

    def check_unchanged(self) -> None:
        self.source.check_unchanged()


class WatchedSource(_WrappedSource):
    """Rows in files that must stay what they were when they were opened.

    ``identify`` tells the files of now from those of another moment by names, sizes, times and tags;
    ``settled`` says whether it is sure to see their next change. ``reach`` raises a `SourceOutageError` if
    they are out of reach, and ``reopen`` opens the same place again.
    """

    def __init__(
        self,
        source: Source,
        identify: Callable[[], str],
        settled: Callable[[], bool] = lambda: True,
        *,
        reach: Callable[[], None] = lambda: None,
        reopen: Callable[[], Source] | None = None,
    ) -> None:
        self.source, self._identify, self._settled = source, identify, settled
        self._reach, self._reopen = reach, reopen
        self._identity = identify()

    @property
    def csv_files(self) -> Sequence[CsvFile]:
        return self.source.csv_files

    def identity(self) -> str | None:
        return self._identity if self._settled() and self._identify() == self._identity else None

    @contextmanager
    def pinned(self) -> Iterator[Source]:
        # Files have no snapshots: that they are the same before and after is as good.
        self.check_unchanged()
        yield self
        self.check_unchanged()

    def check_unchanged(self) -> None:
        self._reach()
        if self._identify() != self._identity:
            raise SourceError("The rows have changed since they were loaded; load the owner again.")

    def reopened(self) -> Source:
        return self if self._reopen is None else self._reopen()


class VintageSource(_WrappedSource):
    """Rows of a source whose date is in a vintage's period; all others are left out before they are seen.

    The source was opened with `with_dates`; the schema is that by which rows are asked about.

    Privacy
    -------
    A row is in by its own date alone. One without a date is in no vintage.
    """

    def __init__(self, source: Source, vintage: Vintage, schema: Schema) -> None:
        self.source, self._vintage, self._schema = source, vintage, schema
        self._dates = Date(name=vintage.column, first=vintage.since, last=vintage.until)

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        wanted_names, dates = tuple(names or self._schema.needed), self._vintage.column
        read_names = wanted_names if dates in wanted_names else (*wanted_names, dates)
        for table in self.source.tables(size, read_names):
            inside = self._dates.find_between(table[dates])
            if inside.all():
                yield {name: table[name] for name in wanted_names}
            elif inside.any():
                yield {name: _choose_rows(table[name], inside) for name in wanted_names}

    def column(self, name: str) -> npt.NDArray[Any]:
        return join_values(np.asarray(table[name]) for table in self.tables(COLUMN_ROWS, (name,)))

    def parts(self) -> list[Source]:
        return [self._with(part) for part in self.source.parts()]

    def addresses(self) -> list[Source]:
        return [self._with(part) for part in self.source.addresses()]

    @contextmanager
    def pinned(self) -> Iterator[Source]:
        with self.source.pinned() as source:
            yield self if source is self.source else self._with(source)

    def reopened(self) -> Source:
        return self._with(self.source.reopened())

    def identity(self) -> str | None:
        identity = self.source.identity()
        return None if identity is None else f"{identity}\n{self._vintage}"

    def _with(self, source: Source) -> Self:
        """The same period of another source."""
        return type(self)(source, self._vintage, self._schema)


def _choose_rows(values: Any, chosen: npt.NDArray[np.bool_]) -> Any:
    return Coded(values.distinct, values.places[chosen]) if isinstance(values, Coded) else values[chosen]


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


__all__ = ["COLUMN_ROWS", "Source", "VintageSource", "WatchedSource", "join_values", "with_dates"]
