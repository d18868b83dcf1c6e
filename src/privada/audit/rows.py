"""Generated rows to audit with: samples that can be changed, and single rows worth trying.

Rows worth trying are corners, outliers, missing values, and a question's own points and ties. Nothing
here is an owner's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import AnyArray
from privada.exceptions import InputError
from privada.parties.rows import Rows
from privada.parties.schema import Column, Schema
from privada.privacy.noise import Noise
from privada.privacy.release import Question

Generator = np.random.Generator

OUTLIER_FACTOR = 1e6
MOST_LANDMARKS = 6


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
        """Take what an `Owner` takes in memory: an array, a frame or an Arrow table."""
        if isinstance(data, (str, os.PathLike)):
            raise InputError("Expected generated rows in memory, got a path.")
        if isinstance(data, (np.ndarray, list, tuple)):
            columns: Mapping[str, Any] = {}
            X = _to_changeable(np.asarray(data))
        else:
            columns = data if not hasattr(data, "to_pandas") else data.to_pandas()
            X = matrix(schema, [np.asarray(columns[column.name]) for column in schema.columns])
        label = columns[schema.label.name] if y is None and schema.label and len(columns) else y
        people = columns[schema.person_id] if person is None and schema.person_id and len(columns) else person
        y, person = (
            None if values is None else _to_changeable(np.asarray(values)) for values in (label, people)
        )
        return cls(schema=schema, X=X, y=y, person=person)

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return f"<Sample of {len(self)} generated rows>"

    def rows(self, noise: Noise | None = None) -> Rows:
        """Make the rows as an answerer sees them."""
        return Rows(self.X, schema=self.schema, y=self.y, person=self.person, noise=noise)

    def take(self, indices: npt.ArrayLike) -> Sample:
        """Take some rows, in this order."""
        at = np.asarray(indices, dtype=np.int64)
        return self._change(lambda values, _: values[at], self)

    def without(self, indices: npt.ArrayLike) -> Sample:
        """Leave some rows out."""
        return self.take(np.delete(np.arange(len(self)), np.asarray(indices, dtype=np.int64)))

    def with_rows(self, other: Sample, *, at: int) -> Sample:
        """Insert other rows at a place."""
        return self._change(lambda mine, theirs: np.concatenate([mine[:at], theirs, mine[at:]]), other)

    def replaced(self, index: int, other: Sample) -> Sample:
        """Replace one of the rows."""
        return self.without([index]).with_rows(other, at=index)

    def _change(self, change: Callable[[AnyArray, AnyArray], AnyArray], other: Sample) -> Sample:
        """Change features, labels and persons alike."""
        y = None if self.y is None or other.y is None else change(self.y, other.y)
        person = None if self.person is None or other.person is None else change(self.person, other.person)
        return Sample(schema=self.schema, X=change(self.X, other.X), y=y, person=person)


def matrix(schema: Schema, columns: list[AnyArray]) -> AnyArray:
    """Put columns side by side: as numbers if all are, otherwise as objects."""
    numbers = all(column.holds_floats for column in schema.columns)
    return np.column_stack([np.asarray(c, dtype=np.float64 if numbers else object) for c in columns])


def _to_changeable(values: AnyArray) -> AnyArray:
    """Convert values to a type that can hold any value of their column."""
    if values.dtype.kind in "US":
        return values.astype(object)
    return values.astype(np.float64) if values.ndim == 2 and values.dtype.kind in "iub" else values


def low(column: Column, _: Generator) -> Any:
    """Pick the smallest value of a column."""
    return column.lowest()


def high(column: Column, _: Generator) -> Any:
    """Pick the largest value of a column."""
    return column.highest()


def above(column: Column, _: Generator) -> Any:
    """Pick a value far above the public bounds."""
    return column.beyond(OUTLIER_FACTOR)


def below(column: Column, _: Generator) -> Any:
    """Pick a value far below the public bounds."""
    return column.beyond(-OUTLIER_FACTOR)


PICKS: dict[str, Callable[[Column, Generator], Any]] = {
    "a random row": lambda column, rng: column.draw(rng),
    "the low corner": low,
    "the high corner": high,
    "a random corner": lambda column, rng: (low if rng.integers(2) else high)(column, rng),
    "a far outlier": above,
    "the opposite outlier": below,
}


def landmarks(question: Question, schema: Schema) -> AnyArray | None:
    """Make rows on a question's public points and edges, and half-way between points, where ties are.

    Only for schemas of plain numbers, whose columns are the features.
    """
    if not all(column.holds_floats and not column.missing for column in schema.columns):
        return None
    marks: list[AnyArray] = []
    for array in question.parts()[1].values():
        if array.dtype.kind != "f" or not array.size:
            continue
        if array.ndim == 2 and array.shape[1] == schema.width:
            points = array[:MOST_LANDMARKS]
            marks += [points, (points + np.roll(points, 1, axis=0)) / 2]
        elif array.ndim == 1:
            marks.append(np.repeat(array[:MOST_LANDMARKS, None], schema.width, axis=1))
    return np.unique(np.concatenate(marks), axis=0) if marks else None


def records(sample: Sample, rng: Generator, marks: AnyArray | None) -> Iterator[tuple[str, Sample]]:
    """Yield single rows worth trying, by name."""
    yield "a duplicate", sample.take([rng.integers(len(sample))])
    for name, pick in PICKS.items():
        yield name, make_record(sample, lambda column, pick=pick: pick(column, rng))  # type: ignore[misc]
    if any(column.missing for column in sample.schema.columns):
        yield "a missing value", make_record(sample, lambda c: c.missing_value if c.missing else c.highest())
    for index, row in enumerate(() if marks is None else marks):
        plain = make_record(sample, lambda column: column.draw(rng))
        yield f"landmark {index}", replace(plain, X=row[None].astype(sample.X.dtype))


def make_record(sample: Sample, pick: Callable[[Column], Any]) -> Sample:
    """Make one row whose values are picked column by column."""
    schema = sample.schema
    X = matrix(schema, [np.array([pick(column)]) for column in schema.columns])
    y = None if schema.label is None else np.array([pick(schema.label)])
    return Sample(schema=schema, X=X, y=y, person=None if sample.person is None else sample.person[:1])


def near_low(sample: Sample) -> Sample:
    """Make a row a hundredth of the way from the low corner: small, but not zero."""
    return make_record(sample, lambda column: column.between(0.01))


def middle(sample: Sample) -> Sample:
    """Make the middle of the public box, as unlike a corner as a row can be."""
    return make_record(sample, lambda column: column.between(0.5))


def across(sample: Sample, number: int) -> Sample:
    """Make rows from the low corner of the box to the high one, at equal distances; categories in turn."""
    steps = [
        make_record(sample, lambda column, place=place: column.step(place, number))  # type: ignore[misc]
        for place in range(number)
    ]
    first, *others = steps
    for other in others:
        first = first.with_rows(other, at=len(first))
    return first
