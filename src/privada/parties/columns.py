"""Columns of a public schema, and everything that privada does with a column of each type.

A column type is one class: how values become features and come back, how they are checked, read from CSV and
declared in a file, and which values an audit tries. Nothing else in privada asks which type a column is, so a
new type is a subclass of `Column` with a `register_column` line. A column whose values are numbers between
two bounds needs only `read_numbers`, `at`, `decode`, `read_fields` and `to_dict`.

A column is encoded by what is public about it alone. An error names the column, never a value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from privada._arrays import BoolArray, FloatArray, IntArray
from privada._toml import Section
from privada.exceptions import InputError, SchemaError, StudyError
from privada.parties.csv_files import Dialect, parse_flags, parse_integers, parse_numbers, parse_times
from privada.parties.tables import Coded
from privada.privacy.bounds import Box, Classes

DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")  # microseconds
MISSING_SHARE = 0.1  # of generated values, where some may be missing


class Column(ABC):
    """A column of a type: a number between two public bounds, unless a subclass says otherwise.

    The class attributes say how the rest of privada treats columns of the type.
    """

    label_role: ClassVar[str] = ""  # "number" or "classes"; a type without a role cannot be a label
    label_dtype: ClassVar[type] = np.float64  # of encoded labels
    is_coded: ClassVar[bool] = False  # whether columns are read by their distinct values, see `Coded`
    holds_floats: ClassVar[bool] = False  # whether values are floats and a missing one is NaN
    is_time: ClassVar[bool] = False  # whether values are dates or times, which can divide vintages
    fault_words: ClassVar[Mapping[str, str]] = {}  # what a column holds that has a fault of `find_faults`

    if TYPE_CHECKING:  # fields or properties of every subclass

        @property
        def name(self) -> str: ...
        @property
        def missing(self) -> bool: ...
        @property
        def low(self) -> float: ...
        @property
        def high(self) -> float: ...

    # Declared in a file.

    @classmethod
    @abstractmethod
    def read_fields(cls, section: Section) -> dict[str, Any]:
        """The fields, other than name and missing, of a table ``[[schema.columns]]``."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain form, which is also the table of an owner card."""

    @classmethod
    def suggest_kind(cls, arrow_type: Any) -> str | None:  # noqa: ARG003 - most types suggest none
        """The kind that an Arrow type suggests, None if it suggests no column of this type."""
        return None

    # Encoded and decoded.

    @abstractmethod
    def read_numbers(self, values: Any) -> FloatArray:
        """Values as numbers, NaN where missing; an error names the column if some cannot be read."""

    @abstractmethod
    def at(self, number: float) -> Any:
        """The value of a number."""

    @abstractmethod
    def decode(self, features: FloatArray) -> npt.NDArray[Any]:
        """Values of features; a value is missing if its mark is above one half."""

    def features(self) -> tuple[str, ...]:
        """Names of the features: the column's own, and a mark of missing values if there may be some."""
        return (self.name, f"{self.name} is missing") if self.missing else (self.name,)

    def limits(self) -> tuple[tuple[float, float], ...]:
        """Bounds of each feature."""
        return ((self.low, self.high), (0.0, 1.0)) if self.missing else ((self.low, self.high),)

    def encode(self, values: Any) -> FloatArray:
        """Features within the bounds, one row for each value."""
        numbers = self.read_numbers(values)
        for fault, places in self.find_faults(numbers):
            if places.any():
                raise SchemaError(f"Column {self.name!r} holds {self.fault_words[fault]}.")
        absent = np.isnan(numbers)
        self.check_present(absent)
        # A missing value becomes the middle of the bounds, and its mark 1.
        clipped = np.clip(np.where(absent, (self.low + self.high) / 2, numbers), self.low, self.high)
        return np.column_stack([clipped, absent]) if self.missing else clipped[:, None]

    def encode_label(self, values: Any) -> npt.NDArray[Any]:
        """Values of a label: class codes, or clipped numbers."""
        return self.encode(values)[:, 0]

    @property
    def is_plain(self) -> bool:
        """Whether encoding only clips, and refuses what is not finite."""
        return False

    # Checked.

    def check_present(self, absent: BoolArray) -> None:
        """Raise `SchemaError` if values are missing that must not be."""
        if absent.any() and not self.missing:
            raise SchemaError(f"Column {self.name!r} holds a missing value; the schema allows none.")

    def find_faults(self, numbers: FloatArray) -> Iterator[tuple[str, BoolArray]]:  # noqa: ARG002
        """Names of faults that are errors, and which numbers have them."""
        yield from ()

    def count_faults(self, values: Any) -> dict[str, int]:
        """How many values have which fault, whether it is an error or is clipped."""
        try:
            numbers = self.read_numbers(values)
        except SchemaError:
            # Some value cannot be read: each is tried alone, so that the others are still counted.
            rows = [row for row in range(len(values)) if self._is_readable(values[row : row + 1])]
            if len(rows) == len(values):
                raise
            others = self.count_faults(values[rows]) if rows else {}
            return {"unparsable": len(values) - len(rows), **others}
        absent = np.isnan(numbers)
        faults = dict(self.find_faults(numbers))
        faults |= {"missing": absent, "below": numbers < self.low, "above": numbers > self.high}
        return {name: int(np.count_nonzero(places)) for name, places in faults.items()}

    def _is_readable(self, values: Any) -> bool:
        try:
            self.read_numbers(values)
        except SchemaError:
            return False
        return True

    # Read from CSV.

    def arrow_type(self) -> Any:
        """The Arrow type that holds the column's values."""
        import pyarrow as pa

        return pa.float64()

    @property
    def expected(self) -> str:
        """What a field of CSV that cannot be parsed is not."""
        return "a number"

    def parse_words(self, words: Any, dialect: Dialect) -> Any:
        """Words of CSV as an Arrow array, null where one cannot be parsed."""
        return parse_numbers(words, dialect)

    def needs_parser(self, dialect: Dialect) -> bool:  # noqa: ARG002 - most columns need none
        """Whether Arrow's own reader does not read such fields, or not exactly."""
        return False

    def check_dialect(self, dialect: Dialect) -> None:  # noqa: B027 - most go with any dialect
        """Raise `SchemaError` if the column cannot be read from a CSV file of this dialect."""

    # Values that audits try, and generated rows.

    @property
    def missing_value(self) -> Any:
        """What stands for a missing value."""
        return np.nan if self.holds_floats else None

    def lowest(self) -> Any:
        """The least value."""
        return self.at(self.low)

    def highest(self) -> Any:
        """The largest value."""
        return self.at(self.high)

    def between(self, share: float) -> Any:
        """The value at a share of the way from the least to the largest one."""
        return self.at(self.low + share * (self.high - self.low))

    def step(self, place: int, steps: int) -> Any:
        """The value at a place of evenly spaced steps."""
        return self.between(place / max(1, steps - 1))

    def beyond(self, factor: float) -> Any:
        """A value far above the bounds, or far below them if the factor is negative."""
        return self.at(factor * max(1.0, abs(self.high if factor > 0 else self.low)))

    def draw(self, rng: np.random.Generator) -> Any:
        """A value within the bounds."""
        return self.at(rng.uniform(self.low, self.high))

    def draw_rows(self, rows: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Values for generated rows: features drawn evenly between their limits, decoded."""
        low, high = np.array(self.limits()).T
        features = rng.uniform(low, high, size=(rows, len(low)))
        if self.missing:  # the last feature is the mark
            features[:, -1] = rng.random(rows) < MISSING_SHARE
        return self.decode(features)

    def is_marked(self, features: FloatArray) -> BoolArray:
        """Which rows of features are marked as missing."""
        return features[:, -1] > 0.5 if self.missing else np.zeros(len(features), dtype=np.bool_)


C = TypeVar("C", bound=type[Column])


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A word for columns in ``kind`` of a schema file."""

    word: str
    meaning: str  # what such a column holds, for whoever sets up an owner
    asks: str  # what must be declared: "bounds" (``low`` and ``high``), "values", or nothing
    hint: str = ""  # how bounds are written, if they are not numbers, or in which order values are
    settings: Mapping[str, Any] = field(default_factory=dict)  # fields that the word alone decides


KINDS: dict[str, tuple[Kind, Any]] = {}  # words, and the types of columns that they mean


def register_column(*kinds: Kind) -> Callable[[C], C]:
    """Let schema files, the setup of owners and saved models know a type of columns by these kinds."""

    def register(column_type: C) -> C:
        KINDS.update({kind.word: (kind, column_type) for kind in kinds})
        return column_type

    return register


def read_column(section: Section) -> Column:
    """A column, or a label, of a schema file."""
    name = section.string("name")
    guess = "category" if "values" in section else "date" if section.holds_date("low") else "number"
    word = section.string("kind", guess)
    if word not in KINDS:
        section.fail("kind", f"expected one of {', '.join(KINDS)}, got {word!r}.")
    kind, column_type = KINDS[word]
    try:
        fields = column_type.read_fields(section) if kind.asks else {}
        column = column_type(name=name, missing=section.flag("missing", False), **fields, **kind.settings)
    except StudyError:
        raise
    except InputError as error:
        section.fail("name", f"{name}: {error}", beside=f'"{name}"')
    section.done()
    return column


def column_types() -> list[Any]:
    """All registered types of columns."""
    return list(dict.fromkeys(column_type for _, column_type in KINDS.values()))


def suggest_kind(arrow_type: Any) -> str:
    """The kind that the declared type of a column suggests; it is a category if no other type claims it."""
    words = (column_type.suggest_kind(arrow_type) for column_type in column_types())
    return next(filter(None, words), "category")


@register_column(
    Kind(word="number", meaning="a number between two bounds", asks="bounds"),
    Kind(
        word="integer",
        meaning="a whole number between two bounds",
        asks="bounds",
        settings={"whole": True},
    ),
)
@dataclass(frozen=True, kw_only=True)
class Number(Column):
    """A number between two public bounds; values beyond them are clipped.

    Parameters
    ----------
    name : str
    low, high : float
    missing : bool, default=False
        Whether values may be missing. A missing value becomes the middle of the bounds and an extra
        feature that says so; otherwise it is an error.
    whole : bool, default=False
        Whether all values are whole numbers: a fraction is an error, and decoding rounds.
    """

    name: str
    low: float
    high: float
    missing: bool = False
    whole: bool = False

    label_role = "number"
    holds_floats = True
    fault_words: ClassVar[Mapping[str, str]] = {
        "infinite": "an infinite value",
        "fraction": "a fraction; the schema says whole numbers",
    }

    def __post_init__(self) -> None:
        Box(low=(self.low,), high=(self.high,))

    @classmethod
    def read_fields(cls, section: Section) -> dict[str, Any]:
        return {key: section.number(key) for key in ("low", "high")}

    def to_dict(self) -> dict[str, Any]:
        kind = {"kind": "integer"} if self.whole else {}
        return {"name": self.name, **kind, "low": self.low, "high": self.high, "missing": self.missing}

    @classmethod
    def suggest_kind(cls, arrow_type: Any) -> str | None:
        from pyarrow import types

        if types.is_integer(arrow_type):
            return "integer"
        return "number" if types.is_floating(arrow_type) or types.is_decimal(arrow_type) else None

    @property
    def is_plain(self) -> bool:
        return not (self.missing or self.whole)

    def read_numbers(self, values: Any) -> FloatArray:
        array = np.asarray(values)
        if array.dtype.kind in "mM" or (array.dtype.kind == "O" and any(map(_is_time, array))):
            raise SchemaError(f'Column {self.name!r} holds dates or times; declare it with kind = "date".')
        try:
            return np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError):
            raise SchemaError(f"Column {self.name!r} holds something that is not a number.") from None

    def find_faults(self, numbers: FloatArray) -> Iterator[tuple[str, BoolArray]]:
        yield "infinite", np.isinf(numbers)
        if self.whole:
            yield "fraction", numbers[np.isfinite(numbers)] % 1 != 0

    def at(self, number: float) -> float:
        return float(round(number)) if self.whole else number

    def decode(self, features: FloatArray) -> npt.NDArray[Any]:
        numbers = np.rint(features[:, 0]) if self.whole else features[:, 0].copy()
        numbers[self.is_marked(features)] = np.nan
        return numbers

    def needs_parser(self, dialect: Dialect) -> bool:
        return dialect.thousands is not None


@register_column(
    Kind(
        word="date",
        meaning="a date or a time between two bounds, as 2024-01-31",
        asks="bounds",
        hint="a date, as 2024-01-31",
    )
)
@dataclass(frozen=True, kw_only=True)
class Date(Column):
    """A date or a time between two public ones; becomes the number of days since the first.

    Values beyond the bounds are clipped. A time with a zone is converted to UTC, one without is taken as it
    stands.

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

    is_time = True

    def __post_init__(self) -> None:
        for key, moment in zip(("first", "last"), self._ends, strict=True):
            object.__setattr__(self, key, moment)
        if not self.high > 0:
            raise SchemaError(f"Expected first before last in column {self.name!r}.")

    @classmethod
    def read_fields(cls, section: Section) -> dict[str, Any]:
        return {"first": section.date("low"), "last": section.date("high")}

    def to_dict(self) -> dict[str, Any]:
        low, high = (end.isoformat() for end in self._ends)
        return {"name": self.name, "kind": "date", "low": low, "high": high, "missing": self.missing}

    @classmethod
    def suggest_kind(cls, arrow_type: Any) -> str | None:
        from pyarrow import types

        return "date" if types.is_date(arrow_type) or types.is_timestamp(arrow_type) else None

    @property
    def low(self) -> float:
        """The least number of days: none."""
        return 0.0

    @property
    def high(self) -> float:
        """Days from the first to the last."""
        first, last = map(_to_micros, self._ends)
        return float((last - first) / DAY)

    @property
    def _ends(self) -> tuple[date, date]:
        """The bounds, without zones."""
        return _read_bound(self.first, self.name), _read_bound(self.last, self.name)

    def read_numbers(self, values: Any) -> FloatArray:
        """Days since the first date, NaN where missing; far beyond the bounds becomes a bit beyond."""
        times = self._read_times(values)
        days = (times.astype("datetime64[us]").astype(np.int64) - _to_micros(self._ends[0])) / DAY
        return np.where(np.isnat(times), np.nan, days)

    def find_between(self, values: npt.NDArray[Any]) -> BoolArray:
        """Which values are from the first date on and before the last; a missing value is not."""
        times = self._read_times(values).astype("datetime64[us]")
        first, last = map(_to_micros, self._ends)
        moments = times.astype(np.int64)
        return ~np.isnat(times) & (first <= moments) & (moments < last)

    def _read_times(self, values: Any) -> npt.NDArray[Any]:
        """Values as times, not-a-time where missing, none so far beyond the bounds that integers overflow."""
        times = np.asarray(values)
        if times.dtype.kind != "M":
            try:
                if times.dtype.kind not in "OU":
                    raise TypeError
                times = np.array([_as_time(value) for value in times.tolist()], dtype="datetime64[us]")
            except (TypeError, ValueError, OverflowError):
                raise SchemaError(f"Column {self.name!r} holds something that is not a date.") from None
        if np.datetime_data(times.dtype)[0] in ("ns", "ps", "fs", "as"):
            times = times.astype("datetime64[us]")
        # Clipped in the unit of the values: a year 10**15 has no number of microseconds.
        low, high = (np.datetime64(_to_micros(end), "us").astype(times.dtype) for end in self._ends)
        return np.clip(times, low - 1, high + 1)

    def at(self, number: float) -> np.datetime64:
        """The time, to the second, within the years that Python knows."""
        first = np.datetime64(_to_micros(self._ends[0]), "us").astype("datetime64[s]")
        ends = np.array(["0001-01-01", "9999-12-31"], dtype="datetime64[s]")
        return np.clip(first + np.timedelta64(round(number * 86_400), "s"), *ends)

    def decode(self, features: FloatArray) -> npt.NDArray[Any]:
        """Dates of features; of whole days if the bounds are dates."""
        whole_days = not isinstance(self._ends[0], datetime)
        days = np.rint(features[:, 0]) if whole_days else features[:, 0]
        times = (np.rint(days * DAY).astype(np.int64) + _to_micros(self._ends[0])).astype("datetime64[us]")
        times[self.is_marked(features)] = np.datetime64("NaT")
        return times.astype("datetime64[D]") if whole_days else times

    def arrow_type(self) -> Any:
        import pyarrow as pa

        return pa.timestamp("us")

    @property
    def expected(self) -> str:
        return "a date"

    def parse_words(self, words: Any, dialect: Dialect) -> Any:
        return parse_times(words, dialect)

    def needs_parser(self, dialect: Dialect) -> bool:
        return dialect.date_format is not None


@register_column(
    Kind(word="boolean", meaning="true or false", asks="", settings={"values": (False, True)}),
    Kind(word="category", meaning="one of a list of values", asks="values"),
    Kind(
        word="ordered",
        meaning="one of a list of values that have an order",
        asks="values",
        hint="in order",
        settings={"ordered": True},
    ),
)
@dataclass(frozen=True, kw_only=True)
class Category(Column):
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

    label_role = "classes"
    label_dtype = np.int64
    is_coded = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", Classes(tuple(self.values)).names)

    @classmethod
    def read_fields(cls, section: Section) -> dict[str, Any]:
        return {"values": tuple(section.array("values"))}

    def to_dict(self) -> dict[str, Any]:
        kind = {"kind": "ordered"} if self.ordered else {}
        return {"name": self.name, **kind, "values": list(self.values), "missing": self.missing}

    @classmethod
    def suggest_kind(cls, arrow_type: Any) -> str | None:
        from pyarrow import types

        return "boolean" if types.is_boolean(arrow_type) else None

    @property
    def low(self) -> float:
        """The first place."""
        return 0.0

    @property
    def high(self) -> float:
        """The last place."""
        return float(len(self.values) - 1)

    def features(self) -> tuple[str, ...]:
        """One name for each value, or the column's own if ordered, and the missing mark."""
        if self.ordered:
            return super().features()
        names = tuple(f"{self.name} = {value}" for value in self.values)
        return (*names, f"{self.name} is missing") if self.missing else names

    def limits(self) -> tuple[tuple[float, float], ...]:
        return super().limits() if self.ordered else ((0.0, 1.0),) * len(self.features())

    def read_numbers(self, values: Any) -> FloatArray:
        """The place of each value, NaN where missing."""
        codes, absent = self.look_up(values)
        if np.any((codes < 0) & ~absent):
            raise SchemaError(f"Column {self.name!r} holds a value outside {list(self.values)}.")
        return np.where(absent, np.nan, codes)

    def encode(self, values: Any) -> FloatArray:
        """One-hot, or the place if ordered, after refusing unknown values."""
        if self.ordered:
            return super().encode(values)
        places = self.read_numbers(values)
        absent = np.isnan(places)
        self.check_present(absent)
        hot = np.zeros((len(values), len(self.features())))
        present = np.flatnonzero(~absent)
        hot[present, places[present].astype(np.int64)] = 1.0
        if self.missing:
            hot[:, -1] = absent
        return hot

    def encode_label(self, values: Any) -> IntArray:
        codes, absent = self.look_up(values)
        if absent.any():
            raise SchemaError(f"Column {self.name!r} holds a missing label.")
        if np.any(codes < 0):
            raise SchemaError(f"A label is not among the public classes {list(self.values)}.")
        return codes

    def look_up(self, values: npt.NDArray[Any] | Coded) -> tuple[IntArray, BoolArray]:
        """Code of each row, -1 if it has none of the public values; and whether it is missing."""
        if isinstance(values, Coded):
            # Only distinct values are looked up; place -1, a missing value, picks what is appended.
            codes, absent = self.look_up(values.distinct)
            return np.append(codes, -1)[values.places], np.append(absent, True)[values.places]
        words = values
        if values.dtype.kind == "M":
            words = np.datetime_as_string(values, unit="auto")
        elif values.dtype.kind == "O" and any(map(_is_time, values)):
            texts = [np.datetime_as_string(_as_time(v), unit="auto") if _is_time(v) else v for v in values]
            words = np.array(texts, dtype=object)
        try:
            codes = Classes(self.values).look_up(words)
        except TypeError:  # a list or the like
            raise SchemaError(f"Column {self.name!r} holds a value outside {list(self.values)}.") from None
        absent, unknown = np.zeros(len(values), dtype=np.bool_), np.flatnonzero(codes < 0)
        absent[unknown] = is_missing(values[unknown])
        return codes, absent

    def count_faults(self, values: Any) -> dict[str, int]:
        codes, absent = self.look_up(values)
        return {"missing": int(absent.sum()), "outside": int(((codes < 0) & ~absent).sum())}

    def at(self, number: float) -> Any:
        """The value of the nearest place."""
        return self.values[int(np.clip(round(number), 0, len(self.values) - 1))]

    def decode(self, features: FloatArray) -> npt.NDArray[Any]:
        """The value of the largest feature, or of the nearest place; None where the mark says missing."""
        many = len(self.values)
        if self.ordered:
            codes = np.clip(np.rint(features[:, 0]), 0, many - 1).astype(np.int64)
        else:
            codes = np.argmax(features[:, :many], axis=1)
        values = np.array([*self.values, None], dtype=object)
        return values[np.where(self.is_marked(features), many, codes)]

    def arrow_type(self) -> Any:
        import pyarrow as pa

        types = frozenset(type(value) for value in self.values)
        simple = {frozenset({str}): pa.string(), frozenset({bool}): pa.bool_(), frozenset({int}): pa.int64()}
        return simple.get(types, pa.float64())

    @property
    def expected(self) -> str:
        names = {"bool": "true or false", "int64": "a whole number"}
        return names.get(str(self.arrow_type()), "a number")

    def parse_words(self, words: Any, dialect: Dialect) -> Any:
        type_name = str(self.arrow_type())
        parsers = {"int64": parse_integers, "bool": parse_flags, "double": parse_numbers}
        return words if type_name == "string" else parsers[type_name](words, dialect)

    def check_dialect(self, dialect: Dialect) -> None:
        if clash := sorted(set(dialect.null) & {value for value in self.values if isinstance(value, str)}):
            raise SchemaError(
                f"Column {self.name!r} has the category {clash[0]!r}, which is also a word for a missing "
                "value; declare other words by null under [data.csv]."
            )

    def between(self, share: float) -> Any:  # noqa: ARG002 - values without an order have no middle
        """The first value."""
        return self.values[0]

    def step(self, place: int, steps: int) -> Any:  # noqa: ARG002
        """The values in turn."""
        return self.values[place % len(self.values)]

    def draw(self, rng: np.random.Generator) -> Any:
        return self.values[rng.integers(len(self.values))]


def _is_time(value: Any) -> bool:
    return isinstance(value, (date, np.datetime64))


def _as_time(value: Any) -> np.datetime64:
    """A date, a time or its ISO text; None and NaN are not-a-time."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value != value:  # noqa: PLR0124
        return np.datetime64("NaT")
    if isinstance(value, np.datetime64):
        return value
    return np.datetime64(_drop_zone(datetime.fromisoformat(value) if isinstance(value, str) else value))


def _drop_zone(moment: date) -> date:
    """A time without its zone, in UTC."""
    if not isinstance(moment, date):
        raise TypeError
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def _read_bound(value: Any, name: str) -> date:
    """A public bound of a date."""
    try:
        if isinstance(value, str):
            value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        return _drop_zone(value)
    except (TypeError, ValueError):
        raise SchemaError(f"Expected dates as bounds of column {name!r}, got {value!r}.") from None


def _to_micros(moment: date) -> int:
    """Microseconds since 1970."""
    return int(np.datetime64(moment).astype("datetime64[us]").astype(np.int64))


def is_missing(values: Sequence[Any] | npt.NDArray[Any]) -> BoolArray:
    """Which values are missing: None, NaN, or not a time."""
    array = np.asarray(values)
    if array.dtype.kind in "fmM":
        return np.asarray(np.isnan(array), dtype=np.bool_)
    if array.dtype.kind != "O":
        return np.zeros(len(array), dtype=np.bool_)
    return np.array([v is None or (isinstance(v, float) and math.isnan(v)) for v in array], dtype=np.bool_)


__all__ = [
    "KINDS", "Category", "Coded", "Column", "Date", "Kind", "Number", "column_types", "is_missing",
    "read_column", "register_column", "suggest_kind",
]  # fmt: skip
