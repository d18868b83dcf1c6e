"""How likely a noisy count is: rows that come by chance, and the noise's own law, both exactly.

A cell's rows of one class are Poisson with some rate; a release adds noise of known law. Their sum has the
characteristic function ``exp(rate (e^{iθ} - 1)) φ(θ)``, so a probability is one sum over frequencies, and a
derivative by the rate multiplies the sum's terms by ``e^{iθ} - 1``. Against a normal law of the same variance
this tells more where cells hold few rows: Laplace noise is peaked, and a class that is absent
from a cell is nearly known to be. All post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privada._arrays import FloatArray
from privada.privacy.mechanism import Lattice

LEAST = 1e-12  # a probability below this is rounding; a normal law says then where to go
REACH = 12.0  # standard deviations of noise and rows within which a count can lie


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCounts:
    """Released counts, or differences of two counts, and the law of their noise.

    Parameters
    ----------
    observed : array of shape (cells,)
    draw : Lattice
        The mechanism that made them.
    times : int
        How many such noises each number carries: sums of entries carry several.
    """

    observed: FloatArray
    draw: Lattice
    times: int = 1
    _theta: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        widest = 2 * np.abs(self.observed).max(initial=1.0)
        widest += REACH * np.sqrt(self.variance + widest)
        period = 2 ** int(np.ceil(np.log2(2 * widest)))
        object.__setattr__(self, "_theta", 2 * np.pi * np.arange(period // 2 + 1) / period)

    @property
    def variance(self) -> float:
        """Of the noise on each number."""
        return self.times * self.draw.variance

    def __call__(self, rate: FloatArray, other: FloatArray | None = None) -> tuple[FloatArray, ...]:
        """Log-likelihood, its slope and its curvature (negated second derivative), cell by cell.

        Slope and curvature are by ``rate``; of signed counts, as ``rate`` grows and ``other`` shrinks alike.
        """
        turn = np.exp(1j * self._theta)
        exponent = np.multiply.outer(rate, turn - 1) - 1j * np.multiply.outer(self.observed, self._theta)
        step = turn - 1
        if other is not None:
            exponent += np.multiply.outer(other, turn.conj() - 1)
            step = turn - turn.conj()
        weights = self.draw.characteristic(self._theta) ** self.times / (len(self._theta) - 1)
        weights[[0, -1]] /= 2  # the ends of the half circle stand for themselves alone
        powers = np.stack([np.ones_like(step), step, step**2], axis=1) * weights[:, None]
        density, first, second = (np.exp(exponent) @ powers).real.T
        mean, spread = (rate, rate) if other is None else (rate - other, rate + other)
        return self._guarded(density, first, second, mean, spread + self.variance)

    def _guarded(
        self, density: FloatArray, first: FloatArray, second: FloatArray, mean: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, ...]:
        """The exact law where it can be computed; elsewhere the normal one's."""
        pull = (self.observed - mean) / spread
        sound = density > LEAST
        safe = np.where(sound, density, 1.0)
        value = np.where(sound, np.log(safe), np.log(LEAST) - (self.observed - mean) ** 2 / (2 * spread))
        slope = np.where(sound, first / safe, pull)
        curvature = np.where(sound, slope**2 - second / safe, 0.0)
        return value, slope, np.maximum(curvature, 0.1 / spread)


__all__ = ["NoisyCounts"]
