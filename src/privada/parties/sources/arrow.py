"""Rows of anything that Arrow can scan in batches: tables, Parquet files, data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SourceError
from privada.parties.compute.dividing import divide_dataset, is_parquet
from privada.parties.schema import Schema
from privada.parties.sources.source import Source
from privada.parties.tables import Table, check_names, raise_if_out_of_reach, read_batch, read_values

COLUMN_ROWS = 65_536  # of one column, read at a time


class ArrowSource(Source):
    """Anything that Arrow can scan in batches."""

    def __init__(self, dataset: Any, schema: Schema) -> None:
        check_names(dataset.schema.names, schema.needed)
        self._dataset, self._names = dataset, list(schema.needed)
        self._coded = schema.coded

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for batch in self._batches(list(names or self._names), size):
            yield read_batch(batch, coded=self._coded)

    def _batches(self, names: list[str], size: int) -> Iterator[Any]:
        import pyarrow as pa

        try:
            for batch in self._dataset.to_batches(
                columns=names,
                batch_size=size,
                use_threads=False,
                batch_readahead=1,  # rows that wait to be looked at fill the memory
                fragment_readahead=1,
            ):
                if batch.num_rows:
                    yield batch
        except SourceError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:  # its message shows a value
            raise_if_out_of_reach(error, "The table")
            raise SourceError(
                f"The table cannot be read to its end, it may be damaged: {type(error).__name__}."
            ) from None

    def column(self, name: str) -> npt.NDArray[Any]:
        parts = [read_values(batch.column(0)) for batch in self._batches([name], COLUMN_ROWS)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def parts(self) -> list[Source]:
        return [self._of(dataset) for dataset in divide_dataset(self._dataset)]

    @property
    def travels(self) -> bool:
        """As files in Parquet; what is in memory stays there."""
        return is_parquet(self._dataset)

    @property
    def is_held(self) -> bool:
        """Tables and frames are; files are not."""
        from pyarrow.dataset import InMemoryDataset

        return isinstance(self._dataset, InMemoryDataset)

    def _of(self, dataset: Any) -> Source:
        part = copy(self)
        part._dataset = dataset
        return part


__all__ = ["ArrowSource"]
