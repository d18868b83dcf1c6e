"""Public source and private target, from POT's four arguments, ``Xs=, ys=`` or skada's ``sample_domain``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.parties.schema import Number

FloatArray = npt.NDArray[np.float64]


class Domains(NamedTuple):
    """Public source and private target."""

    Xs: FloatArray
    ys: npt.NDArray[Any]
    Xt: npt.NDArray[Any]
    yt: npt.NDArray[Any]
    groups: npt.NDArray[Any] | None


def split(X: Any, y: Any, Xt: Any, yt: Any, Xs: Any, ys: Any, sample_domain: Any, groups: Any) -> Domains:
    """Source and target, from any of the three forms."""
    given = [Xt is not None, Xs is not None, sample_domain is not None]
    if sum(given) != 1:
        raise InputError("Expected the target as Xt and yt, the source as Xs= and ys=, or sample_domain.")
    if Xt is not None:
        return _joined(X, y, Xt, yt, groups)
    if Xs is not None:
        return _joined(Xs, ys, X, y, groups)
    rows, labels, domain = np.asarray(X), np.asarray(y), np.asarray(sample_domain)
    if domain.shape != rows.shape[:1] or np.any(domain == 0):
        raise InputError("Expected one sample_domain a row: positive for source, negative for target.")
    at, there = domain > 0, domain < 0
    named = None if groups is None else np.asarray(groups)[at]
    return _joined(rows[at], labels[at], rows[there], labels[there], named)


def _joined(Xs: Any, ys: Any, Xt: Any, yt: Any, groups: Any) -> Domains:
    if ys is None or yt is None:
        raise InputError("Expected labels of source and target.")
    source, target = _check.matrix(Xs=Xs), np.asarray(Xt)
    if target.ndim != 2 or target.shape[1] != source.shape[1]:
        raise InputError(
            f"Expected source and target of one width, got {source.shape[1:]} and {target.shape[1:]}."
        )
    labels = np.asarray(ys)
    if labels.shape != (len(source),):
        raise InputError("Expected ys to be one label for each public row.")
    return Domains(source, labels, target, np.asarray(yt), None if groups is None else np.asarray(groups))


def label_number(bounds: Any, ys: npt.NDArray[Any]) -> Number:
    """The label's public bounds: given, or the public source's range, widened."""
    try:
        values = np.asarray(ys, dtype=np.float64)
    except ValueError:
        raise InputError("Expected ys to be numbers; for classes use ReweightedClassifier.") from None
    if bounds is None:
        if not np.isfinite(values).all():
            raise InputError("Expected ys to be finite.")
        low, high = float(values.min()), float(values.max())
        room = high - low if high > low else 1.0
        bounds = (low - room, high + room)
    if np.shape(bounds) != (2,):
        raise InputError(f"Expected label_bounds to be (low, high), got {bounds!r}.")
    return Number(name="label", low=float(bounds[0]), high=float(bounds[1]))


__all__ = ["Domains", "label_number", "split"]
