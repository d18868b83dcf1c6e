"""Public rows beside a study: CSV or Parquet, matched to the owner's card by the names of columns.

Rows are encoded by the card as the owner encodes its own: categories, dates and missing values included. A
CSV file without a header is taken to hold features in the card's order, as they are after encoding.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _files
from privada._arrays import FloatArray
from privada._toml import Section
from privada.exceptions import InputError
from privada.parties.csv_files import CsvFile, Dialect
from privada.parties.schema import Number, Schema

PARQUET = b"PAR1"
BATCH = 65_536
MOST_VALUES = 2**27  # of a Parquet file, which may unfold to much more than its size


@dataclass(frozen=True)
class PublicFile:
    """A file of public rows.

    Parameters
    ----------
    path : Path
    schema : Schema
        Of the owner's card.
    labelled : bool
        Whether the file has the label's column, too.
    dialect : Dialect
        How CSV is written.
    """

    path: Path
    schema: Schema
    labelled: bool
    dialect: Dialect

    def read(self) -> tuple[FloatArray, npt.NDArray[Any] | None]:
        """Features, and codes or numbers of the labels."""
        blob = _files.read_bytes(self.path, largest=_files.LARGEST_TABLE)
        X, y = self._read_parquet(blob) if blob[:4] == PARQUET else self._read_csv(blob)
        if not len(X):
            raise InputError(f"there are no rows in {self.path.name}.")
        return X, y

    def _read_parquet(self, blob: bytes) -> tuple[FloatArray, npt.NDArray[Any] | None]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            about = pq.read_metadata(pa.BufferReader(blob))
            if about.num_rows * about.num_columns > MOST_VALUES:
                raise InputError(f"{self.path.name} holds more than {MOST_VALUES:,} values.")
            table = pq.read_table(pa.BufferReader(blob))
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"cannot read {self.path.name} as Parquet: {type(error).__name__}.") from None
        return self._encode(table, self._matching(table.schema.names))

    def _read_csv(self, blob: bytes) -> tuple[FloatArray, npt.NDArray[Any] | None]:
        import pyarrow as pa

        dialect = replace(self.dialect, compression="none")  # a small file could unfold to any size
        file = CsvFile(self.path.name, lambda: pa.BufferReader(blob), dialect, ())
        names = file.names()
        if not self._is_header(names):
            return self._read_unnamed(blob)
        schema = self._matching(names)
        file = CsvFile(
            file.name, file.opened, self.dialect, schema.described if self.labelled else schema.columns
        )
        batches = list(file.batches(names, BATCH))
        if not batches:
            raise InputError(f"there are no rows in {self.path.name}.")
        return self._encode(pa.Table.from_batches(batches), schema)

    def _encode(self, table: Any, schema: Schema) -> tuple[FloatArray, npt.NDArray[Any] | None]:
        return schema.encode(table), schema.encode_label(table) if self.labelled else None

    @property
    def _label(self) -> tuple[str, ...]:
        return (self.schema.label.name,) if self.labelled and self.schema.label else ()

    def _is_header(self, first: list[str]) -> bool:
        """Whether a line has a name in it that the card knows, or else anything but numbers."""
        schema_names = {*self.schema.needed, *self.schema.features}
        return bool(schema_names & set(first)) or not all(map(_is_number, first[: self.schema.width]))

    def _matching(self, names: list[str]) -> Schema:
        """The card if the file has its columns, or one of plain numbers if it has its features."""
        label = self.schema.label if self.labelled else None
        columns = [column.name for column in self.schema.columns]
        if sorted(names) == sorted([*columns, *self._label]):
            return Schema(columns=self.schema.columns, label=label)
        if sorted(names) == sorted([*self.schema.features, *self._label]):
            return Schema(columns=_as_numbers(self.schema), label=label)
        raise InputError(_name_difference(names, [*columns, *self._label]))

    def _read_unnamed(self, blob: bytes) -> tuple[FloatArray, npt.NDArray[Any] | None]:
        """Rows of features in the card's order, the label last."""
        words = self._words(blob)
        if not self.labelled:
            return _as_finite(words), None
        X, labels = _as_finite(words[:, :-1]), words[:, -1]
        if X.shape[1] != self.schema.width:
            raise InputError(f"expected {self.schema.width} features and a label, got {X.shape[1]} features.")
        return X, self._unnamed_labels(labels)

    def _words(self, blob: bytes) -> npt.NDArray[np.str_]:
        try:
            text = io.StringIO(blob.decode(self.dialect.encoding))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a file without rows, which is refused
                words: npt.NDArray[np.str_] = np.loadtxt(
                    text, delimiter=self.dialect.delimiter, ndmin=2, dtype=str
                )
        except (ValueError, UnicodeError):
            raise InputError(f"cannot read {self.path.name} as rows separated by commas.") from None
        return words

    def _unnamed_labels(self, labels: npt.NDArray[np.str_]) -> npt.NDArray[Any]:
        if not self.schema.class_names:
            return _as_finite(labels)
        codes = {str(value): value for value in self.schema.class_names}
        if strange := sorted(set(labels) - set(codes)):
            raise InputError(f"{strange[0]} is not one of the classes {', '.join(codes)}.")
        return self.schema.classes.encode(np.array([codes[text] for text in labels]))


def _as_numbers(schema: Schema) -> tuple[Number, ...]:
    """A column for each feature, between its public bounds."""
    bounds = zip(schema.features, schema.box.low, schema.box.high, strict=True)
    return tuple(Number(name=name, low=low, high=high) for name, low, high in bounds)


def _name_difference(names: list[str], wanted: list[str]) -> str:
    """Which columns are there twice, lacking, or unknown."""
    doubled = sorted({name for name in names if names.count(name) > 1})
    lacking = [name for name in wanted if name not in names]
    unknown = [name for name in names if name not in wanted]
    differences = [
        f"{what}: {', '.join(map(repr, columns))}"
        for what, columns in (
            ("columns of one name", doubled),
            ("columns that the owner's card has and the file lacks", lacking),
            ("columns that the owner's card does not ask for", unknown),
        )
        if columns
    ]
    return "; ".join(differences) + "."


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _as_finite(words: npt.NDArray[np.str_]) -> FloatArray:
    try:
        numbers = words.astype(np.float64)
    except ValueError:
        raise InputError(
            "expected numbers separated by commas, or a header with the names of columns."
        ) from None
    if not np.isfinite(numbers).all():
        raise InputError("expected finite numbers.")
    return numbers


def public_rows(section: Section, key: str, home: Path, schema: Schema) -> FloatArray:
    """Features of a public file, CSV or Parquet, encoded by an owner's card."""
    return _read_file(section, key, home, schema, labelled=False)[0]


def labelled_rows(
    section: Section, key: str, home: Path, schema: Schema
) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Features of a public file, and its labels: codes of classes, or numbers."""
    X, y = _read_file(section, key, home, schema, labelled=True)
    assert y is not None
    return X, y


def _read_file(
    section: Section, key: str, home: Path, schema: Schema, *, labelled: bool
) -> tuple[FloatArray, npt.NDArray[Any] | None]:
    path = home / section.string(key)
    dialect = Dialect.from_section(section.section("csv")) if "csv" in section else Dialect()
    try:
        return PublicFile(path, schema, labelled, dialect).read()
    except InputError as error:
        section.fail(key, str(error).replace("Cannot read", "cannot read", 1))


__all__ = ["PublicFile", "labelled_rows", "public_rows"]
