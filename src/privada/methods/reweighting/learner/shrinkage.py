"""How much of a noisy correction to believe: empirical Bayes, from what was released.

The averaged correction V is the target's plus errors of known size: the noise of the steps, and the sampling
error of n rows. With blocks b of directions, from strong to weak, the positive-part James-Stein factor
``max(0, 1 - Σ_b ν_i / Σ_b V_i²)`` is the best linear shrinkage toward the public model where the block's true
size is estimated from the release itself. So a target that is like the source falls back to the public
model, and one that is not keeps its correction, without a public guess of how far it is. Only a block that
moves predictions further than any target should (`FURTHEST`) is taken for noise beyond that: where n is 1,
or ε tiny, a few large draws would pass for a correction otherwise.

ν follows from the descent: in a direction of curvature ρ (of the public loss, times its largest) the iterates
are an autoregression with factor ``a = 1 - η((1 - α)ρ + α)``, and the mean of the later half is a linear
filter of the steps' noise and of the constant sampling error. Post-processing: no row is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
FIRST_BLOCK = 4  # directions; each next block has twice as many
FURTHEST = (
    3.0  # residuals (or units of the score) by which a target may differ: as far as rehearsed drifts go
)


@dataclass(frozen=True, eq=False)
class Filter:
    """What an averaged descent makes of unit errors, in every direction.

    Attributes
    ----------
    noise : array
        Variance in the average of independent unit noise at every step.
    constant : array
        Answer of the average to a constant unit gradient.
    """

    noise: FloatArray
    constant: FloatArray

    @classmethod
    def of(cls, curvatures: FloatArray, *, alpha: float, step: float, steps: int) -> Filter:
        """Of a descent with relative step size; curvatures are relative to the largest.

        >>> made = Filter.of(np.ones(1), alpha=0.0, step=0.5, steps=200)
        >>> made.constant.round(3).tolist(), (100 * made.noise).round(2).tolist()   # about 1/100 a step
        ([1.0], [0.99])
        """
        a = 1 - step * ((1 - alpha) * curvatures + alpha)
        half = steps // 2
        powers = a[:, None] ** np.arange(steps)
        reach = np.cumsum(powers, axis=1)  # reach[:, j] = 1 + a + ... + a^j
        late = np.arange(steps)
        ends, starts = steps - 1 - late, half - 1 - late
        total = reach[:, ends] - np.where(starts >= 0, reach[:, np.maximum(starts, 0)], 0.0)
        weights = (1 - alpha) * step * total / (steps - half)
        return cls(np.asarray((weights**2).sum(axis=1)), np.asarray(weights.sum(axis=1)))


def blocks(k: int) -> list[slice]:
    """Directions in blocks of 4, 8, 16 ...

    >>> [(b.start, b.stop) for b in blocks(20)]
    [(0, 4), (4, 12), (12, 20)]
    """
    found, start, size = [], 0, FIRST_BLOCK
    while start < k:
        found.append(slice(start, min(k, start + size)))
        start, size = start + size, 2 * size
    return found


def shrunk(V: FloatArray, variance: FloatArray, *, reach: FloatArray | None = None) -> FloatArray:
    """V of shape (k, ..., outputs), each block scaled down; the variance has V's shape without outputs.

    ``reach`` is the largest mean square of a true correction, in every direction.

    >>> shrunk(np.array([[3.0], [1.0]]), np.array([1.0, 1.0])).ravel().tolist()   # 1 - 2/10
    [2.4000000000000004, 0.8]
    >>> shrunk(np.array([[3.0], [1.0]]), np.array([1.0, 1.0]), reach=np.full(2, 0.5)).ravel().tolist()
    [1.0, 0.3333333333333333]
    """
    made = np.array(V, dtype=np.float64)
    for block in blocks(len(V)):
        size, errors = (made[block] ** 2).sum(axis=(0, -1)), variance[block].sum(axis=0) * V.shape[-1]
        most = np.inf if reach is None else reach[block].sum() * V.shape[-1]
        true = np.clip(size - errors, 0.0, most)
        made[block] *= (true / np.maximum(true + errors, 1e-300))[..., None]
    return made


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """What is known of a descent's errors beforehand.

    Attributes
    ----------
    curvatures : array of shape (k,)
        Public curvature in each mapped direction, relative to the largest.
    pull : float
        Usual size of a record's pull: with the number of rows, the sampling error.
    unit : float
        The source's residual, or 1.
    """

    curvatures: FloatArray
    pull: float
    unit: float = 1.0

    @property
    def reach(self) -> FloatArray:
        """Largest mean square of a true correction: a block that moves predictions further moves by noise."""
        moved = (FURTHEST * self.unit) ** 2
        found = [
            np.full(b.stop - b.start, moved / max(self.curvatures[b].sum(), 1e-12))
            for b in blocks(len(self.curvatures))
        ]
        return np.concatenate(found)

    def variance(self, made: Filter, *, noise: float, rows: int) -> FloatArray:
        """ν in units of the loss's curvature; ``noise`` is a step's on the mean gradient."""
        sampling = self.pull**2 * self.curvatures / max(rows, 1)
        return np.asarray(noise**2 * made.noise + sampling * made.constant**2)


__all__ = ["Filter", "Shrinkage", "blocks", "shrunk"]
