"""Exact draws among finitely many: coins, classes, candidates.

Like `privada.privacy.samplers.lattice`, these functions only ever compare uniform numbers, and
read more of their bits when the bits so far do not decide the comparison.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.privacy.samplers.exact import MARGIN, Enclosure, Source, below, exp_bounds, exp_near

GRID_BITS = 30  # the grid for scores is finer than their sensitivity by so many bits
LARGEST_EXPONENT = 64.0  # exp(-64) < 2**-92: only the exact comparison tells it from 0


def coins(enclosure: Enclosure, n: int, source: Source) -> npt.NDArray[np.bool_]:
    """Toss ``n`` coins with an enclosed probability below one, each by one word and rarely more."""
    words = source(n)
    low, high = (np.uint64(min(bound >> 32, 2**64 - 1)) for bound in enclosure(96))
    tossed = words < low
    for i in np.flatnonzero((words >= low) & (words <= high)):
        tossed[i] = below(int(words[i]), 64, enclosure, source)
    return tossed


def integers_below(bound: int, n: int, source: Source) -> IntArray:
    """Draw ``n`` integers in ``[0, bound)``, equally likely: remainders of words below a multiple of it."""
    last = np.uint64(2**64 // bound * bound - 1)
    words = source(n)
    while (again := np.flatnonzero(words > last)).size:
        words = words.copy()
        words[again] = source(again.size)
    return (words % np.uint64(bound)).astype(np.int64)


def respond(codes: IntArray, n_classes: int, epsilon: Fraction, source: Source) -> IntArray:
    """Keep each code with the odds ``e**epsilon`` to 1 against each other class."""
    kept = coins(partial(_keep_bounds, epsilon, n_classes), codes.size, source).reshape(codes.shape)
    other = integers_below(n_classes - 1, codes.size, source).reshape(codes.shape)
    return np.where(kept, codes, other + (other >= codes))


def _keep_bounds(epsilon: Fraction, n_classes: int, bits: int) -> tuple[int, int]:
    """Enclose ``2**bits / (1 + (q - 1) exp(-epsilon))``."""
    one = 1 << bits
    low, high = exp_bounds(epsilon, bits)
    return one * one // (one + (n_classes - 1) * high), -(-one * one // (one + (n_classes - 1) * low))


def choose(scores: FloatArray, epsilon: Fraction, sensitivity: float, source: Source) -> int:
    """Choose an index with probability proportional to ``exp(epsilon * steps / (2 Δ))``.

    ``steps`` are the scores in whole grid steps and ``Δ`` the sensitivity in grid steps
    (`on_grid`). Candidates are picked, all equally likely, until one is accepted; each is
    with probability ``exp(-epsilon * (best - steps) / (2 Δ))``.
    """
    steps, most = on_grid(scores, sensitivity)
    rate, best = epsilon / (2 * most), steps.max()
    exponents = (best - steps) * min(float(rate), LARGEST_EXPONENT)
    chances = np.where(exponents < LARGEST_EXPONENT, exp_near(np.minimum(exponents, LARGEST_EXPONENT)), 0.0)
    tried = 64
    while True:
        picks, words = integers_below(len(steps), tried, source), source(tried)
        lead = chances[picks] - words * 2.0**-64
        for i in np.flatnonzero(lead > -MARGIN):
            exponent = rate * (int(best) - int(steps[picks[i]]))
            if lead[i] > MARGIN or below(int(words[i]), 64, partial(exp_bounds, exponent), source):
                return int(picks[i])
        tried = min(2 * tried, 1 << 16)


def on_grid(scores: FloatArray, sensitivity: float) -> tuple[FloatArray, int]:
    """Put scores on a public grid: whole steps, and how many of them one record can move a score.

    The step is the power of two between ``2**-31`` and ``2**-30`` of the sensitivity. If
    the scores of neighbours differ by at most the sensitivity and one step, which leaves
    room for rounding in the scores, their whole steps differ by at most the second value,
    since rounding down keeps the order.

    >>> on_grid(np.array([1.0, -0.25]), 1.0)
    (array([ 1.07374182e+09, -2.68435456e+08]), 1073741825)
    """
    mantissa, exponent = math.frexp(sensitivity)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(scores, GRID_BITS + 1 - exponent)
    lost = (scaled == 0) & (scores < 0)  # a negative number too small for a float still rounds down
    steps = np.clip(np.floor(scaled) - lost, -(2.0**1000), 2.0**1000)
    return steps, math.ceil(math.ldexp(mantissa, GRID_BITS + 1)) + 1


__all__ = ["choose", "coins", "integers_below", "on_grid", "respond"]
