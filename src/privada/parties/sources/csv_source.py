"""Rows of a CSV file, or of several that are read as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.parties.csv_files import CsvFile
from privada.parties.schema import Schema
from privada.parties.sources.source import Source
from privada.parties.tables import Table, check_names, read_batch, read_values

COLUMN_ROWS = 65_536


class CsvSource(Source):
    """Rows of one CSV file, typed by the schema: no type is guessed from rows."""

    def __init__(self, file: CsvFile, schema: Schema, *, travels: bool = False) -> None:
        check_names(file.names(), schema.needed)
        self.file, self._schema, self._travels = file, schema, travels

    @property
    def csv_files(self) -> list[CsvFile]:
        return [self.file]

    @property
    def travels(self) -> bool:
        """If it is a file that another process finds by its path."""
        return self._travels

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for batch in self.file.batches(names or self._schema.needed, size):
            yield read_batch(batch, coded=self._schema.coded)

    def column(self, name: str) -> npt.NDArray[Any]:
        parts = [read_values(batch.column(0)) for batch in self.file.batches((name,), COLUMN_ROWS)]
        return np.concatenate(parts) if parts else np.zeros(0)


class CsvFiles(Source):
    """Rows of several CSV files, one after another in the order of their names.

    Each has its own header, if any, and its columns in whatever order. A file is read by one thread or one
    worker: a quoted field may have line ends, so no other place in it is known to begin a record.
    """

    def __init__(self, files: Sequence[CsvSource]) -> None:
        self._files = list(files)

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for file in self._files:
            yield from file.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([file.column(name) for file in self._files])

    def parts(self) -> list[Source]:
        return list(self._files)

    @property
    def csv_files(self) -> list[CsvFile]:
        return [source.file for source in self._files]

    @property
    def travels(self) -> bool:
        """If all files do."""
        return all(file.travels for file in self._files)


__all__ = ["CsvFiles", "CsvSource"]
