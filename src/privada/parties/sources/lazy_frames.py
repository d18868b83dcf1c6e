"""Rows of a polars lazy frame: computed anew, in batches, whenever they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SourceError
from privada.parties.schema import Schema
from privada.parties.sources.source import Source
from privada.parties.tables import Table, check_names, raise_if_out_of_reach, read_batch, read_values

COLUMN_ROWS = 65_536


class LazyFrameSource(Source):
    """Rows of a lazy frame. They are computed again for each reading, so the plan must not be random."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        self._frame, self._schema = frame, schema
        check_names(self._computed(lambda: frame.collect_schema().names()), schema.needed)

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for batch in self._batches(names or self._schema.needed, size):
            yield read_batch(batch, coded=self._schema.coded)

    def column(self, name: str) -> npt.NDArray[Any]:
        parts = [read_values(batch.column(0)) for batch in self._batches((name,), COLUMN_ROWS)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _batches(self, names: Sequence[str], size: int) -> Iterator[Any]:
        wanted = self._frame.select(list(names))
        frames = iter(wanted.collect_batches(chunk_size=size, maintain_order=True, engine="streaming"))
        while (frame := self._computed(lambda: next(frames, None))) is not None:
            for start in range(0, frame.height, size):
                table = frame.slice(start, size).to_arrow().combine_chunks()
                yield from table.to_batches()

    def _computed(self, work: Any) -> Any:
        import polars as pl

        try:
            return work()
        except (pl.exceptions.PolarsError, OSError) as error:  # its message may show a value
            raise_if_out_of_reach(error, "The lazy frame")
            raise SourceError(f"The lazy frame cannot be computed: {type(error).__name__}.") from None


__all__ = ["LazyFrameSource"]
