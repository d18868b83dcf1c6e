"""One k-medoids problem with caps, and where its distances come from: one matrix, or the points themselves.

Both forms answer the same three questions: how far all points are from one candidate,
what candidates would save as one more centre, and what their best swaps would change.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.methods.clustering.learner.solver import kernels

Floats = npt.NDArray[Any]

EXACT = 4096
"""Up to so many points distances are float64, above float32."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """The points grouped by their nearest centre, with their nearest and second nearest distance.

    ``groups[c]`` is where the points of centre c begin in ``order``; the last
    group's nearest is its cap.
    """

    order: IntArray
    groups: IntArray
    near: Floats
    second: Floats
    weights: Floats


class Problem(ABC):
    """Points, what each pays at most, how much it counts, and which may become centres.

    Parameters
    ----------
    points : array of shape (n, d)
        Of a size near 1, so that float32 holds their distances.
    caps : array of shape (n,)
        Finite: at most a bound of all distances.
    weights : array of shape (n,)
    candidates : array of shape (m,)
        Indices of points.
    """

    def __init__(
        self, points: FloatArray, caps: FloatArray, weights: FloatArray, candidates: IntArray
    ) -> None:
        dtype = np.float64 if len(points) <= EXACT else np.float32
        n, width = points.shape
        self.rows: Floats = np.zeros((n, width + -width % 4), dtype=dtype)  # kernels take four axes at a time
        self.rows[:, :width] = points
        self.axes: Floats = np.ascontiguousarray(self.rows.T)
        self.caps: Floats = caps.astype(dtype)
        self.weights: Floats = weights.astype(dtype)
        self.candidates = candidates
        self.order: IntArray = np.arange(n)
        self._pool = ThreadPoolExecutor(_cores())

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the distances."""
        return self.rows.dtype

    def split(self, length: int, block: int, work: Callable[[int, int], object]) -> None:
        """Run ``work(start, stop)`` over blocks of a range, on every core that the process may use.

        Plain threads around compiled code that releases the lock: unlike numba's
        own, several solvers may use them at once, and a forked process too.
        """
        starts = range(0, length, block)
        if len(starts) > 1:
            list(self._pool.map(lambda start: work(start, min(start + block, length)), starts))
        else:
            work(0, length)

    @abstractmethod
    def column(self, candidate: int) -> Floats:
        """Distances of all points to one candidate."""

    @abstractmethod
    def gains(self, wanted: IntArray, near: Floats) -> FloatArray:
        """What each wanted candidate would save as one more centre, if the points pay ``near`` now."""

    @abstractmethod
    def changes(self, wanted: IntArray, ranking: Ranking) -> FloatArray:
        """What the best swap of each wanted candidate would change; negative is better."""


class MatrixProblem(Problem):
    """All distances are made once: n by n of them."""

    def __init__(
        self, points: FloatArray, caps: FloatArray, weights: FloatArray, candidates: IntArray
    ) -> None:
        super().__init__(points, caps, weights, candidates)
        n = len(self)
        self._matrix: Floats = np.empty((n, n), dtype=self.dtype)
        self.split(n, 256, lambda a, b: kernels.fill(self.axes, self.rows[a:b], self._matrix[a:b]))

    def column(self, candidate: int) -> Floats:
        row: Floats = self._matrix[candidate]  # a row is read in order, and uncapped distances are symmetric
        return row

    def gains(self, wanted: IntArray, near: Floats) -> FloatArray:
        found = np.empty(len(wanted))

        def part(a: int, b: int) -> None:
            kernels.matrix_gains(self._matrix, wanted[a:b], near, self.weights, found[a:b])

        self.split(len(wanted), 256, part)
        return found

    def changes(self, wanted: IntArray, ranking: Ranking) -> FloatArray:
        few, r = 8 * len(wanted) < len(self), ranking
        matrix = self._matrix.take(wanted, axis=1) if few else self._matrix
        found = np.empty(matrix.shape[1])

        def part(a: int, b: int) -> None:
            kernels.matrix_changes(matrix, a, r.order, r.groups, r.near, r.second, r.weights, found[a:b])

        self.split(len(found), 2500, part)
        return found if few else found[wanted]


class GivenProblem(MatrixProblem):
    """Distances are given: a symmetric matrix, of any unit; every point counts alike and may be chosen."""

    def __init__(self, distances: FloatArray, caps: FloatArray) -> None:
        n, unit = len(distances), float(distances.max()) or 1.0
        limits = np.minimum(caps / unit, 1.0 + 1e-5)
        Problem.__init__(self, np.zeros((n, 1)), limits, np.ones(n), np.arange(n))
        self._matrix = np.ascontiguousarray(distances / unit, dtype=self.dtype)


class PointProblem(Problem):
    """Distances are made when they are needed, in memory that grows like n.

    Points are looked at in the order of a tree's leaves, in runs, each within a
    ball; runs that a candidate cannot serve are passed over.
    """

    def __init__(
        self, points: FloatArray, caps: FloatArray, weights: FloatArray, candidates: IntArray
    ) -> None:
        super().__init__(points, caps, weights, candidates)
        self.order = _leaf_order(points)
        self._sorted_axes = np.ascontiguousarray(self.axes[:, self.order])
        self._runs = np.append(np.arange(0, len(self), kernels.RUN), len(self))
        self._ball_axes, self._radii = self._balls(self.rows[self.order], self._runs)

    def column(self, candidate: int) -> Floats:
        found = np.empty((1, len(self)), dtype=self.dtype)
        kernels.fill(self.axes, self.rows[candidate : candidate + 1], found)
        row: Floats = found[0]
        return row

    def gains(self, wanted: IntArray, near: Floats) -> FloatArray:
        found, points = np.empty(len(wanted)), self.rows[wanted]
        near, weights = near[self.order], self.weights[self.order]
        balls = self._ball_axes, self._radii + np.maximum.reduceat(near, self._runs[:-1])

        def part(a: int, b: int) -> None:
            kernels.point_gains(self._sorted_axes, self._runs, *balls, points[a:b], near, weights, found[a:b])

        self.split(len(wanted), 64, part)
        return found

    def changes(self, wanted: IntArray, ranking: Ranking) -> FloatArray:
        found, r = np.empty(len(wanted)), ranking
        rows, (runs, closes) = self.rows[r.order], _runs(r.groups)
        highest, losses = np.empty(len(closes)), np.empty(len(closes))
        kernels.run_bounds(runs, r.near, r.second, r.weights, highest, losses)
        ball_axes, radii = self._balls(rows, runs)
        runs_of = rows, runs, closes, ball_axes, radii + highest, losses
        by_leaf = np.argsort(np.argsort(self.order)[wanted])

        def part(a: int, b: int) -> None:
            block = by_leaf[a:b]
            axes, changes = np.ascontiguousarray(self.axes[:, wanted[block]]), np.empty(len(block))
            kernels.point_changes(axes, *runs_of, r.near, r.second, r.weights, changes)
            found[block] = changes

        self.split(len(wanted), 256, part)
        return found

    def _balls(self, rows: Floats, runs: IntArray) -> tuple[Floats, FloatArray]:
        """Middles of the runs, axis by axis, and radii with some slack for rounding."""
        middles, radii = np.zeros((len(runs) - 1, rows.shape[1]), dtype=self.dtype), np.empty(len(runs) - 1)
        kernels.balls(rows, runs, middles, radii)
        return np.ascontiguousarray(middles.T), radii + 64 * float(np.finfo(self.dtype).eps)


def _leaf_order(points: FloatArray) -> IntArray:
    from scipy.spatial import cKDTree

    tree = cKDTree(points, leafsize=32, balanced_tree=False)  # splits at gaps, so that leaves are narrow
    return np.asarray(tree.indices, dtype=np.int64)


def _runs(groups: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Cut groups into runs, at least one each, and mark the last run of each group that has a centre."""
    pieces = np.maximum(-(-np.diff(groups) // kernels.RUN), 1)
    ends = np.cumsum(pieces)
    group = np.repeat(np.arange(len(pieces)), pieces)
    starts = groups[group] + kernels.RUN * (np.arange(ends[-1]) - (ends - pieces)[group])
    closes = np.zeros(ends[-1], dtype=np.bool_)
    closes[ends[:-1] - 1] = True
    return np.append(starts, groups[-1]), closes


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


__all__ = [
    "FloatArray",
    "Floats",
    "GivenProblem",
    "IntArray",
    "MatrixProblem",
    "PointProblem",
    "Problem",
    "Ranking",
]
