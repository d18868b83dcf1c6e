"""Encode columns into rows: plain numbers in one compiled pass, anything else by its column."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from privada._arrays import FloatArray
from privada.parties.schema import Schema
from privada.parties.tables import Table


def encode_features(schema: Schema, table: Table) -> FloatArray:
    """The same as `Schema.encode_features`, bit by bit, and the same errors.

    Features of columns that were not read are at their lower bounds: these are allowed values, so a question
    that needs more than it says gets a wrong answer, but not a less private one.
    """
    X, at = np.empty((len(next(iter(table.values()))), schema.width)), 0
    for column in schema.columns:
        width, each = len(column.features()), table.get(column.name)
        if each is None:
            X[:, at : at + width] = [low for low, _ in column.limits()]
        elif not (_is_plain(column, each) and _place(X, at, each, float(column.low), float(column.high))):
            X[:, at : at + width] = column.encode(each)
        at += width
    return X


def _is_plain(column: Any, values: Any) -> bool:
    """Whether a column is numbers of which none may be missing, as 64-bit floats."""
    return (
        column.is_plain and isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1
    )


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _place(X: FloatArray, at: int, values: FloatArray, low: float, high: float) -> bool:  # pragma: no cover
    """Write clipped values into a column of X; False if one of them is not finite."""
    finite = True
    for i in range(values.shape[0]):
        value = values[i]
        finite &= abs(value) < np.inf
        X[i, at] = min(max(value, low), high)
    return finite


__all__ = ["encode_features"]
