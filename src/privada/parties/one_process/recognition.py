"""How a process recognises private rows, and the tables and secret parts of tables that they come from.

*Rows* are recognised by keyed fingerprints: eight bytes of BLAKE2b over a row's features, keyed with random
bytes of this process. The key never leaves the process and is never written, so a fingerprint means nothing
anywhere else, and no fingerprint is ever part of a release, a ledger or a fitted estimator. What counts as
the same row errs on the safe side, towards recognising too much:

* every value is converted by itself, first to double and then to single precision, so that a copy in float32,
  float64 or whole numbers, in NumPy, pandas or Arrow, is the same row, whatever other rows made of the type
  of the whole; -0.0 is 0.0, True is 1, and all missing values are one;
* columns that have names may come in any order;
* text and categories count by their text, or by the number that they say;
* labels do not count: the same features with another label column are the same row;
* persons count by their identifiers: 7, 7.0 and "7" are one person.

A row that was changed (scaled, encoded by another schema, rounded to half precision, with other columns) is
not recognised: the process then takes it for a row of another table.

*Tables* matter because recognising rows is not enough to state what they have lost. In a file that is sorted
by a column, replacing one row shifts all rows between its two places, so that two folds of it may differ in
many rows: no sum of the losses of their fits bounds what the one row loses. Whether rows were divided in such
a way cannot be read off the arrays. So a loss over several fits is stated only where they are known to be

* of one *table*: the same rows, each as often, in any order;
* of *parts* of one table that were drawn secretly, by a label for each row or person that looks at no row
  (`PrivateKFold`, `PrivateSearchCV`), or of parts of such parts;
* of tables that the caller told apart: by other names, or as the parties of one fit.

The division stays secret, so what is stated covers whatever label a row may have: `possible_histories`. The
proof is in ``docs/explanation/accounting.md``, "Rows that are used again".
"""

from __future__ import annotations

import hashlib
import itertools
import math
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from privada.privacy.relation import Relation

Fingerprints = npt.NDArray[np.uint64]
MISSING = ("NAType", "NaTType")  # of pandas
TRUTHS = {"True": 1.0, "False": 0.0}  # as an array of texts writes them
SIZE = 8  # bytes; rows that agree by chance (n²/2⁶⁵) are counted together, never apart
MOST_LABELS = 256  # combinations of labels that are looked at one by one
UNKNOWN = (
    "Expected every fit of this process to be on one table, or on parts that PrivateKFold drew, to state "
    "spent_: which rows were in which fit may depend on other rows, so divide them by PrivateKFold, or name "
    "each table by dataset=Dataset(table=...) if which one a row is in follows from that row alone."
)


class RowHasher:
    """Makes fingerprints with a key of its own, which nobody else can have."""

    __slots__ = ("__key",)

    def __init__(self) -> None:
        self.__key = secrets.token_bytes(32)

    def __repr__(self) -> str:
        return "<RowHasher>"

    def __reduce__(self) -> Any:
        raise TypeError("Fingerprints are keyed for one process; they cannot be pickled or copied.")

    def hash_each_row(
        self, rows: Any, *, kind: str = "row", columns: Sequence[str] | None = None
    ) -> list[Fingerprints]:
        """The fingerprint of each row: as its columns come, and in the order of their names if it differs.

        The rows are those of a matrix or frame, or single persons. Fingerprints of different kinds never
        agree, but by chance.
        """
        views = [digest_rows(rows, key=self.__key, kind=kind)]
        if columns is not None and (order := np.argsort(columns)).tolist() != list(range(len(columns))):
            views.append(digest_rows(_read_values(rows)[:, order], key=self.__key, kind=kind))
        return views


def digest_rows(rows: Any, *, key: bytes, kind: str = "row") -> Fingerprints:
    """Eight bytes of each row's content under a key: a function of that row alone."""
    if len(rows) == 0:
        return np.zeros(0, dtype=np.uint64)
    if kind == "person":
        table = _write_persons(rows)
    else:  # one line of bytes for each row, the same whatever form it came in
        array = _read_values(rows)
        array = array.reshape(len(array), -1)
        if array.dtype.kind in "biuf":
            table = _write_numbers(array)
        elif array.shape[1]:
            table = np.hstack([_write_column(column) for column in array.T])
        else:
            table = np.zeros((len(array), 1), dtype=np.uint8)
    width = table.shape[1]
    # The width is hashed first, so that no row of a narrow table is the beginning of one of a wide table.
    keyed = hashlib.blake2b(key=key, digest_size=SIZE, person=kind.encode())
    keyed.update(width.to_bytes(8, "little"))
    content, digests = table.tobytes(), bytearray()
    for start in range(0, len(content), width):
        hasher = keyed.copy()
        hasher.update(content[start : start + width])
        digests += hasher.digest()
    return np.frombuffer(bytes(digests), dtype=np.uint64)


def stack_columns(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Columns of whatever types as one matrix, each value as it is."""
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.column_stack(columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        table[:, place] = column
    return table


def _read_values(rows: Any) -> npt.NDArray[Any]:
    """The values of rows; those of a list as they are: a common type would make the text "True" of True."""
    array = np.array(rows, dtype=object) if isinstance(rows, (list, tuple)) else np.asarray(rows)
    if array.dtype.kind in "mM":  # else the unit would decide whether a date is a date or a whole number
        array = array.astype(f"{array.dtype.kind}8[us]")
    return array


def _write_persons(people: Any) -> npt.NDArray[np.uint8]:
    """Persons by the text of their identifiers; whole numbers are one person in whatever form they came."""
    digests = []
    for value in np.asarray(people).reshape(-1).tolist():
        person = value
        with suppress(TypeError, ValueError, OverflowError):
            number = int(value)
            person = number if isinstance(value, str) or number == value else value
        digests.append(hashlib.blake2b(_text(person).strip().encode(), digest_size=2 * SIZE).digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), -1)


def _write_numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Numbers in single precision, each in as many bytes as a text has."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Double precision comes first for every type: rounded once, a large whole number may be another one.
        double = np.array(values, dtype=np.float64, order="C")
        single = double.astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
    single[np.isnan(single)] = np.nan
    written = np.zeros((*single.shape, SIZE), dtype=np.uint8)
    written[..., :4] = np.ascontiguousarray(single).view(np.uint8).reshape(*single.shape, 4)
    return written.reshape(len(single), -1)


def _write_column(column: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """A column of anything, each value by itself: as a number if it is or says one, else as text."""
    values = column.tolist()
    numbers = [_read_number(value) for value in values]
    written = _write_numbers(np.array([0.0 if number is None else number for number in numbers])[:, None])
    for place, number in enumerate(numbers):
        if number is None:
            digest = hashlib.blake2b(_text(values[place]).encode(), digest_size=SIZE).digest()
            written[place] = np.frombuffer(digest, dtype=np.uint8)
    return written


def _read_number(value: Any) -> float | None:
    """The number that a value is or says, NaN for a missing one; None for anything else."""
    if value is None or type(value).__name__ in MISSING:
        return math.nan
    if isinstance(value, str) and value in TRUTHS:
        return TRUTHS[value]
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    """The text of a value; what is missing is one value."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


@dataclass(frozen=True, eq=False)
class Division:
    """A secret division of a table: every row, or person, has one of so many labels.

    How many have each is random, or fixed by the number of rows: then it means nothing under add/remove.
    """

    labels: int
    has_fixed_sizes: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """A table that was used, or divided: fingerprints of its units, and of rows if units are persons."""

    noted: tuple[Fingerprints, ...] = field(repr=False)


Labels = tuple[Division, frozenset[int]]


@dataclass(frozen=True)
class Part:
    """Those rows of a table that have one of these labels in each of these divisions; all without any."""

    table: Table
    labels: tuple[Labels, ...] = ()

    def is_drawn_for(self, relation: Relation) -> bool:
        """Whether neighbours under this relation are divided alike."""
        return relation is not Relation.ADD_REMOVE or not any(
            division.has_fixed_sizes for division, _ in self.labels
        )


class Register:
    """The tables and parts that a process knows, by what they hold."""

    def __init__(self) -> None:
        self._parts: dict[bytes, list[Part]] = {}
        self._apart: set[frozenset[Table]] = set()

    def find(
        self, keys: Sequence[bytes], noted: Sequence[Fingerprints], relation: Relation | None = None
    ) -> tuple[Part, ...]:
        """The table, or the part of one under this relation, that has these keys; a new one if none does."""
        parts = dict.fromkeys(
            part
            for key in keys
            for part in self._parts.get(key, ())
            if relation is None or part.is_drawn_for(relation)
        )
        if not parts:
            parts = {Part(Table(tuple(noted))): None}
        # An empty part, for example, may be a part of several tables: it counts as the whole of each.
        if len(parts) > 1:
            parts = dict.fromkeys(Part(part.table) for part in parts)
        for part, key in itertools.product(parts, keys):
            self._add(key, part)
        return tuple(parts)

    def divide(
        self, parts: Sequence[Part], division: Division, keys: dict[frozenset[int], list[bytes]]
    ) -> None:
        """Note the parts of a table, or of a part: their labels, and the keys of what they hold."""
        for part, (labels, own) in itertools.product(parts, keys.items()):
            for key in own:
                self._add(key, Part(part.table, (*part.labels, (division, labels))))

    def tell_apart(self, tables: Sequence[Table]) -> None:
        """Note that these are different tables, as those of the parties of one fit are."""
        pairs = itertools.combinations(dict.fromkeys(tables), 2)
        self._apart.update(frozenset(pair) for pair in pairs)

    def are_apart(self, tables: Sequence[Table], others: Sequence[Table]) -> bool:
        """Whether all of these are known to be other tables than those."""
        return all(frozenset(pair) in self._apart for pair in itertools.product(tables, others))

    def _add(self, key: bytes, part: Part) -> None:
        parts = self._parts.setdefault(key, [])
        if part not in parts:
            parts.append(part)


def key_of(rows: Fingerprints, people: Fingerprints | None = None) -> bytes:
    """Names the content of a table: each row as often as it has it, with its person, in any order."""
    columns = rows[:, None] if people is None else np.column_stack([people, rows])
    ordered = columns[np.lexsort(columns.T)]
    return hashlib.blake2b(np.ascontiguousarray(ordered).tobytes(), digest_size=32).digest()


def keys_of_parts(
    rows: Sequence[Fingerprints], people: Fingerprints | None, labels: npt.NDArray[np.integer], count: int
) -> dict[frozenset[int], list[bytes]]:
    """The keys of the rows of each label and of those of all others, by their labels."""
    every = frozenset(range(count))
    keys = {}
    for label in range(count):
        for chosen, has in ((frozenset({label}), labels == label), (every - {label}, labels != label)):
            keys[chosen] = [key_of(view[has], None if people is None else people[has]) for view in rows]
    return keys


class PartUse(Protocol):
    """A use of a part of a table."""

    @property
    def labels(self) -> tuple[Labels, ...]:
        """Which labels the rows of the part have."""


U = TypeVar("U", bound=PartUse)


def possible_histories(history: Sequence[U]) -> Iterator[tuple[U, ...]]:
    """The uses that a row had, whatever its labels are: one history for each combination of labels.

    Divisions beyond `MOST_LABELS` combinations count as if every row was in every part, which is more.
    """
    divisions: list[Division] = []  # those whose labels are looked at one by one
    for division in dict.fromkeys(division for use in history for division, _ in use.labels):
        if math.prod(other.labels for other in [*divisions, division]) <= MOST_LABELS:
            divisions.append(division)
    histories: dict[tuple[int, ...], tuple[U, ...]] = {}
    for combination in itertools.product(*(range(division.labels) for division in divisions)):
        label_in = dict(zip(divisions, combination, strict=True))
        uses = tuple(
            use
            for use in history
            if all(
                division not in label_in or label_in[division] in labels for division, labels in use.labels
            )
        )
        # Combinations that differ only in divisions of other tables give the same uses.
        histories[tuple(map(id, uses))] = uses
    yield from histories.values()


__all__ = [
    "UNKNOWN",
    "Division",
    "Fingerprints",
    "Labels",
    "Part",
    "Register",
    "RowHasher",
    "Table",
    "digest_rows",
    "key_of",
    "keys_of_parts",
    "possible_histories",
    "stack_columns",
]
