"""Predictions of a model file on rows of a file: what ``privada predict`` does."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privada import _files
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.models.model_file import load
from privada.parties.csv_files import CsvFile, Dialect
from privada.parties.schema import Schema

BATCH = 65_536
MOST_NAMED = 100  # classes whose probabilities are columns


def predict_table(
    model_file: str | os.PathLike[str],
    rows_file: str | os.PathLike[str],
    *,
    dialect: Dialect | None = None,
) -> list[list[Any]]:
    """Predictions, with a header: the prediction, and the probability of each class where there is one.

    Parameters
    ----------
    model_file : path
        What ``save`` wrote.
    rows_file : path
        CSV. Columns with a header are found by the model's feature names, if it has any; without, they are
        the features in their order.
    dialect : Dialect, optional
        How the rows are written; by default with commas and points, in UTF-8.
    """
    model = load(model_file)
    if not hasattr(model, "predict"):
        raise InputError(f"A {type(model).__name__} predicts nothing.")
    X = _read_rows(model, Path(rows_file), Dialect() if dialect is None else dialect)
    predicted = np.asarray(model.predict(X)).tolist()
    if not hasattr(model, "predict_proba") or len(model.classes_) > MOST_NAMED:
        return [["prediction"], *([prediction] for prediction in predicted)]
    shares = model.predict_proba(X).tolist()
    header = ["prediction", *(f"probability of {name}" for name in model.classes_.tolist())]
    return [header, *([prediction, *share] for prediction, share in zip(predicted, shares, strict=True))]


def _read_rows(model: Any, path: Path, dialect: Dialect) -> Any:
    """Rows as a model takes them: columns of its schema, or numbers."""
    schema = getattr(model, "schema", None)
    if schema is not None:
        return _read_columns(path, schema, dialect)
    names = getattr(model, "feature_names_in_", None)
    return read_features(path, width=int(model.n_features_in_), names=names, dialect=dialect)


def _read_columns(path: Path, schema: Schema, dialect: Dialect) -> Any:
    """The columns of a schema, found by name and read as they are declared; others are left out."""
    import pyarrow as pa

    blob = _files.read_bytes(path, largest=_files.LARGEST_TABLE)
    plain = replace(dialect, compression="none")  # a small file could unfold to any size
    file = CsvFile(path.name, lambda: pa.BufferReader(blob), plain, schema.columns)
    names, needed = file.names(), [column.name for column in schema.columns]
    if missing := [name for name in needed if name not in names]:
        raise InputError(
            f"Expected a header with the columns {', '.join(needed)}; there is no {missing[0]}. "
            "If the file is not written with commas, say how it is: --delimiter."
        )
    batches = list(file.batches(needed, BATCH))
    if not batches:
        raise InputError(f"There are no rows in {path.name}.")
    return pa.Table.from_batches(batches)


def read_features(
    path: str | os.PathLike[str], *, width: int, names: Any = None, dialect: Dialect | None = None
) -> FloatArray:
    """Rows of a file of numbers, as a model takes them; errors name the line and the column."""
    written = Dialect() if dialect is None else dialect
    text = _decode(Path(path), written.encoding)
    rows = csv.reader(io.StringIO(text), delimiter=written.delimiter, quotechar=written.quote)
    lines = [[_point(word, written) for word in line] for line in rows if line]
    if not lines:
        raise InputError(f"There are no rows in {Path(path).name}.")
    header = None if _are_numbers(lines[0]) else [name.strip() for name in lines[0]]
    order = _find_columns(header, len(lines[0]), width, names)
    body = lines if header is None else lines[1:]
    if not body:
        raise InputError(f"There are no rows in {Path(path).name}.")
    first = 1 if header is None else 2
    return np.array([_numbers(line, order, len(lines[0]), first + at) for at, line in enumerate(body)])


def _decode(path: Path, encoding: str) -> str:
    try:
        text = _files.read_bytes(path, largest=_files.LARGEST_TABLE).decode(encoding)
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not text in the encoding {encoding}.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _point(word: str, dialect: Dialect) -> str:
    """A number as Python reads it; any other word stays as it is."""
    plain = word if dialect.thousands is None else word.replace(dialect.thousands, "")
    if dialect.decimal != ".":
        plain = plain.replace(dialect.decimal, ".")
    return plain if _are_numbers([plain]) else word


def _find_columns(header: list[str] | None, columns: int, width: int, names: Any) -> list[int]:
    """Where each feature stands."""
    if header is not None and names is not None:
        missing = [str(name) for name in names if str(name) not in header]
        if missing:
            raise InputError(f"Expected columns {', '.join(map(str, names))}; there is no {missing[0]}.")
        return [header.index(str(name)) for name in names]
    if columns != width:
        raise InputError(f"Expected rows of {width} columns, one for each feature, got {columns}.")
    return list(range(width))


def _are_numbers(words: list[str]) -> bool:
    try:
        [float(word) for word in words]
    except ValueError:
        return False
    return True


def _numbers(words: list[str], order: list[int], length: int, line: int) -> list[float]:
    if len(words) != length:
        raise InputError(f"Line {line} has {len(words)} columns, the first one {length}.")
    try:
        numbers = [float(words[at]) for at in order]
    except ValueError:
        raise InputError(f"Line {line} holds something that is not a number.") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"Line {line} holds a missing or infinite number.")
    return numbers


__all__ = ["predict_table", "read_features"]
