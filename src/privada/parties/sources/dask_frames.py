"""Rows in a Dask data frame: its partitions are the parts, and stay where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SourceError
from privada.parties.schema import Schema
from privada.parties.sources.source import Source
from privada.parties.tables import Table, check_names


def is_collection(data: Any) -> bool:
    """Whether this is a Dask data frame; Dask is not imported for it."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "to_delayed") and hasattr(data, "columns")


@dataclass(frozen=True, eq=False, repr=False)
class Collection(Source):
    """All partitions of a data frame."""

    frame: Any
    schema: Schema

    def __post_init__(self) -> None:
        check_names(list(self.frame.columns), self.schema.needed)

    def __repr__(self) -> str:
        return "<Collection>"

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
        """One partition after another."""
        for part in self.parts():
            yield from part.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        """One whole column."""
        return np.concatenate([part.column(name) for part in self.parts()])


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Source):
    """One partition, computed in this process when it is read; a cluster computes it on a worker."""

    delayed: Any
    schema: Schema

    def __repr__(self) -> str:
        return "<Partition>"

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        """Read in this process."""
        yield from self._opened().tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        """One whole column."""
        return self._opened().column(name)

    def _opened(self) -> Source:
        from privada.parties.sources.opening import open_source

        try:
            frame = self.delayed.compute(scheduler="synchronous")
        except Exception as error:  # whatever the owner's graph raises: its message may show a value
            raise SourceError(f"A partition cannot be computed: {type(error).__name__}.") from None
        return open_source(frame, self.schema, None, None)


__all__ = ["Collection", "Partition", "is_collection"]
