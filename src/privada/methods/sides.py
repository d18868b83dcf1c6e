"""Which rows of a fit are private and which are public, from every form in which domains are given.

::

    fit(X, y, sample_domain=...)       all rows in one array; positive is source, negative is target
    fit(Xs, ys, Xt, yt)                source first, target beside it
    fit(Xt, yt, Xs=..., ys=...)        target first, source beside it

>>> sides = separate_sides(
...     [[0.0], [1.0], [2.0]], [0, 1, -1], sample_domain=[1, 2, -1], private_side="source"
... )
>>> [part.X.tolist() for part in sides.private], sides.public.X.tolist()
([[[0.0]], [[1.0]]], [[2.0]])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from privada import _check
from privada._arrays import AnyArray
from privada.exceptions import InputError
from privada.methods.method import Public
from privada.parties.one_process.holding import count_persons


class PrivateRows(NamedTuple):
    """The rows of one party, their labels if there are any, and the person of each row."""

    X: AnyArray
    y: AnyArray | None = None
    person: AnyArray | None = None


class Sides(NamedTuple):
    """The private rows, party by party, and the public ones, whose labels are as they were given."""

    private: tuple[PrivateRows, ...]
    public: Public


def separate_sides(
    X: Any,
    y: Any = None,
    *,
    private_side: str,
    Xt: Any = None,
    yt: Any = None,
    Xs: Any = None,
    ys: Any = None,
    sample_domain: Any = None,
    person: AnyArray | None = None,
    several: bool = True,
) -> Sides:
    """Tell private and public rows apart.

    Parameters
    ----------
    X, y : array
        All rows with ``sample_domain``, else those of the domain that is not given by name.
    private_side : "source" or "target"
        Which domain the method protects.
    Xt, yt : array, default=None
        The target, beside the source in ``X``.
    Xs, ys : array, default=None
        The source, beside the target in ``X``.
    sample_domain : array of int, default=None
        For each row of ``X`` a number that is positive for sources, one for each, and negative for the
        target.
    person : array, default=None
        The person of each private row; with ``sample_domain``, of each row.
    several : bool, default=True
        Whether private sources of different numbers are different parties.

    Privacy
    -------
    Only shapes are looked at, and whether all private labels are masks; no value of a row is shown in an
    error.

    Raises
    ------
    InputError
        Forms were mixed, or shapes do not fit.
    """
    if sum(rows is not None for rows in (Xt, Xs, sample_domain)) != 1:
        raise InputError(
            "Expected the other domain in one form: the target as Xt (and yt), the source as Xs (and ys), "
            "or both domains in X with sample_domain."
        )
    if sample_domain is not None:
        rows = _check_rows("X", X, y, person)
        domain = np.asarray(sample_domain)
        if domain.shape != rows.X.shape[:1] or np.any(domain == 0) or not np.any(domain > 0):
            raise InputError(
                "Expected one sample_domain for each row: positive for sources, negative for the target."
            )
        source, target = _select(rows, domain > 0), _select(rows, domain < 0)
        origin = domain[domain > 0]
    else:
        of_source = person if private_side == "source" else None
        of_target = person if private_side == "target" else None
        source = _check_rows("X", X, y, of_source) if Xs is None else _check_rows("Xs", Xs, ys, of_source)
        target = _check_rows("X", X, y, of_target) if Xt is None else _check_rows("Xt", Xt, yt, of_target)
        origin = np.ones(len(source.X), dtype=np.int64)
    if source.X.shape[1] != target.X.shape[1]:
        raise InputError(
            f"Expected source and target of one width, got {source.X.shape[1:]} and {target.X.shape[1:]}."
        )
    if private_side == "target":
        if sample_domain is not None:
            _refuse_masks(target.y)
        return Sides((target,), Public(_check.matrix(source=source.X), source.y))
    public = Public(_check.matrix(target=target.X), target.y)
    if not several:
        return Sides((source,), public)
    parts = tuple(_select(source, origin == number) for number in np.unique(origin))
    if person is not None and sum(count_persons(part.person) for part in parts) > count_persons(
        source.person
    ):
        raise InputError(
            "Expected all rows of a person in one source: who is in several would lose what each of them "
            "costs. Give the rows of a person one sample_domain."
        )
    return Sides(parts, public)


def _check_rows(name: str, X: Any, y: Any, person: AnyArray | None) -> PrivateRows:
    """Rows, labels and persons as arrays of fitting shapes."""
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise InputError(f"Expected {name} to be a matrix, got {rows.ndim} axes.")
    columns = []
    for column_name, what, values in ((name.replace("X", "y"), "label", y), ("person", "value", person)):
        column = None if values is None else np.asarray(values)
        if column is not None and column.shape != rows.shape[:1]:
            raise InputError(f"Expected {column_name} to have one {what} for each row of {name}.")
        columns.append(column)
    return PrivateRows(rows, *columns)


def _select(rows: PrivateRows, where: AnyArray) -> PrivateRows:
    y, person = (None if column is None else column[where] for column in rows[1:])
    return PrivateRows(rows.X[where], y, person)


def _refuse_masks(labels: AnyArray | None) -> None:
    """Refuse a target whose labels are all masked, as skada does by default: this method learns from them.

    Masks of classes are -1, which may be a class where others are there, too; masks of numbers are NaN.
    """
    if labels is None or labels.dtype.kind not in "iuf" or not len(labels):
        return
    if np.all(labels == -1) or np.all(np.isnan(labels)):
        raise InputError(
            "Expected the target's labels, which are private here, and not masks of them; "
            "with skada: make_da_pipeline(..., mask_target_labels=False)."
        )


__all__ = ["PrivateRows", "Sides", "separate_sides"]
