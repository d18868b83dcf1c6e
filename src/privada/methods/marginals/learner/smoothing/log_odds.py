"""A Gaussian process on log-odds, seen through noisy counts of cells: labels that cannot leave [0, 1].

`smoothing.process` chooses kernel and length in a linear model. Here the same kernel is the
prior of log-odds, and each cell's counts have their exact law (`NoisyCounts`): rows of a class come at the
rate of the cell's public points, each by its own probability. The mode is found by Newton's steps among sums
of the cells' averaged kernels; Laplace's evidence chooses the prior's variance. Where domains differ, how
many rows a public point stands for is found first, the same way, from the cells' totals. All post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array
from scipy.special import expit

from privada._arrays import FloatArray, IntArray
from privada.methods.marginals.learner.smoothing.counts import NoisyCounts
from privada.methods.marginals.learner.smoothing.process import Smoothed, kernel_between, typical_distance

# log-likelihood, its slope and curvature by each cell's rate, and how each point's rate moves with f
Terms = tuple[float, FloatArray, FloatArray, FloatArray]
View = Callable[[FloatArray], Terms]

VARIANCES = (3.0, 12.0, 50.0)  # of log-odds: from doubtful labels to nearly certain ones
STRETCHES = (1.0, 1.6)  # of the linear model's length: log-odds are smoother than what they are squeezed into
RATIO_VARIANCES = (0.02, 0.5)  # of the logarithm of rows a public point stands for
LEVEL = 1.0  # prior deviation of the mean log-odds
JITTER = 1e-5
MOST_RATIO = 3.0  # of that logarithm, either way
MOST_STEPS = 30
SETTLED = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Public points by cell, and how many rows each stands for.

    Parameters
    ----------
    points : array of shape (n, features)
    groups : array of shape (n,)
        Cell of each point.
    rates : array of shape (n,)
        Rows that each point stands for.
    """

    points: FloatArray
    groups: IntArray
    rates: FloatArray
    count: int

    @classmethod
    def spread(cls, points: FloatArray, groups: IntArray, count: int, rows: float) -> Cells:
        """So many rows, spread as the points are."""
        each = np.full(len(groups), max(float(rows), 1.0) / len(groups))
        return cls(points=points, groups=groups, rates=each, count=count)

    def times(self, ratio: FloatArray) -> Cells:
        """Each point standing for so many times its rows."""
        return replace(self, rates=self.rates * ratio)

    @property
    def design(self) -> csr_array:
        """Sums the points of each cell."""
        n = len(self.groups)
        return csr_array((np.ones(n), (self.groups, np.arange(n))), shape=(self.count, n))

    def among(self, kept: IntArray) -> Cells:
        """Some of the points, standing for the rows of all points of their cell."""
        before = np.bincount(self.groups, self.rates, minlength=self.count)
        groups, rates = self.groups[kept], self.rates[kept]
        after = np.bincount(groups, rates, minlength=self.count)
        scaled = rates * (before / np.maximum(after, 1e-12))[groups]
        return Cells(points=self.points[kept], groups=groups, rates=scaled, count=self.count)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Basis:
    """Averages of the kernel over cells, made orthonormal, and a constant."""

    cells: Cells
    family: str
    length: float
    coordinates: FloatArray | None
    values: FloatArray
    factor: FloatArray

    @classmethod
    def of(cls, cells: Cells, family: str, length: float, coordinates: FloatArray | None) -> _Basis:
        """Of unit variance."""
        crossed = _averaging(cells) @ kernel_between(cells.points, cells.points, family, length)
        gram = np.asarray((_averaging(cells) @ crossed.T), dtype=np.float64)
        factor = np.asarray(np.linalg.cholesky(gram + JITTER * np.eye(cells.count)), dtype=np.float64)
        values = solve_triangular(factor, crossed.astype(np.float64), lower=True).T
        return cls(
            cells=cells, family=family, length=length, coordinates=coordinates, values=values, factor=factor
        )

    def scaled(self, variance: float) -> FloatArray:
        """Values at the points under a prior of this variance."""
        return np.hstack([np.sqrt(variance) * self.values, np.full((len(self.values), 1), LEVEL)])

    def function(self, variance: float, found: FloatArray, evidence: float) -> Smoothed:
        """The function with these coordinates, one column."""
        inner = solve_triangular(self.factor, found[:-1], lower=True, trans="T") / np.sqrt(variance)
        return Smoothed(
            points=self.cells.points,
            coefficients=(_averaging(self.cells).T @ inner)[:, None],
            level=LEVEL * found[-1:],
            family=self.family,
            length=self.length,
            variance=variance,
            evidence=evidence,
            coordinates=self.coordinates,
        )


def _averaging(cells: Cells) -> csr_array:
    held = np.maximum(np.bincount(cells.groups, minlength=cells.count), 1)
    n = len(cells.groups)
    return csr_array((1 / held[cells.groups], (cells.groups, np.arange(n))), shape=(cells.count, n))


def of_counts(
    cells: Cells, mine: NoisyCounts, others: NoisyCounts, *, like: Smoothed, few: IntArray
) -> Smoothed:
    """Log-odds of a class from its counts and the others'; priors are compared on a ``few`` of the points."""

    def view(part: Cells) -> View:
        design = part.design

        def terms(f: FloatArray) -> Terms:
            p = expit(f)
            up, down = mine(design @ (part.rates * p)), others(design @ (part.rates * (1 - p)))
            value = float(up[0].sum() + down[0].sum())
            return value, up[1] - down[1], up[2] + down[2], part.rates * p * (1 - p)

        return terms

    return _best(cells, view, like=like, few=few)


def of_differences(cells: Cells, differences: NoisyCounts, *, like: Smoothed, few: IntArray) -> Smoothed:
    """Log-odds of a class from its counts less the others'."""

    def view(part: Cells) -> View:
        design = part.design

        def terms(f: FloatArray) -> Terms:
            p = expit(f)
            value, slope, curvature = differences(design @ (part.rates * p), design @ (part.rates * (1 - p)))
            return float(value.sum()), slope, curvature, part.rates * p * (1 - p)

        return terms

    return _best(cells, view, like=like, few=few)


def log_ratio(cells: Cells, totals: NoisyCounts, *, like: Smoothed, few: IntArray) -> Smoothed:
    """By how much, in logarithms, the rows that a point stands for differ from what ``cells`` says."""
    part = cells.among(few)
    design = part.design

    def terms(f: FloatArray) -> Terms:
        each = part.rates * ratio_of(f)
        value, slope, curvature = totals(design @ each)
        return float(value.sum()), slope, curvature, each

    basis = _Basis.of(part, "rbf", typical_distance(part.points), like.coordinates)
    found = [(variance, *_mode(basis.scaled(variance), design, terms)) for variance in RATIO_VARIANCES]
    return basis.function(*max(found, key=lambda each: each[2]))


def ratio_of(logarithms: FloatArray) -> FloatArray:
    """Within `MOST_RATIO`, either way."""
    return np.asarray(np.exp(np.clip(logarithms, -MOST_RATIO, MOST_RATIO)))


def _best(cells: Cells, view: Callable[[Cells], View], *, like: Smoothed, few: IntArray) -> Smoothed:
    """The likeliest prior by a few points, then the mode through all of them."""
    part, best = cells.among(few), (-np.inf, 1.0, 1.0)
    for stretch in STRETCHES:
        basis = _Basis.of(part, like.family, stretch * like.length, like.coordinates)
        for variance in VARIANCES:
            evidence = _mode(basis.scaled(variance), part.design, view(part))[1]
            best = max(best, (evidence, stretch, variance))
    _, stretch, variance = best
    basis = _Basis.of(cells, like.family, stretch * like.length, like.coordinates)
    return basis.function(variance, *_mode(basis.scaled(variance), cells.design, view(cells)))


def _mode(basis: FloatArray, design: csr_array, view: View) -> tuple[FloatArray, float]:
    """The most likely coordinates under a standard normal prior, and Laplace's evidence: Newton's steps."""
    at = np.zeros(basis.shape[1])
    terms = view(basis @ at)
    for _ in range(MOST_STEPS):
        _, slope, curvature, by_point = terms
        moved = design @ (by_point[:, None] * basis)
        factor = cho_factor(np.eye(len(at)) + moved.T @ (curvature[:, None] * moved), lower=True)
        step = cho_solve(factor, moved.T @ slope - at)
        before = terms[0] - float(at @ at) / 2
        at, terms, gained = _climbed(at, step, before, lambda w: view(basis @ w))
        if gained < SETTLED:
            break
    return at, float(terms[0] - at @ at / 2 - np.log(np.diag(factor[0])).sum())


def _climbed(at: FloatArray, step: FloatArray, before: float, view: View) -> tuple[FloatArray, Terms, float]:
    """As much of a step as gains, halved at most ten times."""
    for halved in range(10):
        moved = at + step / 2**halved
        terms = view(moved)
        gained = float(terms[0] - moved @ moved / 2 - before)
        if gained > 0:
            return moved, terms, gained
    return at, view(at), 0.0


__all__ = ["Cells", "log_ratio", "of_counts", "of_differences", "ratio_of"]
