"""The public schema: columns, bounds, categories, classes, declared size, unit.

Both sides encode rows by the schema alone, so categories, missing values and
bounds mean the same to owner and learner, and nothing is inferred from private
rows. An error names the column, never a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._toml import Section
from privada.exceptions import InputError, SchemaError, StudyError
from privada.privacy.bounds import Box, Classes
from privada.privacy.relation import ROW, Unit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
MOST_ROWS = 10**15


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """A column as its distinct values and, for each row, the place of its value among them.

    Place -1 is a missing value. Distinct values that no row has are allowed.
    """

    distinct: npt.NDArray[Any]
    places: npt.NDArray[np.int64]

    def __repr__(self) -> str:
        return "<Coded>"

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number between two public bounds; values beyond them are clipped.

    With ``missing=True`` a missing value becomes the middle of the bounds and
    an extra feature that says so; otherwise it is an error.
    """

    name: str
    low: float
    high: float
    missing: bool = False

    def __post_init__(self) -> None:
        Box(low=(self.low,), high=(self.high,))

    def encode(self, values: npt.NDArray[Any]) -> FloatArray:
        """Clip, after refusing what is not a number."""
        numbers = _as_floats(values, self.name)
        absent = np.isnan(numbers)
        if absent.any() and not self.missing:
            raise SchemaError(f"Column {self.name!r} holds a missing value; the schema allows none.")
        if np.isinf(numbers).any():
            raise SchemaError(f"Column {self.name!r} holds an infinite value.")
        filled = np.where(absent, (self.low + self.high) / 2, numbers)
        clipped = np.clip(filled, self.low, self.high)
        return np.column_stack([clipped, absent]) if self.missing else clipped[:, None]

    def features(self) -> tuple[str, ...]:
        """Own name, and the missing mark."""
        return (self.name, f"{self.name} is missing") if self.missing else (self.name,)

    def limits(self) -> tuple[tuple[float, float], ...]:
        """Own bounds, and 0 to 1 for the missing mark."""
        return ((self.low, self.high), (0.0, 1.0)) if self.missing else ((self.low, self.high),)

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"name": self.name, "low": self.low, "high": self.high, "missing": self.missing}


@dataclass(frozen=True, kw_only=True)
class Category:
    """One of a public list of values; becomes one feature (0 or 1) for each."""

    name: str
    values: tuple[Any, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", Classes(tuple(self.values)).names)

    def encode(self, values: npt.NDArray[Any] | Coded) -> FloatArray:
        """One-hot, after refusing unknown values."""
        codes, absent = self._look_up(values)
        if absent.any() and not self.missing:
            raise SchemaError(f"Column {self.name!r} holds a missing value; the schema allows none.")
        if np.any((codes < 0) & ~absent):
            raise SchemaError(f"Column {self.name!r} holds a value outside {list(self.values)}.")
        hot = np.zeros((len(values), len(self.features())))
        known = np.flatnonzero(~absent)
        hot[known, codes[known]] = 1.0
        if self.missing:
            hot[:, -1] = absent
        return hot

    def label_codes(self, values: npt.NDArray[Any] | Coded) -> IntArray:
        """Code of each row's class, where this column is the label."""
        codes, absent = self._look_up(values)
        if absent.any():
            raise SchemaError(f"Column {self.name!r} holds a missing label.")
        if np.any(codes < 0):
            raise SchemaError(f"A label is not among the public classes {list(self.values)}.")
        return codes

    def _look_up(self, values: npt.NDArray[Any] | Coded) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Code of each row, -1 if it has none of the public values; and whether it is missing."""
        if isinstance(values, Coded):
            codes, absent = self._look_up(values.distinct)
            return np.append(codes, -1)[values.places], np.append(absent, True)[values.places]
        try:
            codes = Classes(self.values).look_up(values)
        except TypeError:  # a list or the like
            raise SchemaError(f"Column {self.name!r} holds a value outside {list(self.values)}.") from None
        absent, unknown = np.zeros(len(values), dtype=np.bool_), np.flatnonzero(codes < 0)
        absent[unknown] = is_missing(values[unknown])
        return codes, absent

    def features(self) -> tuple[str, ...]:
        """One name for each value, and the missing mark."""
        names = tuple(f"{self.name} = {value}" for value in self.values)
        return (*names, f"{self.name} is missing") if self.missing else names

    def limits(self) -> tuple[tuple[float, float], ...]:
        """0 to 1 throughout."""
        return ((0.0, 1.0),) * len(self.features())

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"name": self.name, "values": list(self.values), "missing": self.missing}


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What anyone may know about a data set without seeing a row.

    Parameters
    ----------
    columns : sequence of Number and Category
    label : Number or Category, optional
        The column to predict; a category's values are the classes.
    size : int, optional
        Declared number of rows. Under replace-one it must be the true one;
        under add/remove it is a number that the owner chose to publish.
    person_id, max_rows : str and int, optional
        Makes the unit a person with at most ``max_rows`` rows.

    Examples
    --------
    >>> schema = Schema(columns=[Number(name="age", low=0, high=120)],
    ...                 label=Category(name="ill", values=("no", "yes")))
    >>> schema.width, schema.classes.names
    (1, ('no', 'yes'))
    """

    columns: tuple[Number | Category, ...]
    label: Number | Category | None = None
    size: int | None = None
    person_id: str | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        names += [self.label.name] if self.label else []
        names += [self.person_id] if self.person_id else []
        if not self.columns:
            raise SchemaError("A schema needs at least one column.")
        if len(set(names)) != len(names):
            raise SchemaError(f"Expected every column name once, got {names}.")
        for name in ("size", "max_rows"):
            if getattr(self, name) is not None and _check.count(**{name: getattr(self, name)}) > MOST_ROWS:
                raise SchemaError(f"Expected {name} of at most {MOST_ROWS:,}.")
        if (self.person_id is None) != (self.max_rows is None):
            raise SchemaError(
                "person_id and max_rows belong together: a person needs a public bound on rows."
            )

    @classmethod
    def of_numbers(
        cls, *, bounds: tuple[npt.ArrayLike, npt.ArrayLike], width: int | None = None, **rest: Any
    ) -> Schema:
        """A schema of unnamed numeric columns from public ``bounds=(low, high)``."""
        low, high = (np.asarray(side, dtype=np.float64) for side in bounds)
        if width is None and low.ndim == high.ndim == 0:
            raise InputError("Expected width beside scalar bounds, or bounds for every column.")
        shape = (width,) if width is not None else np.broadcast_shapes(low.shape, high.shape)
        pairs = zip(np.broadcast_to(low, shape), np.broadcast_to(high, shape), strict=True)
        columns = tuple(Number(name=f"x{i}", low=float(a), high=float(b)) for i, (a, b) in enumerate(pairs))
        return cls(columns=columns, **rest)

    @property
    def width(self) -> int:
        """Number of features after encoding."""
        return len(self.features)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features after encoding."""
        return tuple(name for column in self.columns for name in column.features())

    @property
    def box(self) -> Box:
        """Public bounds of the features after encoding."""
        limits = [limit for column in self.columns for limit in column.limits()]
        return Box(low=tuple(a for a, _ in limits), high=tuple(b for _, b in limits))

    @property
    def classes(self) -> Classes:
        """The label's classes."""
        if not isinstance(self.label, Category):
            raise InputError("This schema has no class label; declare one as a Category.")
        return Classes(self.label.values)

    @property
    def unit(self) -> Unit:
        """A row, or a person."""
        return ROW if self.max_rows is None else Unit(name="person", max_rows=self.max_rows)

    @property
    def needed(self) -> tuple[str, ...]:
        """Names that a table must have."""
        label = (self.label.name,) if self.label else ()
        person = (self.person_id,) if self.person_id else ()
        return (*(column.name for column in self.columns), *label, *person)

    def to_dict(self) -> dict[str, Any]:
        """Plain form: everything in it is public."""
        return {
            "columns": [column.to_dict() for column in self.columns],
            "label": self.label.to_dict() if self.label else None,
            "size": self.size,
            "person_id": self.person_id,
            "max_rows": self.max_rows,
        }

    @classmethod
    def from_section(cls, section: Section) -> Schema:
        """Read ``[schema]`` of an owner's or a study's file."""
        label = section.section("label") if "label" in section else None
        try:
            schema = cls(
                columns=tuple(_column(part) for part in section.sections("columns")),
                label=_column(label) if label else None,
                size=section.whole("size", None),
                person_id=section.string("person_id", None),
                max_rows=section.whole("max_rows", None),
            )
        except SchemaError as error:
            section.fail("", str(error))
        section.done()
        return schema


def _column(section: Section) -> Number | Category:
    name, missing = section.string("name"), section.flag("missing", False)
    try:
        if "values" in section:
            column: Number | Category = Category(
                name=name, values=tuple(section.array("values")), missing=missing
            )
        else:
            low, high = section.number("low"), section.number("high")
            column = Number(name=name, low=low, high=high, missing=missing)
    except StudyError:
        raise
    except InputError as error:
        section.fail("name", f"{name}: {error}", beside=f'"{name}"')
    section.done()
    return column


def _as_floats(values: npt.NDArray[Any], name: str) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SchemaError(f"Column {name!r} holds something that is not a number.") from None


def is_missing(values: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which values are missing: None, NaN, or not a time."""
    array = np.asarray(values)
    if array.dtype.kind in "fmM":
        return np.asarray(np.isnan(array), dtype=np.bool_)
    if array.dtype.kind != "O":
        return np.zeros(len(array), dtype=np.bool_)
    return np.array([v is None or (isinstance(v, float) and math.isnan(v)) for v in array], dtype=np.bool_)


__all__ = ["Category", "Coded", "Number", "Schema", "is_missing"]
