"""Where numeric labels lie, from noisy counts over even bins. All post-processing.

A normal law is fitted to the counts by its posterior mean: the noise is known, and wide priors hold where it
drowns everything. Labels with one sharp peak and long tails look too narrow then, so the spread is at least
the root mean square that the counts say, less two of its standard errors.
"""

from __future__ import annotations

import math

import numpy as np

from privada._arrays import FloatArray
from privada.methods.marginals.questions.histogram import LabelHistogram
from privada.parties.protocol import only_releases
from privada.privacy.release import Release

MIDDLES, SPREADS = 64, 16  # of the grid of normal laws
NARROWEST, WIDEST = 0.02, 0.8  # spreads, of half of the range
# priors, in halves of the range: labels lie around its middle, and a quarter of it is a usual spread
PRIOR_MIDDLE, PRIOR_SPREAD, PRIOR_FACTOR = 0.4, 0.25, 0.6


def label_spread(question: LabelHistogram, release: Release, size: int) -> tuple[float, float]:
    """Middle and spread of the labels."""
    only_releases(release)
    draw = question.plan.lattice("counts")
    counts, noise = np.asarray(release["counts"], dtype=np.float64), math.sqrt(draw.variance)
    edges, half = question.edges, (question.high - question.low) / 2
    middle, spread = _normal(counts, noise, edges, size)
    away = ((edges[1:] + edges[:-1]) / 2 - middle) ** 2
    square = float(counts @ away) / size - 2 * noise * float(np.linalg.norm(away)) / size
    return middle, math.sqrt(min(max(square, spread**2), half**2))


def _normal(counts: FloatArray, noise: float, edges: FloatArray, size: int) -> tuple[float, float]:
    """Posterior means of a normal law's middle and (on a logarithmic scale) spread."""
    from scipy.special import ndtr

    half, centre = (edges[-1] - edges[0]) / 2, (edges[-1] + edges[0]) / 2
    middles = centre + half * (2 * np.arange(MIDDLES) + 1 - MIDDLES) / MIDDLES
    spreads = half * np.geomspace(NARROWEST, WIDEST, SPREADS)
    below = ndtr((edges - middles[:, None]) / spreads[:, None, None])
    shares = np.diff(below, axis=2)
    expected = size * shares / shares.sum(axis=2, keepdims=True)
    variance = noise**2 + expected
    fit = -0.5 * ((counts - expected) ** 2 / variance + np.log(variance)).sum(axis=2)
    fit -= 0.5 * ((middles - centre) / half / PRIOR_MIDDLE) ** 2
    fit -= 0.5 * (np.log(spreads / half / PRIOR_SPREAD) / PRIOR_FACTOR)[:, None] ** 2
    weights = np.exp(fit - fit.max())
    weights /= weights.sum()
    return float((weights @ middles).sum()), float(math.exp(weights.sum(axis=1) @ np.log(spreads)))


__all__ = ["label_spread"]
