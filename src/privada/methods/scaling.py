"""Columns of any units, made comparable by public rows alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from privada.privacy.bounds import Ball

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PublicScale:
    """Features centred and divided by the public rows' deviations, rows then clipped to norm √d."""

    mean: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> Self:
        """From public rows; a constant feature is only centred."""
        spread = X.std(axis=0)
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0))

    @property
    def radius(self) -> float:
        """√d: about the norm that public rows have."""
        return math.sqrt(len(self.mean))

    def rows(self, X: Any) -> FloatArray:
        """Rows in the ball."""
        return Ball(radius=self.radius).clip((np.asarray(X) - self.mean) / self.spread)


__all__ = ["PublicScale"]
