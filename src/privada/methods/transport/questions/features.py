"""The public map from a row to the vector that is released about: rescale, centre, project, clip.

Every step is a function of the row alone. The map is public and fixed before any private row
is opened: a random projection knows nothing of anybody, one fitted on the target shows
something of the target to the owner, and the study says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numba
import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.bounds import Ball

RESCALES = ("none", "unit", "root")
LARGEST = 50_000_000


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FeatureMap:
    """``z = clip_R((s(x) - c) P)``.

    Parameters
    ----------
    projection : array of shape (features, components)
        P.
    centre : array of shape (features,)
        c, subtracted after rescaling.
    radius : float
        R; rows are clipped to this norm *after* the projection.
    rescale : "none", "unit" or "root"
        s: nothing, the row over its norm, or signed square roots over their norm.

    Privacy
    -------
    ``|z| <= R`` for every row, whatever the matrix; two rows differ by at most 2R. Rows are mapped
    one by one, by a kernel whose rounding does not depend on a row's place in its batch.

    >>> plain = FeatureMap(projection=np.eye(2), centre=np.zeros(2), radius=1.0)
    >>> plain.apply(np.array([[3.0, 4.0]])).round(3).tolist()
    [[0.6, 0.8]]
    """

    projection: FloatArray
    centre: FloatArray
    radius: float
    rescale: str = "none"

    def __post_init__(self) -> None:
        projection = np.ascontiguousarray(_check.matrix(projection=self.projection))
        centre = _check.matrix(centre=np.atleast_2d(self.centre), width=len(projection))[0].copy()
        if projection.size > LARGEST:
            raise InputError(f"Expected a projection of at most {LARGEST} numbers, got {projection.size}.")
        for array in (projection, centre):
            array.flags.writeable = False
        object.__setattr__(self, "projection", projection)
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "radius", _check.positive(radius=self.radius))
        _check.one_of(RESCALES, rescale=self.rescale)

    @property
    def width(self) -> int:
        """Number of features that it takes."""
        return len(self.projection)

    @property
    def components(self) -> int:
        """Number of components that it gives."""
        return int(self.projection.shape[1])

    def spread(self, X: npt.ArrayLike) -> FloatArray:
        """Rescale, centre and project, without the clipping."""
        rows = rescaled(np.asarray(X, dtype=np.float64), self.rescale) - self.centre
        return project(np.ascontiguousarray(rows), self.projection)

    def apply(self, X: npt.ArrayLike) -> FloatArray:
        """Map rows into the ball."""
        return Ball(radius=self.radius).clip(self.spread(X))

    def row_norms(self) -> FloatArray:
        """Norm of each feature's row of P: how far one unit of it moves a projected row."""
        size = int(np.frexp(np.abs(self.projection).max())[1])  # a power of two: no square leaves the floats
        return np.asarray(np.ldexp(np.sqrt(np.sum(np.ldexp(self.projection, -size) ** 2, axis=1)), size))

    def parts(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Plain values and arrays."""
        plain = {"radius": self.radius, "rescale": self.rescale}
        return plain, {"projection": self.projection, "centre": self.centre}

    @classmethod
    def random(
        cls, width: int, components: int, *, seed: int, radius: float = 1.0, rescale: str = "none"
    ) -> Self:
        """A Johnson-Lindenstrauss matrix of a public seed, target-independent.

        Its generator has nothing to do with the noise, which no seed reaches.
        """
        shape = _check.count(width=width), _check.count(components=components)
        matrix = np.random.default_rng(seed).normal(size=shape) / math.sqrt(components)
        return cls(projection=matrix, centre=np.zeros(width), radius=radius, rescale=rescale)

    @classmethod
    def of_target(
        cls,
        target: npt.ArrayLike,
        *,
        components: int = 20,
        rescale: str = "none",
        quantile: float = 0.5,
        scaling: npt.ArrayLike | None = None,
    ) -> Self:
        """Principal components of the public target; R is a quantile of its projected norms.

        With ``scaling`` every column is multiplied by a public number first.

        Classes lie far apart along the target's leading components, so few numbers carry them. The owner
        who is asked sees the map, and with it something of the target.
        """
        rows = rescaled(_check.matrix(target=target), _check.one_of(RESCALES, rescale=rescale))
        centre = rows.mean(axis=0)
        most = min(_check.count(components=components), *rows.shape)
        factors = np.ones(rows.shape[1]) if scaling is None else np.asarray(scaling, dtype=np.float64)
        axes = factors[:, None] * principal_axes((rows - centre) * factors, most)
        norms = np.linalg.norm((rows - centre) @ axes, axis=1)
        radius = float(np.quantile(norms, quantile)) or float(norms.max())
        if not radius > 1e-12 * max(1.0, float(np.abs(rows * factors).max())):
            raise InputError("Expected a target whose rows differ; all of them are equal.")
        return cls(projection=axes, centre=centre, radius=radius, rescale=rescale)


def rescaled(rows: FloatArray, how: str) -> FloatArray:
    """Rows as they are, over their norm, or their signed roots over their norm; zero stays zero."""
    if how == "none":
        return rows
    if how == "root":
        rows = np.sign(rows) * np.sqrt(np.abs(rows))
    norms = np.sqrt(np.sum(rows**2, axis=1, keepdims=True))
    return np.asarray(rows / np.where(norms > 0, norms, 1.0))


def principal_axes(centred: FloatArray, components: int) -> FloatArray:
    """Leading right singular vectors, with a fixed sign."""
    n, width = centred.shape
    if width <= n:
        vectors = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :components]
    else:
        values, sides = np.linalg.eigh(centred @ centred.T)
        keep = values[::-1][:components] > values[-1] * 1e-12
        vectors = centred.T @ sides[:, ::-1][:, :components][:, keep]
        vectors /= np.linalg.norm(vectors, axis=0)
    if not vectors.size:
        raise InputError("Expected a target whose rows differ; all of them are equal.")
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.asarray(vectors * np.sign(largest))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def project(rows: FloatArray, matrix: FloatArray) -> FloatArray:  # pragma: no cover - compiled
    """``rows @ matrix``, each row summed in one fixed order, wherever it stands in its batch."""
    out = np.zeros((rows.shape[0], matrix.shape[1]))
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = rows[i, j]
            if value != 0.0:
                for k in range(matrix.shape[1]):
                    out[i, k] += value * matrix[j, k]
    return out


__all__ = ["FeatureMap", "principal_axes", "project", "rescaled"]
