"""What every source of rows offers, and how it is held still while an answer reads it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy.typing as npt

from privada.exceptions import SourceError
from privada.parties.csv_files import CsvFile
from privada.parties.tables import Table


class Source(ABC):
    """Rows that can be read again and again, in the same order.

    Write one for rows that are nowhere else, such as rows that a program computes: `tables` and `column` are
    enough; `parts` lets several threads read at once. Pass it to `Owner` in place of a path.

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
        """Text that is another one whenever the rows may be others; None if nothing tells."""
        return None


class WatchedSource(Source):
    """Rows in files that must stay what they were when they were opened.

    Parameters
    ----------
    source : Source
        How they are read.
    identify : callable
        What tells the files of now from those of another moment: names, sizes, times, tags.
    settled : callable, default=always
        Whether the next change of the files is sure to be seen by what ``identify`` says.
    reach : callable, default=nothing
        Raises a `SourceOutageError` if the files are out of reach.
    reopen : callable, optional
        Opens the same place again. By default it cannot be.
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

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        return self.source.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        return self.source.column(name)

    def parts(self) -> list[Source]:
        return self.source.parts()

    @property
    def travels(self) -> bool:
        return self.source.travels

    @property
    def csv_files(self) -> Sequence[CsvFile]:
        return self.source.csv_files

    def addresses(self) -> list[Source]:
        return self.source.addresses()

    def identity(self) -> str | None:
        return self._identity if self._settled() and self._identify() == self._identity else None

    @contextmanager
    def pinned(self) -> Iterator[Source]:
        self.check_unchanged()
        yield self
        self.check_unchanged()

    def check_unchanged(self) -> None:
        self._reach()
        if self._identify() != self._identity:
            raise SourceError("The rows have changed since they were loaded; load the owner again.")

    def reopened(self) -> Source:
        return self if self._reopen is None else self._reopen()


__all__ = ["Source", "WatchedSource"]
