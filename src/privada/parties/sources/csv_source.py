"""Rows of a CSV file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.parties.csv.reading import CsvFile
from privada.parties.schema import Schema
from privada.parties.sources.source import Source
from privada.parties.tables import Table, check_names, read_batch, read_values

COLUMN_ROWS = 65_536


class CsvSource(Source):
    """Rows of one CSV file, typed by the schema: no type is guessed from rows."""

    def __init__(self, file: CsvFile, schema: Schema) -> None:
        check_names(file.names(), schema.needed)
        self.file, self._schema = file, schema

    def tables(self, size: int) -> Iterator[Table]:
        for batch in self.file.batches(self._schema.needed, size):
            yield read_batch(batch, categories=self._schema.categories)

    def column(self, name: str) -> npt.NDArray[Any]:
        parts = [read_values(batch.column(0)) for batch in self.file.batches((name,), COLUMN_ROWS)]
        return np.concatenate(parts) if parts else np.zeros(0)


__all__ = ["CsvSource"]
