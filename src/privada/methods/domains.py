"""Source and target from the form that a caller has: skada's ``sample_domain``, POT's arguments, ``Xs=``.

::

    fit(X, y, sample_domain=...)       all rows in one array; positive is source, negative is target
    fit(Xs, ys, Xt, yt)                source first, target beside it
    fit(Xt, yt, Xs=..., ys=...)        target first, source beside it

>>> found = split_domains([[0.0], [1.0], [2.0]], [0, 1, -1], sample_domain=[1, 2, -1])
>>> found.source.X.tolist(), found.target.X.tolist()
([[0.0], [1.0]], [[2.0]])
>>> [part.y.tolist() for part in found.each_source()]
[[0], [1]]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from privada._arrays import AnyArray
from privada.exceptions import InputError


class Labelled(NamedTuple):
    """Rows of one domain, their labels if there are any, and what else is known of each row."""

    X: AnyArray
    y: AnyArray | None
    groups: AnyArray | None = None


class Domains(NamedTuple):
    """Source and target; ``origin`` numbers the source that each source row is of."""

    source: Labelled
    target: Labelled
    origin: npt.NDArray[np.int64]

    def each_source(self) -> tuple[Labelled, ...]:
        """The sources one by one, in the order of their numbers."""
        return tuple(_at(self.source, self.origin == number) for number in np.unique(self.origin))


def split_domains(
    X: Any,
    y: Any = None,
    *,
    Xt: Any = None,
    yt: Any = None,
    Xs: Any = None,
    ys: Any = None,
    sample_domain: Any = None,
    groups: Any = None,
) -> Domains:
    """Tell source and target apart, in any of the three forms.

    Parameters
    ----------
    X, y : array
        All rows with ``sample_domain``, else those of the domain that is not given by name.
    Xt, yt : array, optional
        The target, beside the source in ``X``.
    Xs, ys : array, optional
        The source, beside the target in ``X``.
    sample_domain : array of int, optional
        For each row of ``X`` a number that is positive for sources and negative for the target.
    groups : array, optional
        One value for each source row; with ``sample_domain``, for each row.

    Privacy
    -------
    Either side may be private: only shapes are looked at, and no value of a row is shown in an error.

    Raises
    ------
    InputError
        Forms were mixed, or shapes do not fit.
    """
    if sum(given is not None for given in (Xt, Xs, sample_domain)) != 1:
        raise InputError(
            "Expected the other domain in one form: the target as Xt (and yt), the source as Xs (and ys), "
            "or both domains in X with sample_domain."
        )
    if sample_domain is not None:
        return _split(_labelled("X", X, y, groups), np.asarray(sample_domain))
    source = _labelled("X", X, y, groups) if Xs is None else _labelled("Xs", Xs, ys, groups)
    target = _labelled("X", X, y) if Xt is None else _labelled("Xt", Xt, yt)
    if source.X.shape[1] != target.X.shape[1]:
        raise InputError(
            f"Expected source and target of one width, got {source.X.shape[1:]} and {target.X.shape[1:]}."
        )
    return Domains(source, target, np.ones(len(source.X), dtype=np.int64))


def refuse_masked(labels: AnyArray | None) -> None:
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


def private_persons(person: AnyArray | None, sample_domain: Any, *, sign: int) -> AnyArray | None:
    """Persons of the private rows: all that are given, or those of the target (-1) or the sources (1)."""
    if person is None or sample_domain is None:
        return person
    return np.asarray(person[np.sign(np.asarray(sample_domain)) == sign])


def _split(rows: Labelled, domain: AnyArray) -> Domains:
    if domain.shape != rows.X.shape[:1] or np.any(domain == 0) or not np.any(domain > 0):
        raise InputError(
            "Expected one sample_domain for each row: positive for sources, negative for the target."
        )
    return Domains(_at(rows, domain > 0), _at(rows, domain < 0), domain[domain > 0].astype(np.int64))


def _labelled(name: str, X: Any, y: Any, groups: Any = None) -> Labelled:
    """Rows and labels as arrays of fitting shapes."""
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise InputError(f"Expected {name} to be a matrix, got {rows.ndim} axes.")
    found = []
    for what, each, values in ((name.replace("X", "y"), "label", y), ("groups", "value", groups)):
        array = None if values is None else np.asarray(values)
        if array is not None and array.shape != rows.shape[:1]:
            raise InputError(f"Expected {what} to have one {each} for each row of {name}.")
        found.append(array)
    return Labelled(rows, *found)


def _at(rows: Labelled, where: npt.NDArray[np.bool_]) -> Labelled:
    kept = [None if array is None else array[where] for array in (rows.y, rows.groups)]
    return Labelled(rows.X[where], *kept)


__all__ = ["Domains", "Labelled", "private_persons", "refuse_masked", "split_domains"]
