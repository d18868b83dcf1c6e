"""What a release says of the source: draws of whole synthetic sources. All post-processing.

A sanitised source is one guess. A choice of centres that is good on average
over many plausible sources is better than one that trusts a single guess, and
a count that may be mere noise then appears in some draws only. Both posteriors
here are empirical Bayes: how much of the space is empty is read off the release.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.methods.clustering.questions.local import LocalMeans
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.privacy.bounds import Ball
from privada.privacy.mechanism import Laplace, Lattice
from privada.privacy.release import Release

MOST_IN_A_CELL = 64  # more points hardly bring the nearest one nearer
MOST_IN_A_SHELL = 200
LEAST_MEAN = 2.0  # of the rows in a cell that is not empty


class Posterior(ABC):
    """Plausible sources, given a release."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One synthetic source."""


@dataclass(frozen=True)
class Fixed(Posterior):
    """A sanitised source without any doubt about it."""

    points: FloatArray

    def draw(self, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002 - nothing is left to chance
        return self.points


def noise_density(values: FloatArray, noise: Lattice, variance: FloatArray | float) -> FloatArray:
    """Density of the noise at an observed count, if the cell were empty.

    A count below zero can only be noise, so the density is kept from falling there.
    """
    deviation = np.sqrt(variance)
    above = np.maximum(values, 0.0) / deviation
    if isinstance(noise, Laplace):
        found = np.exp(-math.sqrt(2) * above) / (math.sqrt(2) * deviation)
    else:
        found = np.exp(-(above**2) / 2) / (math.sqrt(2 * math.pi) * deviation)
    return np.asarray(found, dtype=np.float64)


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
        self._levels = self._fuse(question.counts(release))

    def _fuse(self, counts: dict[int, FloatArray]) -> list[tuple[FloatArray, float]]:
        """Estimate and variance of every level, from the root to the finest."""
        finest = max(counts)
        found = [(counts[finest], self._noise.variance)]
        for level in range(finest - 1, -1, -1):
            below, variance = found[-1]
            estimate, variance = _sum_children(below), variance * 2**self._question.width
            if level in counts:
                own = self._noise.variance
                weight = variance / (own + variance)
                estimate = weight * counts[level] + (1 - weight) * estimate
                variance = own * variance / (own + variance)
            found.append((estimate, variance))
        return found[::-1]

    def draw(self, rng: np.random.Generator) -> FloatArray:
        rows = np.maximum(self._levels[0][0], 0.0)
        for estimate, variance in self._levels[1:]:
            rows = self._share_out(rows, estimate, variance, rng)
        return self._place_points(rows, rng)

    def _share_out(
        self, rows: FloatArray, estimate: FloatArray, variance: float, rng: np.random.Generator
    ) -> FloatArray:
        """Share each node's rows out to its children."""
        above = _repeat_children(rows)
        consistent = estimate + (above - _repeat_children(_sum_children(estimate))) / 2**self._question.width
        odds = np.maximum(above, 1.0) * noise_density(consistent, self._noise, variance)
        there = (rng.uniform(size=odds.shape) < 1 / (1 + odds)) & (above > 0)
        there |= _mark_likeliest(consistent) & _repeat_children((_sum_children(there) == 0) & (rows > 0))
        mass = np.where(there, np.maximum(consistent, 0.5), 0.0)
        total = _sum_children(mass)
        share: FloatArray = mass * _repeat_children(
            np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
        )
        return share

    def _place_points(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Points drawn uniformly in the finest cells."""
        sizes = np.maximum(rng.poisson(rows), rows >= 0.5)
        cells = np.argwhere(sizes > 0)
        repeats = np.minimum(sizes[sizes > 0], MOST_IN_A_CELL).astype(np.int64)
        corners = np.repeat(cells, repeats, axis=0)
        side = 2 * self._question.domain / rows.shape[0]
        points = (corners + rng.uniform(size=corners.shape)) * side - self._question.domain
        return np.asarray(points, dtype=np.float64)


def _sum_children(cube: npt.NDArray[Any]) -> FloatArray:
    """Sums over each node's children."""
    split = [length for side in cube.shape for length in (side // 2, 2)]
    return np.asarray(cube.reshape(split).sum(axis=tuple(range(1, 2 * cube.ndim, 2))), dtype=np.float64)


def _repeat_children(cube: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Each node's value at all its children."""
    for axis in range(cube.ndim):
        cube = np.repeat(cube, 2, axis=axis)
    return cube


def _mark_likeliest(cube: FloatArray) -> npt.NDArray[np.bool_]:
    """Each node's child of the largest value, the first on ties."""
    width, half = cube.ndim, cube.shape[0] // 2
    split = cube.reshape([length for _ in range(width) for length in (half, 2)])
    order = [*range(0, 2 * width, 2), *range(1, 2 * width, 2)]
    blocks = split.transpose(order).reshape((half,) * width + (-1,))
    best = np.zeros_like(blocks, dtype=np.bool_)
    np.put_along_axis(best, blocks.argmax(axis=-1)[..., None], True, axis=-1)
    back = best.reshape((half,) * width + (2,) * width).transpose(np.argsort(order))
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
        self._means = self._shrink_means(np.asarray(release["sums"]), sums.variance)
        spread = _public_spread(question.cells, target)[:, None]
        if question.moments == "pooled":
            spread = (spread + self._pooled_spread(np.asarray(release["moments"]))) / 2
        self._roots = np.linalg.cholesky(np.broadcast_to(spread, (*self._counts.shape, *spread.shape[2:])))

    def _pooled_spread(self, moments: FloatArray) -> FloatArray:
        """For each shell, the covariance of its rows around the means of their cells, of trace one."""
        means = self._means / self._question.shells[:, None]
        size = np.maximum(self._counts, 0.0) * self._occupied
        between = np.einsum("csi,csj,cs->sij", means, means, size)
        values, vectors = np.linalg.eigh(unpack_triangles(moments, self._question.width) - between)
        values = np.maximum(values, 1e-3 * np.maximum(values[:, -1:], 1e-9))
        values /= values.sum(axis=1, keepdims=True)
        return np.asarray(vectors * values[:, None, :] @ vectors.transpose(0, 2, 1), dtype=np.float64)

    def _shrink_means(self, sums: FloatArray, variance: float) -> FloatArray:
        """Means of the shells, in domain units, by the positive-part rule of James and Stein."""
        size = np.maximum(self._counts, 1.0)[..., None]
        means = sums / size
        length = np.sum(means**2, axis=-1, keepdims=True)
        noise = self._question.width * variance / size**2
        kept = np.clip(1 - noise / np.maximum(length, 1e-12), 0.0, 1.0)
        return np.asarray(
            Ball(radius=1.0).clip(means * kept) * self._question.shells[:, None], dtype=np.float64
        )

    def draw(self, rng: np.random.Generator) -> FloatArray:
        there = rng.uniform(size=self._occupied.shape) < self._occupied
        sizes = np.where(there, np.clip(np.round(self._counts), 1, MOST_IN_A_SHELL), 0).astype(np.int64)
        cells, shells = np.nonzero(sizes)
        repeats = sizes[cells, shells]
        cells, shells = np.repeat(cells, repeats), np.repeat(shells, repeats)
        means, radii = self._means[cells, shells], self._radii(shells, rng)
        left = np.sqrt(np.maximum(radii**2 - np.sum(means**2, axis=1), 0.0))
        noise = rng.normal(size=means.shape)
        around = np.einsum("nij,nj->ni", self._roots[cells, shells], noise) * left[:, None]
        points = self._question.cells[cells] + means + around
        return Ball(radius=self._question.domain).clip(points)

    def _radii(self, shells: npt.NDArray[np.int64], rng: np.random.Generator) -> FloatArray:
        outer = self._question.shells
        inner = np.concatenate([[0.0], outer[:-1]])
        part = np.sqrt(rng.uniform(size=len(shells)))
        return np.asarray(inner[shells] + (outer - inner)[shells] * part, dtype=np.float64)


def estimate_occupied(counts: FloatArray, noise: Lattice, *, rounds: int = 60) -> FloatArray:
    """Probability that each cell holds a row at all, by empirical Bayes."""
    empty = noise_density(counts, noise, noise.variance)
    above = np.maximum(counts, 0.0)
    share, mean = 0.3, max(LEAST_MEAN, float(above.mean()))
    found = np.full(counts.shape, share)
    for _ in range(rounds):
        full = np.where(counts > 0, np.exp(-above / mean) / mean, 0.2 * empty)
        found = share * full / (share * full + (1 - share) * empty)
        share = float(np.clip(found.mean(), 0.5 / found.size, 0.99))
        mean = max(LEAST_MEAN, float((found * above).sum() / max(found.sum(), 1e-12)))
    return np.asarray(found, dtype=np.float64)


def _public_spread(cells: FloatArray, target: FloatArray) -> FloatArray:
    """For each cell, its target points' covariance, nearly, of trace one."""
    from privada.methods.cells.questions.partition import NearestCells

    width = cells.shape[1]
    mine = NearestCells(centers=cells).assign(target)
    found = np.empty((len(cells), width, width))
    for cell in range(len(cells)):
        seen = target[mine == cell] - cells[cell]
        covariance = seen.T @ seen + 1e-9 * np.eye(width)
        found[cell] = 0.9 * covariance / np.trace(covariance) + 0.1 * np.eye(width) / width
    return found


def unpack_triangles(packed: FloatArray, d: int) -> FloatArray:
    """Symmetric matrices from triangles whose off-diagonal entries were multiplied by √2.

    >>> unpack_triangles(np.array([1.0, 2**0.5, 3.0]), 2).round(6).tolist()
    [[1.0, 1.0], [1.0, 3.0]]
    """
    rows, columns = np.triu_indices(d)
    values = packed / np.where(rows == columns, 1.0, np.sqrt(2.0))
    whole = np.zeros((*packed.shape[:-1], d, d))
    whole[..., rows, columns] = values
    whole[..., columns, rows] = values
    return whole


__all__ = [
    "Fixed",
    "LocalPosterior",
    "Posterior",
    "PyramidPosterior",
    "estimate_occupied",
    "unpack_triangles",
]
