"""Frames that estimators are given: columns by name, whatever their order.

>>> import pandas
>>> frame = pandas.DataFrame({"b": [1.0], "a": [2.0]})
>>> names_of(frame)
('b', 'a')
>>> in_order(frame, ("a", "b"), name="X").tolist()
[[2.0, 1.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError


def names_of(rows: Any) -> tuple[str, ...] | None:
    """Names of a frame's or table's columns; None if it has none, or some that are not text."""
    columns = getattr(rows, "column_names", None)  # Arrow
    if columns is None:
        columns = getattr(rows, "columns", None)  # pandas, polars
    if columns is None or callable(columns):
        return None
    names = tuple(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def in_order(rows: Any, names: tuple[str, ...] | None, *, name: str) -> npt.NDArray[Any]:
    """Rows as an array with columns in this order; those without names are taken as they are.

    Raises
    ------
    InputError
        Names are missing, too many, or not unique: the message says which.
    """
    refuse_sparse(rows, name=name)
    columns = names_of(rows)
    if names is None or columns is None:
        return np.asarray(rows)
    missing, extra = (
        [name for name in names if name not in columns],
        [name for name in columns if name not in names],
    )
    if missing or extra or len(set(columns)) != len(columns):
        raise InputError(f"Expected {name} to have the columns of fit; {_difference(missing, extra)}.")
    array = np.asarray(rows)
    return array if columns == names else array[:, [columns.index(column) for column in names]]


def take_column(rows: Any, column: str) -> npt.NDArray[Any]:
    """One column of a frame or table.

    >>> import pandas
    >>> take_column(pandas.DataFrame({"a": [1.0], "who": ["x"]}), "who").tolist()
    ['x']
    """
    names = names_of(rows)
    if names is None or column not in names:
        raise InputError(f"Expected a frame with the column {column!r}, or one identifier for each row.")
    return np.asarray(rows[column])


def without_column(rows: Any, column: str) -> Any:
    """A frame or table without a column, if it has it."""
    names = names_of(rows)
    if names is None or column not in names:
        return rows
    rest = [name for name in names if name != column]
    return rows.select(rest) if hasattr(rows, "column_names") or not hasattr(rows, "loc") else rows[rest]


def _difference(missing: list[str], extra: list[str]) -> str:
    differences = [f"missing: {_listed(missing)}"] if missing else []
    differences += [f"unknown: {_listed(extra)}"] if extra else []
    return "; ".join(differences) or "some are there twice"


def _listed(names: list[str], most: int = 5) -> str:
    listed = ", ".join(repr(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def refuse_sparse(rows: Any, *, name: str) -> None:
    """Say what to do with a sparse matrix: noise on every entry leaves nothing sparse."""
    from scipy.sparse import issparse

    if issparse(rows):
        raise InputError(f"Expected {name} to be dense, got a sparse matrix; use {name}.toarray().")


__all__ = ["in_order", "names_of", "refuse_sparse", "take_column", "without_column"]
