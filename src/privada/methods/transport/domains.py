"""Sources and target from POT's four arguments or from skada's ``sample_domain``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.parties.schema import is_missing
from privada.privacy.bounds import Classes

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Domains:
    """Private sources, public target, and codes of its known labels, -1 elsewhere."""

    sources: tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], ...]
    target: FloatArray
    labels: npt.NDArray[np.int64] | None


def split(X: Any, y: Any, Xt: Any, yt: Any, sample_domain: Any, *, classes: tuple[Any, ...]) -> Domains:
    """Read either form."""
    if (Xt is None) == (sample_domain is None):
        raise InputError("Expected the target as Xt, or all domains in X with sample_domain.")
    rows, labels = np.asarray(X), np.asarray(y)
    if rows.ndim != 2 or labels.shape != rows.shape[:1]:
        raise InputError("Expected X to be a matrix and y to have one label for each of its rows.")
    if Xt is not None:
        target = _check.matrix(target=Xt, width=rows.shape[1])
        return Domains(((rows, labels),), target, _codes(yt, len(target), classes))
    domain = np.asarray(sample_domain)
    if domain.shape != labels.shape or np.any(domain == 0) or not (domain > 0).any():
        raise InputError("Expected one sample_domain a row: positive for sources, negative for the target.")
    sources = tuple((rows[domain == d], labels[domain == d]) for d in np.unique(domain[domain > 0]))
    at = domain < 0
    return Domains(sources, _check.matrix(target=rows[at]), _codes(labels[at], int(at.sum()), classes))


def _codes(yt: Any, n: int, classes: tuple[Any, ...]) -> npt.NDArray[np.int64] | None:
    """Codes of known labels; -1 where masked by -1 (unless that is a class), None or NaN."""
    if yt is None:
        return None
    given = np.asarray(yt)
    if given.shape != (n,):
        raise InputError(f"Expected {n} target labels, got shape {given.shape}.")
    masked = is_missing(given)
    if -1 not in classes:
        masked = masked | np.array([value == -1 for value in given.tolist()])
    codes = np.full(n, -1, dtype=np.int64)
    known = given[~masked]
    if known.dtype.kind == "f" and all(isinstance(name, (int, np.integer)) for name in classes):
        known = known.astype(np.int64)
    codes[~masked] = Classes(classes).encode(known)
    return codes if (codes >= 0).any() else None


__all__ = ["Domains", "split"]
