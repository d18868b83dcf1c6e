"""Keyed fingerprints: by which a process recognises private rows that it used before.

A fingerprint is eight bytes of BLAKE2b over a row's features, keyed with random bytes of this process. The
key never leaves the process and is never written, so a fingerprint means nothing anywhere else; and no
fingerprint is ever part of a release, a ledger or a fitted estimator.

What counts as the same row errs on the safe side, towards recognising too much:

* every value is converted by itself, first to double and then to single precision, so that a copy in float32,
  float64 or whole numbers, in NumPy, pandas or Arrow, is the same row, whatever other rows made of the type
  of the whole; -0.0 is 0.0, True is 1, and all missing values are one;
* columns that have names may come in any order;
* text and categories count by their text, or by the number that they say;
* labels do not count: the same features with another label column are the same row;
* persons count by their identifiers: 7, 7.0 and "7" are one person.

A row that was changed (scaled, encoded by another schema, rounded to half precision, with other columns) is
not recognised: the process then takes it for a row of another table (`privada.parties.one_process.tables`).
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Fingerprints = npt.NDArray[np.uint64]
MISSING = ("NAType", "NaTType")  # of pandas
TRUTHS = {"True": 1.0, "False": 0.0}  # as an array of texts writes them
SIZE = 8  # bytes; rows that agree by chance (n²/2⁶⁵) are counted together, never apart


class RowHasher:
    """Makes fingerprints with a key of its own, which nobody else can have."""

    __slots__ = ("__key",)

    def __init__(self) -> None:
        self.__key = secrets.token_bytes(32)

    def __repr__(self) -> str:
        return "<RowHasher>"

    def __reduce__(self) -> Any:
        raise TypeError("Fingerprints are keyed for one process; they cannot be pickled or copied.")

    def hash_rows(
        self, rows: Any, *, kind: str = "row", columns: Sequence[str] | None = None
    ) -> Fingerprints:
        """The distinct fingerprints of the rows of a matrix or frame, or of single persons; sorted.

        Fingerprints of different kinds never agree, but by chance. Rows whose columns have names have two
        each, the other one in the order of the names.
        """
        return np.unique(np.concatenate(self.hash_each_row(rows, kind=kind, columns=columns)))

    def hash_each_row(
        self, rows: Any, *, kind: str = "row", columns: Sequence[str] | None = None
    ) -> list[Fingerprints]:
        """The fingerprint of each row: as its columns come, and in the order of their names if it differs."""
        views = [digest_rows(rows, key=self.__key, kind=kind)]
        if columns is not None and (order := np.argsort(columns)).tolist() != list(range(len(columns))):
            views.append(digest_rows(_read_values(rows)[:, order], key=self.__key, kind=kind))
        return views


def digest_rows(rows: Any, *, key: bytes, kind: str = "row") -> Fingerprints:
    """Eight bytes of each row's content under a key: a function of that row alone."""
    if len(rows) == 0:
        return np.zeros(0, dtype=np.uint64)
    table = _write_persons(rows) if kind == "person" else _write_rows(rows)
    width = table.shape[1]
    keyed = hashlib.blake2b(key=key, digest_size=SIZE, person=kind.encode())
    keyed.update(width.to_bytes(8, "little"))
    whole, digests = table.tobytes(), bytearray()
    for start in range(0, len(whole), width):
        each = keyed.copy()
        each.update(whole[start : start + width])
        digests += each.digest()
    return np.frombuffer(bytes(digests), dtype=np.uint64)


def stack_columns(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Columns of whatever types as one matrix, each value as it is."""
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.column_stack(columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        table[:, place] = column
    return table


def _write_rows(rows: Any) -> npt.NDArray[np.uint8]:
    """One line of bytes for each row, the same whatever form it came in."""
    array = _read_values(rows)
    array = array.reshape(len(array), -1)
    if array.dtype.kind in "biuf":
        return _write_numbers(array)
    columns = [_write_column(column) for column in array.T]
    return np.hstack(columns) if columns else np.zeros((len(array), 1), dtype=np.uint8)


def _read_values(rows: Any) -> npt.NDArray[Any]:
    """The values of rows; those of a list as they are: a common type would make the text "True" of True."""
    array = np.array(rows, dtype=object) if isinstance(rows, (list, tuple)) else np.asarray(rows)
    if array.dtype.kind in "mM":  # else the unit would decide whether a date is a date or a whole number
        array = array.astype(f"{array.dtype.kind}8[us]")
    return array


def _write_persons(people: Any) -> npt.NDArray[np.uint8]:
    """Persons by the text of their identifiers; whole numbers are one person in whatever form they came."""
    texts = [_text(_whole(value)).strip() for value in np.asarray(people).reshape(-1).tolist()]
    digests = [hashlib.blake2b(text.encode(), digest_size=2 * SIZE).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(texts), -1)


def _whole(value: Any) -> Any:
    """The whole number that a value is or says, else the value."""
    try:
        number = int(value)
        return number if isinstance(value, str) or number == value else value
    except (TypeError, ValueError, OverflowError):
        return value


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
    numbers = [_number(value) for value in values]
    written = _write_numbers(np.array([0.0 if each is None else each for each in numbers])[:, None])
    for place, each in enumerate(numbers):
        if each is None:
            digest = hashlib.blake2b(_text(values[place]).encode(), digest_size=SIZE).digest()
            written[place] = np.frombuffer(digest, dtype=np.uint8)
    return written


def _number(value: Any) -> float | None:
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


__all__ = ["Fingerprints", "RowHasher", "digest_rows", "stack_columns"]
