"""Sources and target from POT's four arguments or from skada's ``sample_domain``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.domains import split_domains
from privada.parties.one_process.holding import count_persons
from privada.parties.schema import is_missing
from privada.privacy.bounds import Classes


@dataclass(frozen=True, eq=False, repr=False)
class Domains:
    """Private sources, public target, and codes of its known labels, -1 elsewhere."""

    sources: tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], ...]
    target: FloatArray
    labels: npt.NDArray[np.int64] | None
    persons: tuple[npt.NDArray[Any] | None, ...] = ()  # of each source's rows


def split(
    X: Any,
    y: Any,
    Xt: Any,
    yt: Any,
    sample_domain: Any,
    *,
    classes: tuple[Any, ...],
    person: npt.NDArray[Any] | None = None,
) -> Domains:
    """Read either form."""
    if y is None:
        raise InputError("Expected y to have one label for each row of X.")
    found = split_domains(X, y, Xt=Xt, yt=yt, sample_domain=sample_domain, groups=person)
    target = _check.matrix(target=found.target.X)
    sources = tuple((part.X, np.asarray(part.y)) for part in found.each_source())
    persons = tuple(part.groups for part in found.each_source())
    if person is not None:
        _check_apart(persons)
    return Domains(sources, target, _codes(found.target.y, classes), persons)


def _check_apart(persons: Sequence[Any]) -> None:
    """Refuse a person in two sources: each is asked with the whole guarantee, and bounds the rows anew."""
    if sum(map(count_persons, persons)) > count_persons(np.concatenate(persons)):
        raise InputError(
            "Expected all rows of a person in one source: who is in several would lose what each of them "
            "costs. Give the rows of a person one sample_domain."
        )


def target_only(Xt: Any, yt: Any, classes: tuple[Any, ...]) -> Domains:
    """The target, beside sources that stay with their owners."""
    target = _check.matrix(target=Xt)
    labels = None if yt is None else np.asarray(yt)
    if labels is not None and labels.shape != target.shape[:1]:
        raise InputError("Expected yt to have one label for each row of Xt.")
    return Domains((), target, _codes(labels, classes))


def _codes(given: npt.NDArray[Any] | None, classes: tuple[Any, ...]) -> npt.NDArray[np.int64] | None:
    """Codes of known labels; -1 where masked by -1 (unless that is a class), None or NaN."""
    if given is None:
        return None
    masked = is_missing(given)
    if -1 not in classes:
        masked = masked | np.array([value == -1 for value in given.tolist()])
    codes = np.full(len(given), -1, dtype=np.int64)
    known = given[~masked]
    if known.dtype.kind == "f" and all(isinstance(name, (int, np.integer)) for name in classes):
        known = known.astype(np.int64)
    codes[~masked] = Classes(classes).encode(known)
    return codes if (codes >= 0).any() else None


__all__ = ["Domains", "split", "target_only"]
