"""Functions of public points from noisy sums over private rows: Gaussian processes. All post-processing.

An aggregate of the owner's rows is, in expectation, a linear map of the unknown function
``g(x) = 2 P(y = 1 | x) - 1`` on public points: a count over a cell is a sum of g over the
cell, an error table one of ±g. With a Gaussian process prior on g the posterior is one linear solve
(`smooth`), and the evidence, which the noise's known variance makes honest, chooses kernel and scale.

Where cells hold few rows, the same kernel is the prior of log-odds instead, so that labels cannot leave
[0, 1], and each cell's counts have their exact law (`NoisyCounts`): rows of a class come at the rate of the
cell's public points, each by its own probability. The mode is found by Newton's steps among sums
of the cells' averaged kernels; Laplace's evidence chooses the prior's variance. Where domains differ, how
many rows a public point stands for is found first, the same way, from the cells' totals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array
from scipy.special import expit

from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.privacy.mechanism import Lattice

Singles = npt.NDArray[np.float32]
# Log-likelihood, its slope and curvature by each cell's rate, and how each point's rate changes with f.
Terms = tuple[float, FloatArray, FloatArray, FloatArray]
View = Callable[[FloatArray], Terms]

FAMILIES = ("rbf", "matern")
LENGTHS = (0.2, 0.35, 0.6, 1.0, 1.6)  # times the median distance of public points
VARIANCES = (0.5, 1.0, 2.0)
SHARES = (0.3, 1.0)  # of the sampling variance: labels that are nearly certain vary less than by chance
LEVEL = 0.1  # prior variance of the mean label
ROUNDING = 1e-5  # of the largest variance: kernels are taken in single precision
MOST_POINTS = 1000  # among which kernels are compared
ALL_POINTS = 4000  # through which the chosen one is solved: a cell's average shows in the label of its points
DISTANCE_ROWS = 2000  # whose distances are computed at once

LEAST = 1e-12  # a probability below this is rounding; a normal law then gives the direction
REACH = 12.0  # standard deviations of noise and rows within which a count can lie

ODDS_VARIANCES = (3.0, 12.0, 50.0)  # of log-odds: from doubtful labels to nearly certain ones
STRETCHES = (1.0, 1.6)  # of the linear model's length: log-odds are smoother than the probabilities
RATIO_VARIANCES = (0.02, 0.5)  # of the logarithm of rows a public point stands for
ODDS_LEVEL = 1.0  # prior deviation of the mean log-odds
JITTER = 1e-5
MOST_RATIO = 3.0  # of the logarithm of a ratio, either way
MOST_STEPS = 30
SETTLED = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothed:
    """The posterior mean, for any points.

    Attributes
    ----------
    family, length, variance
        The kernel that the evidence chose.
    evidence : float
        Log marginal likelihood, up to a constant.
    """

    points: FloatArray
    coefficients: FloatArray
    level: FloatArray
    family: str
    length: float
    variance: float
    evidence: float
    coordinates: FloatArray | None = None

    def __call__(self, X: FloatArray) -> FloatArray:
        """Posterior mean of g at each row, one column for each class (one alone for two classes)."""
        X = transform(X, self.coordinates)
        values = np.empty((len(X), self.coefficients.shape[1]))
        for start in range(0, len(X), DISTANCE_ROWS):
            rows = slice(start, start + DISTANCE_ROWS)
            distances = _squared_distances(X[rows], self.points)
            values[rows] = _kernel(distances, self.length, self.family) @ self.coefficients
        return self.variance * values + self.level


def smooth(
    points: FloatArray,
    design: FloatArray,
    observed: FloatArray,
    *,
    released: FloatArray,
    sampling: FloatArray,
    further: tuple[FloatArray, FloatArray] | None = None,
    coordinates: FloatArray | None = None,
) -> Smoothed:
    """Fit ``observed = design @ g(points) + noise``, choosing the kernel by evidence.

    Parameters
    ----------
    points : array of shape (n, features)
        Public.
    design : array of shape (m, n)
    observed : array of shape (m, outputs)
    released : array of shape (m,)
        Variance of the released noise.
    sampling : array of shape (m,) or (m, m)
        Variance or covariance of sampling, at most.
    further : (points, design), optional
        More points and their design: the chosen kernel's posterior is solved through them.
    coordinates : array, optional
        A public linear map into the coordinates in which distances are taken.
    """
    if not len(points):
        raise InputError("Expected at least one public point.")
    points = transform(points, coordinates)
    distances = _squared_distances(points, points)
    typical = _typical_distance(distances)
    narrow = _shrink_design(design)
    chance = np.diag(sampling) if sampling.ndim == 1 else sampling
    base = np.diag(released) + LEVEL * np.outer(design.sum(axis=1), design.sum(axis=1))
    best: tuple[float, Any] = (-np.inf, None)
    for family in FAMILIES:
        for length in LENGTHS:
            half = narrow @ _kernel(distances, length * typical, family)
            prior = (narrow @ half.T).T
            for variance, share in product(VARIANCES, SHARES):
                covariance = base + share * chance + variance * prior.astype(np.float64)
                evidence, alpha = _solve(covariance, observed)
                if evidence > best[0]:
                    best = evidence, (family, length * typical, variance, alpha, share)
    evidence, (family, length, variance, alpha, share) = best
    if further is not None:
        points, design = transform(further[0], coordinates), further[1]
        narrow = _shrink_design(design)
        half = narrow @ _kernel(_squared_distances(points, points), length, family)
        prior = np.asarray((narrow @ half.T).T, dtype=np.float64)
        evidence, alpha = _solve(base + share * chance + variance * prior, observed)
    return Smoothed(
        points=np.asarray(points, dtype=np.float64),
        coefficients=design.T @ alpha,
        level=LEVEL * design.sum(axis=1) @ alpha,
        family=family,
        length=length,
        variance=variance,
        evidence=evidence,
        coordinates=coordinates,
    )


def transform(X: FloatArray, coordinates: FloatArray | None) -> FloatArray:
    """Rows in the coordinates in which distances are taken."""
    return np.asarray(X if coordinates is None else X @ coordinates, dtype=np.float64)


def representatives(groups: IntArray, seed: int, most: int = MOST_POINTS) -> IntArray:
    """Indices of at most about ``most`` public points, evenly over the groups, none left out."""
    rng = np.random.default_rng(seed)
    of_each = max(2, most // max(1, int(groups.max(initial=0)) + 1))
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    sorted_groups = groups[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_groups, sorted_groups)
    return order[rank < of_each]


def _shrink_design(design: FloatArray) -> Any:
    """Keep the design in half the memory, and sparse where a point is in one cell of many."""
    narrow = design.astype(np.float32)
    return csr_array(narrow) if np.count_nonzero(narrow) < 0.05 * narrow.size else narrow


def _solve(covariance: FloatArray, observed: FloatArray) -> tuple[float, FloatArray]:
    """Log-evidence and coefficients; where next to no noise is left, rounding counts as noise."""
    try:
        factor = cho_factor(covariance, lower=True, check_finite=False)
    except LinAlgError:
        rounding = ROUNDING * np.diag(covariance).max(initial=0.0)
        try:
            factor = cho_factor(covariance + rounding * np.eye(len(covariance)), lower=True)
        except (LinAlgError, ValueError):
            return -np.inf, np.zeros_like(observed)
    alpha = cho_solve(factor, observed, check_finite=False)
    half_log = np.log(np.diag(factor[0])).sum() * observed.shape[1]
    return float(-0.5 * np.sum(observed * alpha) - half_log), alpha


def _squared_distances(A: FloatArray, B: FloatArray) -> Singles:
    a, b = A.astype(np.float32), B.astype(np.float32)
    cross = a @ b.T
    return np.maximum((a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * cross, 0)


def _typical_distance(distances: Singles) -> float:
    """The median distance of points that differ; 1 where none do."""
    return float(np.sqrt(np.median(distances[distances > 0]))) if np.any(distances > 0) else 1.0


def _kernel(distances: Singles, length: float, family: str) -> Singles:
    if family == "rbf":
        return np.exp(distances * np.float32(-0.5 / length**2))
    scaled = np.sqrt(distances) * np.float32(np.sqrt(3) / length)
    return np.asarray((1 + scaled) * np.exp(-scaled))


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCounts:
    """Released counts, or differences of two counts, and the law of their noise.

    A cell's rows of one class are Poisson with some rate; a release adds noise of known law. Their sum has
    the characteristic function ``exp(rate (e^{iθ} - 1)) φ(θ)``, so a probability is one sum over
    frequencies, and a derivative by the rate multiplies the sum's terms by ``e^{iθ} - 1``. Compared with a
    normal law of the same variance this tells more where cells hold few rows: Laplace noise is peaked, and
    a class that is absent from a cell is nearly known to be.

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
        weights[[0, -1]] /= 2  # the ends of the half circle count once, the other frequencies twice
        powers = np.stack([np.ones_like(step), step, step**2], axis=1) * weights[:, None]
        density, first, second = (np.exp(exponent) @ powers).real.T
        # The exact law where it can be computed; elsewhere the normal one's.
        mean, spread = (rate, rate) if other is None else (rate - other, rate + other)
        spread = spread + self.variance
        off = self.observed - mean
        sound = density > LEAST
        safe = np.where(sound, density, 1.0)
        value = np.where(sound, np.log(safe), np.log(LEAST) - off**2 / (2 * spread))
        slope = np.where(sound, first / safe, off / spread)
        curvature = np.where(sound, slope**2 - second / safe, 0.0)
        return value, slope, np.maximum(curvature, 0.1 / spread)


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
    count : int
        Number of cells.
    """

    points: FloatArray
    groups: IntArray
    rates: FloatArray
    count: int

    @classmethod
    def spread(cls, points: FloatArray, groups: IntArray, count: int, rows: float) -> Cells:
        """So many rows, spread as the points are."""
        rates = np.full(len(groups), max(float(rows), 1.0) / len(groups))
        return cls(points=points, groups=groups, rates=rates, count=count)

    def times(self, ratio: FloatArray) -> Cells:
        """Each point stands for so many times its rows."""
        return replace(self, rates=self.rates * ratio)

    @property
    def design(self) -> csr_array:
        """Sums the points of each cell."""
        n = len(self.groups)
        return csr_array((np.ones(n), (self.groups, np.arange(n))), shape=(self.count, n))

    @property
    def averaging(self) -> csr_array:
        """Averages the points of each cell."""
        n, sizes = len(self.groups), np.maximum(np.bincount(self.groups, minlength=self.count), 1)
        return csr_array((1 / sizes[self.groups], (self.groups, np.arange(n))), shape=(self.count, n))

    def among(self, indices: IntArray) -> Cells:
        """Some of the points, standing for the rows of all points of their cell."""
        before = np.bincount(self.groups, self.rates, minlength=self.count)
        groups, rates = self.groups[indices], self.rates[indices]
        after = np.bincount(groups, rates, minlength=self.count)
        scaled = rates * (before / np.maximum(after, 1e-12))[groups]
        return Cells(points=self.points[indices], groups=groups, rates=scaled, count=self.count)


class _Basis:
    """Averages of the kernel of unit variance over cells, made orthonormal, and a constant."""

    def __init__(self, cells: Cells, family: str, length: float, coordinates: FloatArray | None) -> None:
        self.cells, self.family, self.length, self.coordinates = cells, family, length, coordinates
        averaging = cells.averaging
        crossed = averaging @ _kernel(_squared_distances(cells.points, cells.points), length, family)
        gram = np.asarray((averaging @ crossed.T), dtype=np.float64)
        self.factor = np.asarray(np.linalg.cholesky(gram + JITTER * np.eye(cells.count)), dtype=np.float64)
        self.values = solve_triangular(self.factor, crossed.astype(np.float64), lower=True).T

    def scale(self, variance: float) -> FloatArray:
        """Values at the points under a prior of this variance."""
        return np.hstack([np.sqrt(variance) * self.values, np.full((len(self.values), 1), ODDS_LEVEL)])

    def make_function(self, variance: float, weights: FloatArray, evidence: float) -> Smoothed:
        """The function with these coordinates, one column."""
        inner = solve_triangular(self.factor, weights[:-1], lower=True, trans="T") / np.sqrt(variance)
        return Smoothed(
            points=self.cells.points,
            coefficients=(self.cells.averaging.T @ inner)[:, None],
            level=ODDS_LEVEL * weights[-1:],
            family=self.family,
            length=self.length,
            variance=variance,
            evidence=evidence,
            coordinates=self.coordinates,
        )


def log_odds_of_counts(
    cells: Cells, counts: NoisyCounts, others: NoisyCounts, *, like: Smoothed, few: IntArray
) -> Smoothed:
    """Log-odds of a class from its counts and the others'; priors are compared on a ``few`` of the points."""

    def view(part: Cells) -> View:
        design = part.design

        def terms(f: FloatArray) -> Terms:
            p = expit(f)
            up, down = counts(design @ (part.rates * p)), others(design @ (part.rates * (1 - p)))
            value = float(up[0].sum() + down[0].sum())
            return value, up[1] - down[1], up[2] + down[2], part.rates * p * (1 - p)

        return terms

    return _choose_prior(cells, view, like=like, few=few)


def log_odds_of_differences(
    cells: Cells, differences: NoisyCounts, *, like: Smoothed, few: IntArray
) -> Smoothed:
    """Log-odds of a class from its counts less the others'."""

    def view(part: Cells) -> View:
        design = part.design

        def terms(f: FloatArray) -> Terms:
            p = expit(f)
            value, slope, curvature = differences(design @ (part.rates * p), design @ (part.rates * (1 - p)))
            return float(value.sum()), slope, curvature, part.rates * p * (1 - p)

        return terms

    return _choose_prior(cells, view, like=like, few=few)


def log_ratio(cells: Cells, totals: NoisyCounts, *, like: Smoothed, few: IntArray) -> Smoothed:
    """By how much, in logarithms, the rows that a point stands for differ from those of ``cells``."""
    part = cells.among(few)
    design = part.design

    def terms(f: FloatArray) -> Terms:
        rates = part.rates * ratio_of(f)
        value, slope, curvature = totals(design @ rates)
        return float(value.sum()), slope, curvature, rates

    typical = _typical_distance(_squared_distances(part.points, part.points))
    basis = _Basis(part, "rbf", typical, like.coordinates)
    modes = [(variance, *_find_mode(basis.scale(variance), design, terms)) for variance in RATIO_VARIANCES]
    return basis.make_function(*max(modes, key=lambda mode: mode[2]))


def ratio_of(logarithms: FloatArray) -> FloatArray:
    """Ratios, of at most `MOST_RATIO` in logarithms either way."""
    return np.asarray(np.exp(np.clip(logarithms, -MOST_RATIO, MOST_RATIO)))


def _choose_prior(cells: Cells, view: Callable[[Cells], View], *, like: Smoothed, few: IntArray) -> Smoothed:
    """Choose the likeliest prior by a few points, then find the mode through all of them."""
    part, best = cells.among(few), (-np.inf, 1.0, 1.0)
    for stretch in STRETCHES:
        basis = _Basis(part, like.family, stretch * like.length, like.coordinates)
        for variance in ODDS_VARIANCES:
            evidence = _find_mode(basis.scale(variance), part.design, view(part))[1]
            best = max(best, (evidence, stretch, variance))
    _, stretch, variance = best
    basis = _Basis(cells, like.family, stretch * like.length, like.coordinates)
    return basis.make_function(variance, *_find_mode(basis.scale(variance), cells.design, view(cells)))


def _find_mode(basis: FloatArray, design: csr_array, view: View) -> tuple[FloatArray, float]:
    """Find the most likely coordinates under a standard normal prior, and Laplace's evidence."""
    weights = np.zeros(basis.shape[1])
    terms = view(basis @ weights)
    for _ in range(MOST_STEPS):
        _, slope, curvature, by_point = terms
        change = design @ (by_point[:, None] * basis)
        factor = cho_factor(np.eye(len(weights)) + change.T @ (curvature[:, None] * change), lower=True)
        step = cho_solve(factor, change.T @ slope - weights)
        before = terms[0] - float(weights @ weights) / 2
        # As much of Newton's step as gains, halved at most ten times.
        for halvings in range(10):
            candidate = weights + step / 2**halvings
            terms = view(basis @ candidate)
            gain = float(terms[0] - candidate @ candidate / 2 - before)
            if gain > 0:
                weights = candidate
                break
        else:
            terms, gain = view(basis @ weights), 0.0
        if gain < SETTLED:
            break
    return weights, float(terms[0] - weights @ weights / 2 - np.log(np.diag(factor[0])).sum())


__all__ = [
    "Cells",
    "NoisyCounts",
    "Smoothed",
    "log_odds_of_counts",
    "log_odds_of_differences",
    "log_ratio",
    "ratio_of",
    "representatives",
    "smooth",
    "transform",
]
