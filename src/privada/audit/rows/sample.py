"""Generated rows in memory, which can be changed: never an owner's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import AnyArray
from privada.exceptions import InputError
from privada.parties.rows import Rows
from privada.parties.schema import Schema
from privada.privacy.noise import Noise


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sample:
    """Generated rows under a schema.

    >>> schema = Schema.of_numbers(bounds=(0, 1), width=2)
    >>> Sample.of(np.zeros((3, 2)), schema=schema).without([0])
    <Sample of 2 generated rows>
    """

    schema: Schema
    X: AnyArray
    y: AnyArray | None = None
    person: AnyArray | None = None

    @classmethod
    def of(cls, data: Any, *, schema: Schema, y: Any = None, person: Any = None) -> Sample:
        """From what an `Owner` takes in memory: an array, a frame or an Arrow table."""
        if isinstance(data, (str, os.PathLike)):
            raise InputError("Expected generated rows in memory, got a path.")
        if isinstance(data, (np.ndarray, list, tuple)):
            columns: Mapping[str, Any] = {}
            X = _changeable(np.asarray(data))
        else:
            columns = data if not hasattr(data, "to_pandas") else data.to_pandas()
            X = matrix(schema, [np.asarray(columns[column.name]) for column in schema.columns])
        label = columns[schema.label.name] if y is None and schema.label and len(columns) else y
        people = columns[schema.person_id] if person is None and schema.person_id and len(columns) else person
        return cls(schema=schema, X=X, y=_optional(label), person=_optional(people))

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return f"<Sample of {len(self)} generated rows>"

    def rows(self, noise: Noise | None = None) -> Rows:
        """The rows as an answerer sees them."""
        return Rows(self.X, schema=self.schema, y=self.y, person=self.person, noise=noise)

    def take(self, indices: npt.ArrayLike) -> Sample:
        """Some rows, in this order."""
        at = np.asarray(indices, dtype=np.int64)
        return self._each(lambda values, _: values[at], self)

    def without(self, indices: npt.ArrayLike) -> Sample:
        """All rows but some."""
        return self.take(np.delete(np.arange(len(self)), np.asarray(indices, dtype=np.int64)))

    def with_rows(self, other: Sample, *, at: int) -> Sample:
        """These rows and others, put in at a place."""
        return self._each(lambda mine, theirs: np.concatenate([mine[:at], theirs, mine[at:]]), other)

    def replaced(self, index: int, other: Sample) -> Sample:
        """These rows with one of them exchanged for another."""
        return self.without([index]).with_rows(other, at=index)

    def _each(self, change: Callable[[AnyArray, AnyArray], AnyArray], other: Sample) -> Sample:
        """Change features, labels and persons alike."""
        y = None if self.y is None or other.y is None else change(self.y, other.y)
        person = None if self.person is None or other.person is None else change(self.person, other.person)
        return Sample(schema=self.schema, X=change(self.X, other.X), y=y, person=person)


def matrix(schema: Schema, columns: list[AnyArray]) -> AnyArray:
    """Columns side by side: numbers if all are, else objects."""
    numbers = all(column.holds_floats for column in schema.columns)
    return np.column_stack([np.asarray(c, dtype=np.float64 if numbers else object) for c in columns])


def _optional(values: Any) -> AnyArray | None:
    return None if values is None else _changeable(np.asarray(values))


def _changeable(values: AnyArray) -> AnyArray:
    """The same values in a type that can hold any value of their column."""
    if values.dtype.kind in "US":
        return values.astype(object)
    return values.astype(np.float64) if values.ndim == 2 and values.dtype.kind in "iub" else values


__all__ = ["Sample", "matrix"]
