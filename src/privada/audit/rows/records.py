"""Single rows worth trying: corners, outliers, missing values, and a question's own points and ties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from privada._arrays import AnyArray
from privada.audit.rows.sample import Sample, matrix
from privada.parties.schema import Column, Schema
from privada.privacy.release import Question

Generator = np.random.Generator

OUTLIER_FACTOR = 1e6
MOST_LANDMARKS = 6


def landmarks(question: Question, schema: Schema) -> AnyArray | None:
    """Rows on a question's public points and edges, and half-way between points: ties.

    Only for schemas of plain numbers, whose columns are the features.
    """
    if not all(column.holds_floats and not column.missing for column in schema.columns):
        return None
    found: list[AnyArray] = []
    for array in question.parts()[1].values():
        if array.dtype.kind != "f" or not array.size:
            continue
        if array.ndim == 2 and array.shape[1] == schema.width:
            points = array[:MOST_LANDMARKS]
            found += [points, (points + np.roll(points, 1, axis=0)) / 2]
        elif array.ndim == 1:
            found.append(np.repeat(array[:MOST_LANDMARKS, None], schema.width, axis=1))
    return np.unique(np.concatenate(found), axis=0) if found else None


def records(sample: Sample, rng: Generator, marks: AnyArray | None) -> Iterator[tuple[str, Sample]]:
    """Single rows worth trying, by name."""
    yield "a duplicate", sample.take([rng.integers(len(sample))])
    for name, pick in _PICKS.items():
        yield name, _record(sample, lambda column, pick=pick: pick(column, rng))  # type: ignore[misc]
    if any(column.missing for column in sample.schema.columns):
        yield "a missing value", _record(sample, lambda c: c.missing_value if c.missing else c.highest())
    for index, row in enumerate(() if marks is None else marks):
        plain = _record(sample, lambda column: column.draw(rng))
        yield f"landmark {index}", replace(plain, X=row[None].astype(sample.X.dtype))


def _record(sample: Sample, pick: Callable[[Column], Any]) -> Sample:
    schema = sample.schema
    X = matrix(schema, [np.array([pick(column)]) for column in schema.columns])
    y = None if schema.label is None else np.array([pick(schema.label)])
    return Sample(schema=schema, X=X, y=y, person=None if sample.person is None else sample.person[:1])


def near_low(sample: Sample) -> Sample:
    """A row a hundredth of the way from the low corner: small, and not nothing."""
    return _record(sample, lambda column: column.between(0.01))


def middle(sample: Sample) -> Sample:
    """The middle of the public box, and the first category: as unlike a corner as a row can be."""
    return _record(sample, lambda column: column.between(0.5))


def across(sample: Sample, number: int) -> Sample:
    """Rows from the low corner of the public box to the high one, at equal distances; categories in turn."""
    steps = [
        _record(sample, lambda column, place=place: column.step(place, number))  # type: ignore[misc]
        for place in range(number)
    ]
    first, *others = steps
    for other in others:
        first = first.with_rows(other, at=len(first))
    return first


def low(column: Column, _: Generator) -> Any:
    """The least value of a column."""
    return column.lowest()


def high(column: Column, _: Generator) -> Any:
    """The largest value of a column."""
    return column.highest()


def corner(column: Column, rng: Generator) -> Any:
    """One end of a column."""
    return (low if rng.integers(2) else high)(column, rng)


def random(column: Column, rng: Generator) -> Any:
    """A value within the public bounds."""
    return column.draw(rng)


def above(column: Column, _: Generator) -> Any:
    """A value far above the public bounds."""
    return column.beyond(OUTLIER_FACTOR)


def below(column: Column, _: Generator) -> Any:
    """A value far below the public bounds."""
    return column.beyond(-OUTLIER_FACTOR)


_PICKS: dict[str, Callable[[Column, Generator], Any]] = {
    "a random row": random,
    "the low corner": low,
    "the high corner": high,
    "a random corner": corner,
    "a far outlier": above,
    "the opposite outlier": below,
}


__all__ = ["above", "across", "below", "high", "landmarks", "low", "middle", "near_low", "records"]
