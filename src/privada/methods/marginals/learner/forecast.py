"""What an answer would tell, before anything is spent: noise against signal, and labels explained.

Labels are not known yet, so they are given the learner's own prior: a Gaussian process over the public
source, rough and smooth. How much of its variance an answer would explain is then one linear solve, from the
question's public design and the noise it would carry: the criterion by which experiments are designed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.methods.marginals.learner.smoothing.process import kernel_between, typical_distance

FloatArray = npt.NDArray[np.float64]
LENGTHS = (0.35, 1.0)  # times the median distance: rough labels and smooth ones, which count alike
LARGEST_SIZE = 10**9  # beyond it noise is lost in the rounding of sums of so many rows
ROUNDING = 1e-12  # of the largest variance: tables that overlap are solved for whatever the noise
MANY = 1e6  # noises a row, of which digits say nothing
POINTS = 600  # of the source, on which forecasts are made


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Noise against signal, before anything is spent.

    Attributes
    ----------
    tables, entries : int
        Tables of a round, and cells or bins of a table.
    noise : float
        Standard deviation on each count.
    rows : float
        Rows a cell or bin can expect, from the announced size.
    explained : float
        Share of the variance of labels, rough or smooth, that the answer would explain.
    """

    tables: int
    entries: int
    rounds: int
    noise: float
    rows: float
    explained: float

    @property
    def signal_to_noise(self) -> float:
        """Expected rows of an entry over the noise on it."""
        return self.rows / self.noise if self.noise else math.inf

    def __str__(self) -> str:
        ratio = f"{self.signal_to_noise:{'.1f' if self.signal_to_noise < MANY else '.0e'}}"
        return (
            f"{self.rounds} round(s) of {self.tables} table(s) with {self.entries} cells: about "
            f"{self.rows:.1f} rows a cell, noise ±{self.noise:.1f} "
            f"(signal to noise {ratio}); explains about {self.explained:.0%} of labels"
        )


def some_points(source: FloatArray, seed: int) -> FloatArray:
    """Source rows on which forecasts are made."""
    return source[np.random.default_rng(seed).permutation(len(source))[:POINTS]]


def explained(
    points: FloatArray,
    designs: list[FloatArray],
    *,
    variance: float,
    size: float,
    lengths: tuple[float, ...] = LENGTHS,
) -> float:
    """Share of the prior variance of ``g = 2 P(y = 1 | x) - 1`` that noisy sums over rows would explain.

    Parameters
    ----------
    points : array of shape (n, features)
        Public rows, as the owner's are expected to lie.
    designs : list of array of shape (entries, n)
        What each point adds to each entry, one array for each round.
    variance : float
        Of the noise on one class against the others.
    size : float
        Announced number of rows.
    lengths : tuple of float
        Of the prior, times the points' median distance.

    >>> line = np.linspace(0, 1, 50)[:, None]
    >>> halves = np.stack([line[:, 0] < 0.5, line[:, 0] >= 0.5]).astype(float)
    >>> explained(line, [halves], variance=4, size=100) > explained(line, [halves], variance=400, size=100)
    True
    """
    if not size <= LARGEST_SIZE:
        raise InputError(f"Expected size to be at most {LARGEST_SIZE} rows, got {size:.15g}.")
    spread = points.std(axis=0)
    standard = points / np.where(spread > 0, spread, 1.0)
    design, each = np.vstack(designs), size / len(points)
    chance = variance * np.eye(len(design)) + design @ design.T * each
    shares = []
    for length in lengths:
        kernel = kernel_between(standard, standard, "matern", length * typical_distance(standard))
        seen = each * design @ kernel.astype(np.float64)
        known = chance + each * seen @ design.T
        known += ROUNDING * max(known.max(), 1.0) * np.eye(len(design))
        solved = np.linalg.solve(known, seen)
        shares.append(float(np.sum(seen * solved)) / len(points))
    return float(np.mean(shares))


__all__ = ["Forecast", "explained", "some_points"]
