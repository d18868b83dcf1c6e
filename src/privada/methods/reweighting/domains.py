"""Public source and private target, from POT's four arguments, ``Xs=, ys=`` or skada's ``sample_domain``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.domains import refuse_masked, split_domains
from privada.methods.estimating import check_owner
from privada.parties.schema import Number


class Domains(NamedTuple):
    """Public source and private target."""

    Xs: FloatArray
    ys: npt.NDArray[Any]
    Xt: npt.NDArray[Any] | None
    yt: npt.NDArray[Any] | None
    groups: npt.NDArray[Any] | None
    owner: Any = None  # of the target, in the place of Xt and yt
    person: npt.NDArray[Any] | None = None  # of each target row
    public_size: int | None = None  # where it is not that of the rows

    @property
    def size(self) -> int:
        """The public number of target rows; of persons, the most that they may have."""
        if self.public_size is not None:
            return self.public_size
        return int(self.owner.schema.size or 0) if self.Xt is None else len(self.Xt)


def split(
    X: Any,
    y: Any,
    Xt: Any,
    yt: Any,
    Xs: Any,
    ys: Any,
    sample_domain: Any,
    groups: Any,
    owner: Any = None,
) -> Domains:
    """Source and target, from any of the three forms, or the source beside the target's owner."""
    if owner is not None:
        check_owner(owner, Xt=Xt, yt=yt, sample_domain=sample_domain)
        return _beside_owner(*((X, y) if Xs is None else (Xs, ys)), owner=owner)
    found = split_domains(X, y, Xt=Xt, yt=yt, Xs=Xs, ys=ys, sample_domain=sample_domain, groups=groups)
    source, target = found.source, found.target
    if source.y is None or target.y is None:
        raise InputError("Expected labels of source and target.")
    if sample_domain is not None:
        refuse_masked(target.y)
    return Domains(_check.matrix(Xs=source.X), source.y, target.X, target.y, source.groups)


def _beside_owner(X: Any, y: Any, *, owner: Any) -> Domains:
    rows, labels = _check.matrix(Xs=X), np.asarray(y)
    if y is None or labels.shape != rows.shape[:1]:
        raise InputError("Expected ys to have one label for each row of Xs.")
    return Domains(rows, labels, None, None, None, owner)


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
