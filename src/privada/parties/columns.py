"""Columns of a public schema: numbers, dates and categories, and how each becomes features.

A column is encoded by what is public about it alone. An error names the column, never a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import BoolArray, FloatArray, IntArray
from privada.exceptions import SchemaError
from privada.privacy.bounds import Box, Classes

DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")  # microseconds


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

    Parameters
    ----------
    name : str
    low, high : float
    missing : bool, default=False
        Whether values may be missing. A missing one becomes the middle of the bounds and an extra
        feature that says so; otherwise it is an error.
    whole : bool, default=False
        Whether all values are whole numbers: a fraction is an error, and decoding rounds.
    """

    name: str
    low: float
    high: float
    missing: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        Box(low=(self.low,), high=(self.high,))

    def encode(self, values: npt.NDArray[Any]) -> FloatArray:
        """Clip, after refusing what is not a number."""
        numbers = as_floats(values, self.name)
        absent = np.isnan(numbers)
        if np.isinf(numbers).any():
            raise SchemaError(f"Column {self.name!r} holds an infinite value.")
        if self.whole and np.any(numbers[~absent] % 1):
            raise SchemaError(f"Column {self.name!r} holds a fraction; the schema says whole numbers.")
        return _bounded(numbers, absent, self)

    def at(self, number: float) -> float:
        """The value of a number: itself, rounded if all are whole."""
        return float(round(number)) if self.whole else number

    def decode(self, features: FloatArray) -> npt.NDArray[Any]:
        """Numbers of features; NaN where the mark says that one is missing."""
        numbers = np.rint(features[:, 0]) if self.whole else features[:, 0].copy()
        numbers[_marked(features, self)] = np.nan
        return numbers

    def features(self) -> tuple[str, ...]:
        """Own name, and the missing mark."""
        return _with_mark(self)

    def limits(self) -> tuple[tuple[float, float], ...]:
        """Own bounds, and 0 to 1 for the missing mark."""
        return _limits(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        kind = {"kind": "integer"} if self.whole else {}
        return {"name": self.name, **kind, "low": self.low, "high": self.high, "missing": self.missing}


@dataclass(frozen=True, kw_only=True)
class Date:
    """A date or a time between two public ones; becomes the number of days since the first.

    Values beyond the bounds are clipped. A time with a zone is taken in UTC, one without as it stands.

    Parameters
    ----------
    name : str
    first, last : date, datetime or str
        Public bounds; text as in "2024-01-31" or "2024-01-31T12:00:00".
    missing : bool, default=False
        As for `Number`.

    >>> born = Date(name="born", first="1900-01-01", last="2020-12-31")
    >>> born.encode(np.array(["1900-01-03", "1850-01-01"], dtype="datetime64[D]")).ravel().tolist()
    [2.0, 0.0]
    """

    name: str
    first: date | str
    last: date | str
    missing: bool = False

    def __post_init__(self) -> None:
        for key, moment in zip(("first", "last"), self._ends, strict=True):
            object.__setattr__(self, key, moment)
        if not self.high > 0:
            raise SchemaError(f"Expected first before last in column {self.name!r}.")

    @property
    def low(self) -> float:
        """The least number of days: none."""
        return 0.0

    @property
    def high(self) -> float:
        """Days from the first to the last."""
        first, last = map(_micros, self._ends)
        return float((last - first) / DAY)

    def encode(self, values: npt.NDArray[Any]) -> FloatArray:
        """Days since the first date, clipped, after refusing what is not a date."""
        days = self.count_days(values)
        return _bounded(days, np.isnan(days), self)

    def count_days(self, values: npt.NDArray[Any]) -> FloatArray:
        """Days since the first date, NaN where missing; far beyond the bounds becomes a bit beyond."""
        times = self._near(as_times(values, self.name))
        days = (times.astype("datetime64[us]").astype(np.int64) - _micros(self._ends[0])) / DAY
        return np.where(np.isnat(times), np.nan, days)

    def find_between(self, values: npt.NDArray[Any]) -> BoolArray:
        """Which values are from the first date on and before the last; a missing one is not."""
        times = self._near(as_times(values, self.name)).astype("datetime64[us]")
        first, last = map(_micros, self._ends)
        moments = times.astype(np.int64)
        return ~np.isnat(times) & (first <= moments) & (moments < last)

    def at(self, days: float) -> np.datetime64:
        """The time, to the second, that is some days after the first, within the years that Python knows."""
        first = np.datetime64(_micros(self._ends[0]), "us").astype("datetime64[s]")
        ends = np.array(["0001-01-01", "9999-12-31"], dtype="datetime64[s]")
        moment: np.datetime64 = np.clip(first + np.timedelta64(round(days * 86_400), "s"), *ends)
        return moment

    def decode(self, features: FloatArray) -> npt.NDArray[Any]:
        """Dates of features; of whole days if the bounds are dates, not-a-time where one is missing."""
        whole = not isinstance(self._ends[0], datetime)
        days = np.rint(features[:, 0]) if whole else features[:, 0]
        times = (np.rint(days * DAY).astype(np.int64) + _micros(self._ends[0])).astype("datetime64[us]")
        times[_marked(features, self)] = np.datetime64("NaT")
        return times.astype("datetime64[D]") if whole else times

    def _near(self, times: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The same times, none so far beyond the bounds that microseconds overflow."""
        if np.datetime_data(times.dtype)[0] in ("ns", "ps", "fs", "as"):
            times = times.astype("datetime64[us]")
        low, high = (np.datetime64(_micros(end), "us").astype(times.dtype) for end in self._ends)
        near: npt.NDArray[Any] = np.clip(times, low - 1, high + 1)
        return near

    @property
    def _ends(self) -> tuple[date, date]:
        return _as_moment(self.first, self.name), _as_moment(self.last, self.name)

    def features(self) -> tuple[str, ...]:
        """Own name, and the missing mark."""
        return _with_mark(self)

    def limits(self) -> tuple[tuple[float, float], ...]:
        """From no day to all days between the bounds, and 0 to 1 for the missing mark."""
        return _limits(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        ends = dict(zip(("low", "high"), (end.isoformat() for end in self._ends), strict=True))
        return {"name": self.name, "kind": "date", **ends, "missing": self.missing}


@dataclass(frozen=True, kw_only=True)
class Category:
    """One of a public list of values; becomes one feature (0 or 1) for each.

    Parameters
    ----------
    name : str
    values : sequence
        Text, numbers, or true and false. Dates and times are matched by their ISO text, "2024-01-31".
    missing : bool, default=False
        Whether values may be missing; then an extra feature says so.
    ordered : bool, default=False
        Whether the values stand in order. They become one feature, the place from 0 on; a missing
        value becomes the middle.
    """

    name: str
    values: tuple[Any, ...]
    missing: bool = False
    ordered: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", Classes(tuple(self.values)).names)

    def encode(self, values: npt.NDArray[Any] | Coded) -> FloatArray:
        """One-hot, or the place if ordered, after refusing unknown values."""
        codes, absent = self.look_up(values)
        if np.any((codes < 0) & ~absent):
            raise SchemaError(f"Column {self.name!r} holds a value outside {list(self.values)}.")
        if self.ordered:
            return _bounded(np.where(absent, np.nan, codes), absent, self)
        _check_present(absent, self)
        hot = np.zeros((len(values), len(self.features())))
        known = np.flatnonzero(~absent)
        hot[known, codes[known]] = 1.0
        if self.missing:
            hot[:, -1] = absent
        return hot

    def decode(self, features: FloatArray) -> npt.NDArray[Any]:
        """The value of the largest feature, or of the nearest place; None where the mark says missing."""
        many = len(self.values)
        if self.ordered:
            codes = np.clip(np.rint(features[:, 0]), 0, many - 1).astype(np.int64)
        else:
            codes = np.argmax(features[:, :many], axis=1)
        found = np.array([*self.values, None], dtype=object)
        return found[np.where(_marked(features, self), many, codes)]

    def label_codes(self, values: npt.NDArray[Any] | Coded) -> IntArray:
        """Code of each row's class, where this column is the label."""
        codes, absent = self.look_up(values)
        if absent.any():
            raise SchemaError(f"Column {self.name!r} holds a missing label.")
        if np.any(codes < 0):
            raise SchemaError(f"A label is not among the public classes {list(self.values)}.")
        return codes

    def look_up(self, values: npt.NDArray[Any] | Coded) -> tuple[IntArray, BoolArray]:
        """Code of each row, -1 if it has none of the public values; and whether it is missing."""
        if isinstance(values, Coded):
            codes, absent = self.look_up(values.distinct)
            return np.append(codes, -1)[values.places], np.append(absent, True)[values.places]
        try:
            codes = Classes(self.values).look_up(_as_text(values))
        except TypeError:  # a list or the like
            raise SchemaError(f"Column {self.name!r} holds a value outside {list(self.values)}.") from None
        absent, unknown = np.zeros(len(values), dtype=np.bool_), np.flatnonzero(codes < 0)
        absent[unknown] = is_missing(values[unknown])
        return codes, absent

    @property
    def low(self) -> float:
        """The first place, if ordered."""
        return 0.0

    @property
    def high(self) -> float:
        """The last place, if ordered."""
        return float(len(self.values) - 1)

    def features(self) -> tuple[str, ...]:
        """One name for each value, or the own name if ordered, and the missing mark."""
        if self.ordered:
            return _with_mark(self)
        names = tuple(f"{self.name} = {value}" for value in self.values)
        return (*names, f"{self.name} is missing") if self.missing else names

    def limits(self) -> tuple[tuple[float, float], ...]:
        """0 to 1 throughout, or the places."""
        return _limits(self) if self.ordered else ((0.0, 1.0),) * len(self.features())

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        kind = {"kind": "ordered"} if self.ordered else {}
        return {"name": self.name, **kind, "values": list(self.values), "missing": self.missing}


Column = Number | Date | Category


def _bounded(numbers: FloatArray, absent: BoolArray, column: Column) -> FloatArray:
    """Clipped numbers as a column; missing ones are its middle and marked, or an error."""
    _check_present(absent, column)
    filled = np.where(absent, (column.low + column.high) / 2, numbers)
    clipped = np.clip(filled, column.low, column.high)
    return np.column_stack([clipped, absent]) if column.missing else clipped[:, None]


def _check_present(absent: BoolArray, column: Column) -> None:
    if absent.any() and not column.missing:
        raise SchemaError(f"Column {column.name!r} holds a missing value; the schema allows none.")


def _marked(features: FloatArray, column: Column) -> BoolArray:
    """Which rows are marked as missing."""
    return features[:, -1] > 0.5 if column.missing else np.zeros(len(features), dtype=np.bool_)


def _with_mark(column: Column) -> tuple[str, ...]:
    return (column.name, f"{column.name} is missing") if column.missing else (column.name,)


def _limits(column: Column) -> tuple[tuple[float, float], ...]:
    own = (column.low, column.high)
    return (own, (0.0, 1.0)) if column.missing else (own,)


def as_floats(values: npt.NDArray[Any], name: str) -> FloatArray:
    """A column as numbers, NaN where missing; dates and times are none."""
    array = np.asarray(values)
    if array.dtype.kind in "mM" or (array.dtype.kind == "O" and any(map(_is_time, array))):
        raise SchemaError(f'Column {name!r} holds dates or times; declare it with kind = "date".')
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise SchemaError(f"Column {name!r} holds something that is not a number.") from None


def as_times(values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """A column as dates or times, not-a-time where missing; numbers are none."""
    array = np.asarray(values)
    if array.dtype.kind == "M":
        return array
    try:
        if array.dtype.kind not in "OU":
            raise TypeError
        return np.array([_as_time(value) for value in array.tolist()], dtype="datetime64[us]")
    except (TypeError, ValueError, OverflowError):
        raise SchemaError(f"Column {name!r} holds something that is not a date.") from None


def _is_time(value: Any) -> bool:
    return isinstance(value, (date, np.datetime64))


def _as_time(value: Any) -> np.datetime64:
    if value is None or (isinstance(value, float) and math.isnan(value)) or value != value:  # noqa: PLR0124
        return np.datetime64("NaT")
    if isinstance(value, np.datetime64):
        return value
    return np.datetime64(_naive(datetime.fromisoformat(value) if isinstance(value, str) else value))


def _micros(moment: date) -> int:
    """Microseconds since 1970."""
    return int(np.datetime64(moment).astype("datetime64[us]").astype(np.int64))


def _naive(moment: date) -> date:
    """A time without its zone, in UTC."""
    if not isinstance(moment, date):
        raise TypeError
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def _as_moment(value: Any, name: str) -> date:
    """A public bound of a date."""
    try:
        if isinstance(value, str):
            value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        return _naive(value)
    except (TypeError, ValueError):
        raise SchemaError(f"Expected dates as bounds of column {name!r}, got {value!r}.") from None


def _as_text(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values to look up; dates and times by their ISO text."""
    if values.dtype.kind == "M":
        return np.datetime_as_string(values, unit="auto")
    if values.dtype.kind == "O" and any(map(_is_time, values)):
        texts = [np.datetime_as_string(_as_time(v), unit="auto") if _is_time(v) else v for v in values]
        return np.array(texts, dtype=object)
    return values


def is_missing(values: Sequence[Any] | npt.NDArray[Any]) -> BoolArray:
    """Which values are missing: None, NaN, or not a time."""
    array = np.asarray(values)
    if array.dtype.kind in "fmM":
        return np.asarray(np.isnan(array), dtype=np.bool_)
    if array.dtype.kind != "O":
        return np.zeros(len(array), dtype=np.bool_)
    return np.array([v is None or (isinstance(v, float) and math.isnan(v)) for v in array], dtype=np.bool_)


__all__ = ["Category", "Coded", "Column", "Date", "Number", "as_floats", "as_times", "is_missing"]
