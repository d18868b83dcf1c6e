"""Predictions of a model file on rows of a file: what ``privada predict`` does."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _files
from privada.exceptions import InputError
from privada.methods.models.model_file import load

FloatArray = npt.NDArray[np.float64]
MOST_NAMED = 100  # classes whose probabilities are columns


def predict_table(model_file: str | os.PathLike[str], rows_file: str | os.PathLike[str]) -> list[list[Any]]:
    """Predictions, with a header: the prediction, and the probability of each class where there is one.

    Parameters
    ----------
    model_file : path
        What ``save`` wrote.
    rows_file : path
        Numbers separated by commas. Columns with a header are found by the model's feature names, if it has
        any; without, they are the features in their order.
    """
    model = load(model_file)
    if not hasattr(model, "predict"):
        raise InputError(f"A {type(model).__name__} predicts nothing.")
    X = _read_rows(model, rows_file)
    predicted = np.asarray(model.predict(X)).tolist()
    if not hasattr(model, "predict_proba") or len(model.classes_) > MOST_NAMED:
        return [["prediction"], *([each] for each in predicted)]
    shares = model.predict_proba(X).tolist()
    header = ["prediction", *(f"probability of {name}" for name in model.classes_.tolist())]
    return [header, *([each, *share] for each, share in zip(predicted, shares, strict=True))]


def _read_rows(model: Any, path: str | os.PathLike[str]) -> Any:
    """Rows as a model takes them: columns of its schema, or numbers."""
    if getattr(model, "schema", None) is None:
        names = getattr(model, "feature_names_in_", None)
        return read_features(path, width=int(model.n_features_in_), names=names)
    from pyarrow import ArrowInvalid
    from pyarrow import csv as arrow_csv

    blob = _files.read_bytes(path, largest=_files.LARGEST_TABLE)
    try:
        return arrow_csv.read_csv(io.BytesIO(blob))
    except ArrowInvalid:
        raise InputError(
            f"Cannot read {Path(path).name} as columns with a header, separated by commas."
        ) from None


def read_features(path: str | os.PathLike[str], *, width: int, names: Any = None) -> FloatArray:
    """Rows of a file of numbers, as a model takes them; errors name the line and the column."""
    text = _files.read_text(path, largest=_files.LARGEST_TABLE)
    lines = [line for line in csv.reader(io.StringIO(text)) if line]
    if not lines:
        raise InputError(f"There are no rows in {Path(path).name}.")
    header = None if _are_numbers(lines[0]) else [name.strip() for name in lines[0]]
    order = _find_columns(header, len(lines[0]), width, names)
    body = lines if header is None else lines[1:]
    if not body:
        raise InputError(f"There are no rows in {Path(path).name}.")
    first = 1 if header is None else 2
    return np.array([_numbers(line, order, len(lines[0]), first + at) for at, line in enumerate(body)])


def _find_columns(header: list[str] | None, found: int, width: int, names: Any) -> list[int]:
    """Where each feature stands."""
    if header is not None and names is not None:
        missing = [str(name) for name in names if str(name) not in header]
        if missing:
            raise InputError(f"Expected columns {', '.join(map(str, names))}; there is no {missing[0]}.")
        return [header.index(str(name)) for name in names]
    if found != width:
        raise InputError(f"Expected rows of {width} columns, one for each feature, got {found}.")
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
        found = [float(words[at]) for at in order]
    except ValueError:
        raise InputError(f"Line {line} holds something that is not a number.") from None
    if not np.isfinite(found).all():
        raise InputError(f"Line {line} holds a missing or infinite number.")
    return found


__all__ = ["predict_table", "read_features"]
