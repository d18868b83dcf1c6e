"""Rows of a NumPy matrix, with labels and persons beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError
from privada.parties.schema import Schema
from privada.parties.sources.source import Source
from privada.parties.tables import Table


def read_persons(values: Any) -> npt.NDArray[Any]:
    """An array of persons. A list's are kept as they are: a common type would make one of 1 and "1"."""
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values)


class ArraySource(Source):
    """A NumPy matrix with optional label and person."""

    def __init__(self, data: Any, schema: Schema, y: Any, person: Any) -> None:
        X = np.asarray(data)
        if X.ndim != 2 or X.shape[1] != len(schema.columns):
            wanted = len(schema.columns)
            raise SchemaError(
                f"Expected rows of {wanted} columns, got an array of shape (rows, {X.shape[1:]})."
            )
        self._columns = {column.name: X[:, i] for i, column in enumerate(schema.columns)}
        for name, values, what in _extras(schema, y, person):
            if values is None:
                raise SchemaError(f"The schema has a {what}; pass it beside the array.")
            column = read_persons(values) if what == "person" else np.asarray(values)
            if column.ndim != 1:
                shape = f"(rows, {', '.join(map(str, column.shape[1:]))})" if column.ndim else "()"
                raise SchemaError(f"Expected one {what} for each row, got an array of shape {shape}.")
            if len(column) != len(X):
                raise SchemaError(f"Expected one {what} for each row; the lengths differ.")
            self._columns[name] = column
        self._height = len(X)

    @property
    def is_held(self) -> bool:
        return True

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for start in range(0, self._height, size):
            yield {name: self._columns[name][start : start + size] for name in names or self._columns}

    def column(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]


def _extras(schema: Schema, y: Any, person: Any) -> list[tuple[str, Any, str]]:
    label = [(schema.label.name, y, "label")] if schema.label else []
    return label + ([(schema.person_id, person, "person")] if schema.person_id else [])


__all__ = ["ArraySource", "read_persons"]
