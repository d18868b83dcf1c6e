"""How large a noisy count must be to be believed: public quantities only.

An empty cell passes its threshold with probability at most γ over the number of
cells, so that with probability 1 - γ no empty cell passes. privacy.md, section 1 (c), gives
``b ln(N/(2γ))`` for continuous Laplace noise and ``σ Φ⁻¹(1 - γ/N)`` for Gaussian noise. Noise on a
lattice has heavier tails by up to one step, and the bounds here are for the lattice:

* discrete Laplace of b steps: ``P(Z >= h) = exp(-h/b) / (1 + exp(-1/b))`` exactly;
* discrete Gaussian: ``P(Z >= h) <= P(N(0, σ²) >= h - 1)`` in steps (Canonne, Kamath and Steinke 2020);
* K-norm cylinder: the count's noise is a Gamma(d + 2) length times a uniform number, so
  ``P(Z >= h) = (Q(d + 2, εh) - εh/(d + 1) Q(d + 1, εh)) / 2``, Q the upper regularised Gamma function.
"""

from __future__ import annotations

import math
from functools import singledispatch
from statistics import NormalDist

from privada import _check
from privada.exceptions import InputError
from privada.privacy.mechanism import Gaussian, KNormCylinder, Laplace, Mechanism


@singledispatch
def threshold(mechanism: Mechanism, *, cells: int, gamma: float, width: int) -> float:
    """The least value that the noise of ``cells`` empty cells all stays below, but for probability ``gamma``.

    ``width`` is the number of features, of which K-norm noise depends.

    >>> threshold(Laplace(sensitivity=1, scale=1.0), cells=100, gamma=0.05, width=2)
    8.0
    """
    raise InputError(f"No threshold is known for {mechanism.family} noise of {cells}, {gamma}, {width}.")


@threshold.register
def _(mechanism: Laplace, *, cells: int, gamma: float, width: int) -> float:  # noqa: ARG001
    miss = _check.probability(gamma=gamma) / cells
    steps = mechanism.steps * (-math.log(miss) - math.log1p(math.exp(-1 / mechanism.steps)))
    return max(0, math.ceil(steps)) * mechanism.grid.step


@threshold.register
def _(mechanism: Gaussian, *, cells: int, gamma: float, width: int) -> float:  # noqa: ARG001
    miss = _check.probability(gamma=gamma) / cells
    return -NormalDist().inv_cdf(miss) * mechanism.scale + mechanism.grid.step


@threshold.register
def _(mechanism: KNormCylinder, *, cells: int, gamma: float, width: int) -> float:
    from scipy.optimize import brentq
    from scipy.special import gammaincc

    miss = _check.probability(gamma=gamma) / cells

    def excess(z: float) -> float:
        tail = (gammaincc(width + 2, z) - z / (width + 1) * gammaincc(width + 1, z)) / 2
        return float(tail) - miss

    high = 1.0
    while excess(high) > 0:
        high *= 2
    found = brentq(excess, 0.0, high, xtol=1e-12, rtol=1e-12) if excess(0.0) > 0 else 0.0
    return float(found) / mechanism.budget


__all__ = ["threshold"]
