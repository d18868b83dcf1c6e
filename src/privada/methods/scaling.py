"""Columns of any units, made comparable by public rows alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.privacy.bounds import Ball

ROUNDING = 1e-12  # of a column's largest value: a smaller deviation is rounding, and the column constant


@dataclass(frozen=True, eq=False)
class PublicScale:
    """Means and deviations of public rows.

    Attributes
    ----------
    mean, spread : arrays of shape (features,)
        The spread of a constant column is 1, so that it is only centred.
    varies : array of bool
        False for a column that is constant but for rounding.

    >>> scale = PublicScale.of(np.array([[0.0, 5.0], [2.0, 5.0]]))
    >>> scale.standardise([[2.0, 7.0]]).tolist(), scale.varies.tolist()
    ([[1.0, 2.0]], [True, False])
    """

    mean: FloatArray
    spread: FloatArray
    varies: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, X: FloatArray, *, each: bool = True) -> Self:
        """From public rows; with ``each=False`` all columns share the root of their mean variance."""
        spread = X.std(axis=0)
        varies = spread > ROUNDING * np.abs(X).max(axis=0, initial=1e-300)
        if not each:
            spread = np.full(X.shape[1], math.sqrt(float(np.mean(spread**2))))
            return cls(X.mean(axis=0), spread if varies.any() else np.ones(X.shape[1]), varies)
        return cls(X.mean(axis=0), np.where(varies, spread, 1.0), varies)

    @property
    def radius(self) -> float:
        """√d: about the norm that public rows have."""
        return math.sqrt(len(self.mean))

    def standardise(self, X: Any) -> FloatArray:
        """Rows in public deviations from the public mean."""
        return np.asarray((np.asarray(X) - self.mean) / self.spread)

    def rows(self, X: Any) -> FloatArray:
        """Standardised rows, clipped to norm √d."""
        return Ball(radius=self.radius).clip(self.standardise(X))


__all__ = ["PublicScale"]
