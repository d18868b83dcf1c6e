"""The default questions: a public map chosen from the target, and nothing else.

Columns may have any units: they are centred and divided by the target's deviations. A column that does not
vary in the target tells nothing about it and is left out. Nothing else is done to a column unless ``rescale``
says so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.scaling import PublicScale
from privada.methods.transport.questions.features import FeatureMap, principal_axes
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.privacy.guarantee import Guarantee

COMPONENTS = 20
MOST_COMPONENTS = 300  # of a descent, in a target with more features
PROJECTIONS = ("target", "random")


def standardised_map(target: npt.ArrayLike, *, components: int | None = None) -> FeatureMap:
    """The map that a descent asks through: standardised columns, or their leading principal components.

    Its radius is the root mean squared norm of the target's own rows.

    >>> metres, grams = np.array([0.0, 1.0, 2.0]), np.array([0.0, 2000.0, 1000.0])
    >>> made = standardised_map(np.column_stack([metres, grams, np.ones(3)]))
    >>> made.spread([[2.0, 1000.0, 5.0]]).round(2).tolist()
    [[1.22, 0.0, 0.0]]
    """
    rows = _check.matrix(target=target)
    centre, scaling = rows.mean(axis=0), _scaling(rows)
    most = components or (MOST_COMPONENTS if rows.shape[1] > MOST_COMPONENTS else None)
    projection = np.diag(scaling)
    if most is not None and most < rows.shape[1]:
        projection = scaling[:, None] * principal_axes((rows - centre) * scaling, most)
    squares = np.sum(((rows - centre) @ projection) ** 2, axis=1)
    return FeatureMap(projection=projection, centre=centre, radius=math.sqrt(float(squares.mean())))


def _scaling(rows: FloatArray) -> FloatArray:
    """One over each column's deviation; 0 for a column that is constant but for rounding."""
    scale = PublicScale.of(rows)
    if not scale.varies.any():
        raise InputError("Expected a target whose rows differ; all of them are equal.")
    return np.where(scale.varies, 1 / scale.spread, 0.0)


def default_map(
    target: npt.ArrayLike,
    *,
    projection: str = "target",
    components: int | None = None,
    rescale: str = "none",
    norm_bound: float | None = None,
    seed: int = 0,
) -> FeatureMap:
    """The map that class statistics are asked through.

    ``projection="target"`` fits principal components on the target, of standardised columns unless rows are
    rescaled: strongest, one release for each target, and the owner sees something of the target. ``"random"``
    knows nothing of it: one release serves any target; it needs ``norm_bound`` unless rows are rescaled.
    """
    rows = _check.matrix(target=target)
    if _check.one_of(PROJECTIONS, projection=projection) == "target":
        standardised = _scaling(rows) if rescale == "none" else None
        return FeatureMap.of_target(
            rows, components=components or COMPONENTS, rescale=rescale, scaling=standardised
        )
    if norm_bound is None and rescale == "none":
        raise InputError("Expected norm_bound, a public radius, beside a random projection; none is guessed.")
    radius = 1.0 if norm_bound is None else _check.positive(norm_bound=norm_bound)
    return FeatureMap.random(
        rows.shape[1], components or 3 * COMPONENTS, seed=seed, radius=radius, rescale=rescale
    )


def default_question(
    target: npt.ArrayLike, *, n_classes: int, guarantee: Guarantee, **more: Any
) -> ClassStatistics:
    """Class statistics through the default map."""
    salt = more.pop("salt", "")
    features = default_map(target, **more)
    return ClassStatistics(features=features, n_classes=n_classes, guarantee=guarantee, salt=salt)


__all__ = ["default_map", "default_question", "standardised_map"]
