"""Confidence intervals that include noise and sampling.

*Rates.* Hits and misses are counts with noise of a known law. Half of the allowed probability of a miss is
spent on the noise: with that confidence the exact hits and misses lie within quantiles of the summed noise,
computed from its characteristic function. The other half is spent on sampling: Clopper and Pearson's exact
interval at the worst counts within these limits, which is monotone in both. So the interval contains the
rate of the population that the rows were drawn from with at least the stated confidence, whatever the counts
are.

*Means and areas.* The variances of noise and of sampling are added, and the interval is normal: approximate,
and good where a few dozen rows count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from privada import _check
from privada.privacy.mechanism import Lattice

CONFIDENCE = 0.95
_WINDOW = 2**13  # values that a sum of noise takes in the inversion
_FINEST = 2.0**-6  # of a standard deviation: no value is closer to the next


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with an interval that includes noise and sampling.

    >>> print(Estimate(value=0.9, low=0.85, high=0.94))
    0.900 (0.850 to 0.940 with 95% confidence)
    """

    value: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f} with {self.confidence:.0%} confidence)"

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"value": self.value, "low": self.low, "high": self.high, "confidence": self.confidence}


@dataclass(frozen=True, kw_only=True)
class NoisyCount:
    """A sum of released entries, each with noise of one law.

    Attributes
    ----------
    value : float
        As released: it may be negative.
    entries : int
        How many entries were added.
    draw : Lattice
        The law of the noise on each.
    """

    value: float
    entries: int
    draw: Lattice

    def limits(self, confidence: float) -> tuple[float, float]:
        """Low and high end of the exact sum, at least 0, with this confidence."""
        half = sum_quantile(self.draw, self.entries, confidence)
        return max(0.0, self.value - half), max(0.0, self.value + half)


@lru_cache(maxsize=1024)
def sum_quantile(draw: Lattice, entries: int, confidence: float) -> float:
    """The least h such that the sum of independent noise is within ±h with this confidence.

    From the characteristic function of the noise by Fourier inversion.

    >>> from privada.privacy import Laplace
    >>> sum_quantile(Laplace(sensitivity=1, scale=2.0), 1, 0.95)
    6.0
    """
    _check.probability(confidence=confidence)
    deviation = math.sqrt(entries * draw.variance)
    step = draw.grid.step * max(1, math.ceil(deviation * _FINEST / draw.grid.step))
    theta = np.arange(_WINDOW // 2 + 1, dtype=np.float64) * np.float64(2 * math.pi / (_WINDOW * step))
    masses = np.fft.irfft(draw.characteristic(theta) ** entries, _WINDOW)
    within = masses[0] + np.concatenate([[0.0], 2 * np.cumsum(masses[1 : _WINDOW // 2])])
    # On a coarser grid than that of the noise, the quantile may lie between two values.
    rounded = 0.0 if step == draw.grid.step else step
    return float(np.searchsorted(within, confidence - 1e-12)) * step + rounded


def rate(
    hits: NoisyCount, misses: NoisyCount, *, total: int | None = None, confidence: float = CONFIDENCE
) -> Estimate:
    """The share of hits in the population; ``total`` is the exact number of both, where that is public."""
    half = (1 - _check.probability(confidence=confidence)) / 2  # for the noise; as much for sampling
    if total is None:
        low, high = hits.limits(1 - half / 2)
        least, most = misses.limits(1 - half / 2)
        rows = hits.value + misses.value
    else:
        low, high = (min(end, float(total)) for end in hits.limits(1 - half))
        least, most, rows = total - high, total - low, float(total)
    value = min(1.0, max(0.0, hits.value / rows)) if rows > 0 else 0.5
    lower, upper = _exact_low(low, most, half / 2), 1 - _exact_low(least, high, half / 2)
    return Estimate(value=value, low=min(lower, value), high=max(upper, value), confidence=confidence)


def _exact_low(hits: float, misses: float, miss: float) -> float:
    """Clopper and Pearson's lower end, which lies above the true rate with probability ``miss``."""
    from scipy.stats import beta

    hit_rows, missed_rows = math.floor(hits), math.ceil(misses)
    return 0.0 if hit_rows < 1 else float(beta.ppf(miss, hit_rows, missed_rows + 1))


def normal(
    value: float, *, variance: float, low: float, high: float, confidence: float = CONFIDENCE
) -> Estimate:
    """A normal interval within known limits."""
    _check.probability(confidence=confidence)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(max(variance, 0.0))
    inside = min(high, max(low, value))
    return Estimate(
        value=inside,
        low=max(low, min(inside, value - half)),
        high=min(high, max(inside, value + half)),
        confidence=confidence,
    )


__all__ = ["CONFIDENCE", "Estimate", "NoisyCount", "normal", "rate", "sum_quantile"]
