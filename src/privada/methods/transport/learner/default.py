"""The default question: a public map chosen from the target, the bounds and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.methods.transport.questions.features import FeatureMap
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.privacy.guarantee import Guarantee

COMPONENTS = 20
MANY = 20  # features from which on rows that cannot be negative are read as histograms or activations
PROJECTIONS = ("target", "random")


def default_rescale(low: npt.ArrayLike, width: int) -> str:
    """``"root"`` for many features that cannot be negative (Hellinger's geometry), else ``"none"``."""
    return "root" if width >= MANY and bool(np.all(np.asarray(low) >= 0)) else "none"


def default_map(
    target: npt.ArrayLike,
    *,
    low: npt.ArrayLike,
    projection: str = "target",
    components: int | None = None,
    norm_bound: float | None = None,
    seed: int = 0,
) -> FeatureMap:
    """The map that `TransportClassifier` asks with.

    ``projection="target"`` fits principal components on the target: strongest, one release for each target,
    and the owner sees something of the target. ``"random"`` knows nothing of it: one release serves any
    target; it needs ``norm_bound`` unless rows are rescaled to norm 1.
    """
    rows = _check.matrix(target=target)
    rescale = default_rescale(low, rows.shape[1])
    if _check.one_of(PROJECTIONS, projection=projection) == "target":
        return FeatureMap.of_target(rows, components=components or COMPONENTS, rescale=rescale)
    if norm_bound is None and rescale == "none":
        from privada.exceptions import InputError

        raise InputError("Expected norm_bound, a public radius, beside a random projection; none is guessed.")
    radius = 1.0 if norm_bound is None else _check.positive(norm_bound=norm_bound)
    return FeatureMap.random(
        rows.shape[1], components or 3 * COMPONENTS, seed=seed, radius=radius, rescale=rescale
    )


def default_question(
    target: npt.ArrayLike, *, low: npt.ArrayLike, n_classes: int, guarantee: Guarantee, **more: Any
) -> ClassStatistics:
    """Class statistics through the default map."""
    salt = more.pop("salt", "")
    features = default_map(target, low=low, **more)
    return ClassStatistics(features=features, n_classes=n_classes, guarantee=guarantee, salt=salt)


__all__ = ["default_map", "default_question", "default_rescale"]
