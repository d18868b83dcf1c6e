"""Which public rows are like the private ones: a noisy portrait of the target bends the map toward it.

Public rows fall into cells around public centres. A noisy count of the private rows of each cell weighs the
public rows of that cell; the weighted second moments, and those of the target's noisy mean, make the map:
coordinates in which the *target's* gradients need little noise and one step size serves all directions. Where
the target fills few of the directions that the source fills, that is worth more than the portrait costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada.methods.reweighting.learner import geometry
from privada.methods.reweighting.learner.geometry import Spectrum
from privada.methods.reweighting.learner.shrinkage import shrunk

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
MOST_CELLS, ROWS_A_CELL = 80, 40
WIDE = 20  # directions below which one map serves every domain
AT = 1e-3  # the preconditioner in which rows are near each other
LIKENESS = 0.5  # share of the second moments that follows the portrait


@dataclass(frozen=True, eq=False)
class Cells:
    """Public centres in mapped coordinates, and the cell of each public row.

    Attributes
    ----------
    transform : array of shape (scaled features, k)
    inverse : array of shape (scaled features, k)
        Takes mapped features back.
    radius : float
        Of clipping after the map.
    """

    transform: FloatArray
    inverse: FloatArray
    radius: float
    centers: FloatArray
    labels: IntArray

    @classmethod
    def of(cls, rows: FloatArray, spectrum: Spectrum, seed: int) -> Cells | None:
        """By k-means on public rows; None where they are few or have few directions."""
        from sklearn.cluster import KMeans

        count = min(MOST_CELLS, len(rows) // ROWS_A_CELL)
        if count < 4 or len(spectrum.eigen) < WIDE:
            return None
        P, stretch = spectrum.map(AT), np.sqrt(spectrum.eigen + AT * spectrum.eigen[0])
        radius = geometry.radius_of(rows @ P)
        found = KMeans(count, n_init=1, random_state=seed).fit(geometry.clipped(rows @ P, radius))
        labels = found.labels_.astype(np.int64)
        return cls(P, spectrum.vectors * stretch, radius, found.cluster_centers_, labels)

    def seen(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Share of (public) rows in each cell, and their mapped mean."""
        Z = geometry.clipped(rows @ self.transform, self.radius)
        far = (self.centers**2).sum(axis=1)[None] - 2 * Z @ self.centers.T
        counts = np.bincount(far.argmin(axis=1), minlength=len(self.centers))
        return counts / max(len(rows), 1), Z.mean(axis=0)

    def portrait(self, shares: FloatArray, mean: FloatArray, noise: tuple[float, float]) -> Likeness:
        """Weights of the public rows and the target's mean; shares below their noise count as none."""
        seen = np.where(shares > noise[0], shares, 0.0)
        here = np.bincount(self.labels, minlength=len(self.centers)) / len(self.labels)
        seen = np.where(here > 0, seen, 0.0)
        ratio = seen / max(seen.sum(), 1e-300) / np.maximum(here, 1e-300)
        weights = ratio[self.labels] if seen.any() else np.ones(len(self.labels))
        believed = shrunk(mean[:, None], np.full(len(mean), noise[1] ** 2))[:, 0]
        return Likeness(weights, self.inverse @ believed)


@dataclass(frozen=True, eq=False)
class Likeness:
    """Weights of the public rows, and the target's mean in scaled features."""

    weights: FloatArray
    mean: FloatArray

    def bend(self, rows: FloatArray, by: float) -> FloatArray:
        """Public rows whose second moments are ``by`` parts like the target's.

        One row more stands for the mean, with ``by`` of the weight of all.
        """
        weights = (1 - by) + by * self.weights
        scaled = rows * np.sqrt(weights / weights.mean())[:, None]
        return np.vstack([scaled, np.sqrt(by * len(rows)) * self.mean])


__all__ = ["LIKENESS", "Cells", "Likeness"]
