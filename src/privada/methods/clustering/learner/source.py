"""What a release says of the source: one sanitised source, or draws of plausible ones. All post-processing.

*Sanitised.* Cells and shells whose noisy count passes a public threshold become points, each
projected into its ball or shell and onto the public ball.

*Thresholds.* An empty cell passes its threshold with probability at most γ over the number of
cells, so that with probability 1 - γ no empty cell passes. privacy.md, section 1 (c), gives
``b ln(N/(2γ))`` for continuous Laplace noise and ``σ Φ⁻¹(1 - γ/N)`` for Gaussian noise. Noise on a
lattice has heavier tails by up to one step, and the bounds here are for the lattice:

* discrete Laplace of b steps: ``P(Z >= h) = exp(-h/b) / (1 + exp(-1/b))`` exactly;
* discrete Gaussian: ``P(Z >= h) <= P(N(0, σ²) >= h - 1)`` in steps (Canonne, Kamath and Steinke 2020);
* K-norm cylinder: the count's noise is a Gamma(d + 2) length times a uniform number, so
  ``P(Z >= h) = (Q(d + 2, εh) - εh/(d + 1) Q(d + 1, εh)) / 2``, Q the upper regularised Gamma function.

*Plausible.* A sanitised source is one guess. A choice of centres that is good on average over many plausible
sources is better than one that trusts a single guess, and a count that may be mere noise then appears in some
draws only. Both posteriors are empirical Bayes: how much of the space is empty is read off the release.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import BoolArray, FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.clustering.questions.means import NearestMeans, NeighbourAverages, SourceRadius
from privada.methods.clustering.questions.multiscale import GridPyramid, LocalMeans
from privada.parties.protocol import only_releases
from privada.privacy.bounds import Ball
from privada.privacy.mechanism import Gaussian, KNormCylinder, Laplace, Lattice, Mechanism
from privada.privacy.release import Question, Release

GAMMA = 0.05
MOST_IN_A_CELL = 64  # more points hardly bring the nearest one nearer
MOST_IN_A_SHELL = 200
LEAST_MEAN = 2.0  # of the rows in a cell that is not empty


@dataclass(frozen=True, kw_only=True, eq=False)
class SanitisedSource:
    """Points that stand for a private source.

    Attributes
    ----------
    points : array of shape (points, features)
        Sanitised source points, in the public ball.
    weights : array of shape (points,)
        Noisy number of source rows behind each (of `NeighbourAverages`: t).
    cells : array of shape (points,)
        Index of the target or coreset point that each belongs to.
    release : Release
        The release that all of it was made from.
    """

    points: FloatArray
    weights: FloatArray
    cells: IntArray
    release: Release

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusEstimate:
    """An estimate of Δᵗ(S), and how high it may be.

    Attributes
    ----------
    value : float
        As released: unbiased up to the grid, so it may be negative.
    """

    value: float
    per_total: float
    mechanism: Lattice
    release: Release

    def upper(self, confidence: float = 0.95) -> float:
        """A bound that Δᵗ(S) of the clipped source stays below with this confidence."""
        # Half of what a two-sided interval misses is of one sign; truncation took a step at most.
        both = max(2 * _check.probability(confidence=confidence) - 1, 1e-12)
        noise = self.mechanism.half_width(both) * self.per_total
        return max(0.0, self.value + noise + self.mechanism.grid.step)


def sanitise(question: Question, release: Release, *, gamma: float = GAMMA) -> SanitisedSource:
    """Read a release as a sanitised source.

    Parameters
    ----------
    question : NearestMeans, LocalMeans or NeighbourAverages
    release : Release
        Its answer.
    gamma : float, default=0.05
        Probability that any empty cell or shell passes for one with rows.

    Privacy
    -------
    Post-processing: thresholds, projections and spreads use the release and public parameters only.
    """
    _check_answer(question, release)
    return _read(question, release, gamma)


def estimate_radius(question: SourceRadius, release: Release) -> RadiusEstimate:
    """Read a release as an estimate of Δᵗ(S)."""
    _check_answer(question, release)
    per_total = 1 / (len(question.targets) * question.t)
    value = float(release["total"][0]) * per_total
    mechanism = question.plan.lattice("total")
    return RadiusEstimate(value=value, per_total=per_total, mechanism=mechanism, release=release)


def _check_answer(question: Question, release: Release) -> None:
    only_releases(release)
    if release.question != question.digest:
        raise InputError("Expected the release that answers this question; it answers another one.")


@singledispatch
def _read(question: Question, release: Release, gamma: float) -> SanitisedSource:  # noqa: ARG001
    raise InputError(f"A {type(question).__name__} does not ask for a sanitised source.")


@_read.register
def _(question: NearestMeans, release: Release, gamma: float) -> SanitisedSource:
    counts, sums = question.estimates(release)
    at = np.flatnonzero(counts >= count_threshold(question, gamma=gamma))
    means = Ball(radius=question.radius).clip(sums[at] / counts[at, None])
    return SanitisedSource(
        points=Ball(radius=question.ball).clip(question.origins[at] + means),
        weights=counts[at],
        cells=at.astype(np.int64),
        release=release,
    )


@_read.register
def _(question: LocalMeans, release: Release, gamma: float) -> SanitisedSource:
    cells, shells = np.nonzero(release["counts"] >= count_threshold(question, gamma=gamma))
    counts = release["counts"][cells, shells]
    outer = question.shells[shells]
    means = Ball(radius=1.0).clip(release["sums"][cells, shells] / counts[:, None])
    return SanitisedSource(
        points=Ball(radius=question.domain).clip(question.cells[cells] + outer[:, None] * means),
        weights=counts,
        cells=cells.astype(np.int64),
        release=release,
    )


@_read.register
def _(question: NeighbourAverages, release: Release, gamma: float) -> SanitisedSource:  # noqa: ARG001
    n = len(question.targets)
    return SanitisedSource(
        points=Ball(radius=question.radius).clip(release["sums"] / question.t),
        weights=np.full(n, float(question.t)),
        cells=np.arange(n),
        release=release,
    )


def count_threshold(question: NearestMeans | LocalMeans, *, gamma: float = GAMMA) -> float:
    """The noisy count from which a cell or shell is believed: at least 1, the same for all."""
    if isinstance(question, LocalMeans):
        draw, cells, moves, width = question.plan.draws["counts"], question.n_shells, 1, question.width
    else:
        table = question.noise == "k-norm"
        draw = question.plan.draws["table" if table else "counts"]
        cells, width = question.cells.shape
        moves = question.moves if table else 1
    return max(1.0, moves * threshold(draw, cells=cells, gamma=gamma, width=width))


@singledispatch
def threshold(mechanism: Mechanism, *, cells: int, gamma: float, width: int) -> float:
    """The least value that the noise of ``cells`` empty cells all stays below, but for probability ``gamma``.

    ``width`` is the number of features, on which K-norm noise depends.

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

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-12, rtol=1e-12)) / mechanism.budget


class Posterior(ABC):
    """Plausible sources, given a release."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One synthetic source."""


@dataclass(frozen=True)
class Fixed(Posterior):
    """A sanitised source without any doubt about it."""

    points: FloatArray

    def draw(self, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002 - always the same source
        return self.points


def posterior(question: Question, release: Release, target: FloatArray) -> Posterior:
    """Plausible sources, given the answer to any question of clustering."""
    only_releases(release)
    if isinstance(question, GridPyramid):
        return PyramidPosterior(question, release)
    if isinstance(question, LocalMeans):
        return LocalPosterior(question, release, target)
    return Fixed(sanitise(question, release).points)


def noise_density(values: FloatArray, noise: Lattice, variance: FloatArray | float) -> FloatArray:
    """Density of the noise at an observed count, if the cell were empty.

    A count below zero can only be noise, so the density is kept from falling there.
    """
    deviation = np.sqrt(variance)
    above = np.maximum(values, 0.0) / deviation
    if isinstance(noise, Laplace):
        return np.asarray(np.exp(-math.sqrt(2) * above) / (math.sqrt(2) * deviation), dtype=np.float64)
    return np.asarray(np.exp(-(above**2) / 2) / (math.sqrt(2 * math.pi) * deviation), dtype=np.float64)


class PyramidPosterior(Posterior):
    """Counts of nested grids, fused bottom-up and drawn top-down.

    Each node's measurements (its own count, if its level was asked for, and the
    sum of its children's) are averaged by their variances; then, from the root
    down, a node's rows are shared out: a child that is no likelier than noise is
    empty in some draws. The odds of a child of a node with m rows are those of a
    count uniform on [0, m] against noise alone.
    """

    def __init__(self, question: GridPyramid, release: Release) -> None:
        self._question = question
        self._noise = question.noise
        counts, finest = question.counts(release), max(question.levels)
        levels = [(counts[finest], self._noise.variance)]
        for level in range(finest - 1, -1, -1):
            below, variance = levels[-1]
            estimate, variance = sum_children(below), variance * 2**question.width
            if level in counts:
                own = self._noise.variance
                weight = variance / (own + variance)
                estimate = weight * counts[level] + (1 - weight) * estimate
                variance = own * variance / (own + variance)
            levels.append((estimate, variance))
        self._levels = levels[::-1]  # estimate and variance of every level, from the root to the finest

    def draw(self, rng: np.random.Generator) -> FloatArray:
        rows = np.maximum(self._levels[0][0], 0.0)
        for estimate, variance in self._levels[1:]:
            # Each node's rows are shared out to its children, which are first moved alike to sum to them.
            above = repeat_children(rows)
            siblings = repeat_children(sum_children(estimate))
            consistent = estimate + (above - siblings) / 2**self._question.width
            odds = np.maximum(above, 1.0) * noise_density(consistent, self._noise, variance)
            occupied = (rng.uniform(size=odds.shape) < 1 / (1 + odds)) & (above > 0)
            # A node with rows has at least one child with rows: the likeliest, if no other was drawn.
            empty = repeat_children((sum_children(occupied) == 0) & (rows > 0))
            occupied |= mark_likeliest(consistent) & empty
            mass = np.where(occupied, np.maximum(consistent, 0.5), 0.0)
            total = sum_children(mass)
            shares = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
            rows = np.asarray(mass * repeat_children(shares))
        # Points are drawn uniformly in the finest cells.
        sizes = np.maximum(rng.poisson(rows), rows >= 0.5)
        cells = np.argwhere(sizes > 0)
        repeats = np.minimum(sizes[sizes > 0], MOST_IN_A_CELL).astype(np.int64)
        corners = np.repeat(cells, repeats, axis=0)
        side = 2 * self._question.domain / rows.shape[0]
        points = (corners + rng.uniform(size=corners.shape)) * side - self._question.domain
        return np.asarray(points, dtype=np.float64)


def sum_children(cube: npt.NDArray[Any]) -> FloatArray:
    """Sums over each node's children."""
    split = [length for side in cube.shape for length in (side // 2, 2)]
    return np.asarray(cube.reshape(split).sum(axis=tuple(range(1, 2 * cube.ndim, 2))), dtype=np.float64)


def repeat_children(cube: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Each node's value at all its children."""
    for axis in range(cube.ndim):
        cube = np.repeat(cube, 2, axis=axis)
    return cube


def mark_likeliest(cube: FloatArray) -> BoolArray:
    """Each node's child of the largest value, the first on ties."""
    width, half = cube.ndim, cube.shape[0] // 2
    # Each axis becomes (node, child); nodes go first, so that a node's children are one row of a matrix.
    order = [*range(0, 2 * width, 2), *range(1, 2 * width, 2)]
    split = cube.reshape([length for _ in range(width) for length in (half, 2)]).transpose(order)
    blocks = split.reshape((half,) * width + (-1,))
    best = np.zeros_like(blocks, dtype=np.bool_)
    np.put_along_axis(best, blocks.argmax(axis=-1)[..., None], True, axis=-1)
    back = best.reshape(split.shape).transpose(np.argsort(order))
    return np.asarray(back.reshape(cube.shape), dtype=np.bool_)


class LocalPosterior(Posterior):
    """Shells around public cells: which hold rows, and where in them.

    Counts are a mixture of noise and of exponential counts, fitted by
    expectation-maximisation over all shells. Rows of a shell are drawn around
    its noisy mean, shrunk toward the cell as far as the noise says, and spread
    like the public target around that cell, at the shell's distances; with pooled
    second moments, half like the target and half as these say.
    """

    def __init__(self, question: LocalMeans, release: Release, target: FloatArray) -> None:
        self._question = question
        counts, sums = question.plan.lattice("counts"), question.plan.lattice("sums")
        self._counts = np.asarray(release["counts"], dtype=np.float64)
        self._occupied = estimate_occupied(self._counts, counts)
        # Means of the shells, in domain units, shrunk by the positive-part rule of James and Stein.
        size = np.maximum(self._counts, 1.0)[..., None]
        means = np.asarray(release["sums"]) / size
        length = np.sum(means**2, axis=-1, keepdims=True)
        noise = question.width * sums.variance / size**2
        shrinkage = np.clip(1 - noise / np.maximum(length, 1e-12), 0.0, 1.0)
        self._means = np.asarray(
            Ball(radius=1.0).clip(means * shrinkage) * question.shells[:, None], dtype=np.float64
        )
        spread = _estimate_spread(question.cells, target)[:, None]
        if question.moments == "pooled":
            spread = (spread + self._pooled_spread(np.asarray(release["moments"]))) / 2
        self._roots = np.linalg.cholesky(np.broadcast_to(spread, (*self._counts.shape, *spread.shape[2:])))

    def _pooled_spread(self, moments: FloatArray) -> FloatArray:
        """For each shell, the covariance of its rows around the means of their cells, of trace one."""
        means = self._means / self._question.shells[:, None]
        size = np.maximum(self._counts, 0.0) * self._occupied
        between = np.einsum("csi,csj,cs->sij", means, means, size)
        values, vectors = np.linalg.eigh(unpack_triangles(moments, self._question.width) - between)
        # Noise can make eigenvalues negative: they are raised to a thousandth of the largest one.
        values = np.maximum(values, 1e-3 * np.maximum(values[:, -1:], 1e-9))
        values /= values.sum(axis=1, keepdims=True)
        return np.asarray(vectors * values[:, None, :] @ vectors.transpose(0, 2, 1), dtype=np.float64)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        occupied = rng.uniform(size=self._occupied.shape) < self._occupied
        sizes = np.where(occupied, np.clip(np.round(self._counts), 1, MOST_IN_A_SHELL), 0).astype(np.int64)
        cells, shells = np.nonzero(sizes)
        repeats = sizes[cells, shells]
        cells, shells = np.repeat(cells, repeats), np.repeat(shells, repeats)
        # A point lies at a random radius of its shell; what its mean leaves of it has a random direction.
        outer = self._question.shells
        inner = np.concatenate([[0.0], outer[:-1]])
        radii = inner[shells] + (outer - inner)[shells] * np.sqrt(rng.uniform(size=len(shells)))
        means = self._means[cells, shells]
        rest = np.sqrt(np.maximum(radii**2 - np.sum(means**2, axis=1), 0.0))
        noise = rng.normal(size=means.shape)
        around = np.einsum("nij,nj->ni", self._roots[cells, shells], noise) * rest[:, None]
        points = self._question.cells[cells] + means + around
        return Ball(radius=self._question.domain).clip(points)


def estimate_occupied(counts: FloatArray, noise: Lattice, *, rounds: int = 60) -> FloatArray:
    """Probability that each cell holds a row at all, by empirical Bayes."""
    empty = noise_density(counts, noise, noise.variance)
    above = np.maximum(counts, 0.0)
    share, mean = 0.3, max(LEAST_MEAN, float(above.mean()))
    occupied = np.full(counts.shape, share)
    for _ in range(rounds):
        full = np.where(counts > 0, np.exp(-above / mean) / mean, 0.2 * empty)
        occupied = share * full / (share * full + (1 - share) * empty)
        share = float(np.clip(occupied.mean(), 0.5 / occupied.size, 0.99))
        mean = max(LEAST_MEAN, float((occupied * above).sum() / max(occupied.sum(), 1e-12)))
    return np.asarray(occupied, dtype=np.float64)


def _estimate_spread(cells: FloatArray, target: FloatArray) -> FloatArray:
    """For each cell, its target points' covariance, nearly, of trace one."""
    width = cells.shape[1]
    nearest = NearestCells(centers=cells).assign(target)
    spread = np.empty((len(cells), width, width))
    for cell in range(len(cells)):
        gaps = target[nearest == cell] - cells[cell]
        covariance = gaps.T @ gaps + 1e-9 * np.eye(width)
        spread[cell] = 0.9 * covariance / np.trace(covariance) + 0.1 * np.eye(width) / width
    return spread


def unpack_triangles(packed: FloatArray, d: int) -> FloatArray:
    """Symmetric matrices from triangles whose off-diagonal entries were multiplied by √2.

    >>> unpack_triangles(np.array([1.0, 2**0.5, 3.0]), 2).round(6).tolist()
    [[1.0, 1.0], [1.0, 3.0]]
    """
    rows, columns = np.triu_indices(d)
    values = packed / np.where(rows == columns, 1.0, np.sqrt(2.0))
    matrices = np.zeros((*packed.shape[:-1], d, d))
    matrices[..., rows, columns] = values
    matrices[..., columns, rows] = values
    return matrices


__all__ = [
    "Fixed",
    "LocalPosterior",
    "PyramidPosterior",
    "RadiusEstimate",
    "SanitisedSource",
    "count_threshold",
    "estimate_radius",
    "posterior",
    "sanitise",
]
