"""Where the solver's distances come from: one matrix, or the points themselves.

Both answer the same three questions: how far all points are from one candidate,
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

from privada.methods.clustering import _kernels

Floats = npt.NDArray[Any]
Float64s = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT = 4096
"""Up to so many points distances are float64, above float32."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """The points grouped by their nearest centre, with their nearest and second nearest distance.

    ``groups[c]`` is where the points of centre c begin in ``order``; the last
    group's nearest is its cap.
    """

    order: Ints
    groups: Ints
    near: Floats
    second: Floats
    weights: Floats


class Distances(ABC):
    """Distances between points, any of which may become a centre.

    Parameters
    ----------
    points : array of shape (n, d)
        Of a size near 1, so that float32 holds their distances.
    """

    def __init__(self, points: Float64s) -> None:
        dtype = np.float64 if len(points) <= EXACT else np.float32
        n, width = points.shape
        self.rows: Floats = np.zeros((n, -width % 4 + width), dtype=dtype)  # kernels take four axes at a time
        self.rows[:, :width] = points
        self.axes: Floats = np.ascontiguousarray(self.rows.T)
        self.order: Ints = np.arange(n)
        self._pool = ThreadPoolExecutor(cores())

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
    def gains(self, wanted: Ints, near: Floats, weights: Floats) -> Float64s:
        """What each wanted candidate would save as one more centre."""

    @abstractmethod
    def changes(self, wanted: Ints, ranking: Ranking) -> Float64s:
        """What the best swap of each wanted candidate would change; negative is better."""


class Matrix(Distances):
    """All distances, made once; n by n."""

    def __init__(self, points: Float64s) -> None:
        super().__init__(points)
        n = len(self)
        self._matrix: Floats = np.empty((n, n), dtype=self.dtype)
        self.split(n, 256, lambda a, b: _kernels.fill(self.axes, self.rows[a:b], self._matrix[a:b]))

    def column(self, candidate: int) -> Floats:
        row: Floats = self._matrix[candidate]  # a row is read in order, and the matrix is symmetric
        return row

    def gains(self, wanted: Ints, near: Floats, weights: Floats) -> Float64s:
        found = np.empty(len(wanted))

        def part(a: int, b: int) -> None:
            _kernels.matrix_gains(self._matrix, wanted[a:b], near, weights, found[a:b])

        self.split(len(wanted), 256, part)
        return found

    def changes(self, wanted: Ints, ranking: Ranking) -> Float64s:
        found = np.empty(len(self))
        r = ranking

        def part(a: int, b: int) -> None:
            _kernels.matrix_changes(
                self._matrix, a, r.order, r.groups, r.near, r.second, r.weights, found[a:b]
            )

        self.split(len(self), 2500, part)
        return found[wanted]


class Points(Distances):
    """Distances made when they are needed, in memory that grows like n.

    Points are kept in the order of a tree's leaves, in short runs, each within a
    ball; runs that a candidate cannot serve are passed over.
    """

    def __init__(self, points: Float64s) -> None:
        super().__init__(points)
        self.order = _leaf_order(points)
        self._sorted = np.ascontiguousarray(self.axes[:, self.order])
        self._runs = np.append(np.arange(0, len(self), _kernels.RUN), len(self))
        self._ball_axes, self._radii = self._balls(self.rows[self.order], self._runs)

    def column(self, candidate: int) -> Floats:
        found = np.empty((1, len(self)), dtype=self.dtype)
        _kernels.fill(self.axes, self.rows[candidate : candidate + 1], found)
        return found[0]

    def gains(self, wanted: Ints, near: Floats, weights: Floats) -> Float64s:
        found, points = np.empty(len(wanted)), self.rows[wanted]
        near, weights = near[self.order], weights[self.order]
        reach = self._radii + np.maximum.reduceat(near, self._runs[:-1])

        def part(a: int, b: int) -> None:
            _kernels.point_gains(
                self._sorted, self._runs, self._ball_axes, reach, points[a:b], near, weights, found[a:b]
            )

        self.split(len(wanted), 64, part)
        return found

    def changes(self, wanted: Ints, ranking: Ranking) -> Float64s:
        found = np.empty(len(wanted))
        place = np.empty(len(self), dtype=np.int64)
        place[self.order] = np.arange(len(self))
        by_leaf = np.argsort(place[wanted])
        runs, closes = _runs(ranking.groups)
        rows = self.rows[ranking.order]
        ball_axes, radii = self._balls(rows, runs)
        highest, losses = np.empty((2, len(radii)))
        r = ranking
        _kernels.run_bounds(runs, r.near, r.second, r.weights, highest, losses)
        reach = radii + highest
        out = np.empty(len(wanted))

        def part(a: int, b: int) -> None:
            axes = np.ascontiguousarray(self.axes[:, wanted[by_leaf[a:b]]])
            _kernels.point_changes(axes, rows, runs, closes, ball_axes, reach, losses, r.near, r.second, r.weights, out[a:b])

        self.split(len(wanted), BLOCK, part)
        found[by_leaf] = out
        return found

    def _balls(self, rows: Floats, runs: Ints) -> tuple[Floats, Float64s]:
        centres, radii = np.zeros((len(runs) - 1, rows.shape[1]), dtype=self.dtype), np.empty(len(runs) - 1)
        _kernels.balls(rows, runs, centres, radii)
        slack = 64 * float(np.finfo(self.dtype).eps)
        return np.ascontiguousarray(centres.T), radii * (1 + slack) + slack

BLOCK=256
def _leaf_order(points: Float64s) -> Ints:
    from scipy.spatial import cKDTree
    return cKDTree(points, leafsize=32, balanced_tree=False).indices.astype(np.int64)

def _runs(groups: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Cut groups into runs, at least one each; and which run is the last of a group that has a centre."""
    pieces = np.maximum(-(-np.diff(groups) // _kernels.RUN), 1)
    last = np.cumsum(pieces)
    group = np.repeat(np.arange(len(pieces)), pieces)
    starts = groups[group] + _kernels.RUN * (np.arange(last[-1]) - (last - pieces)[group])
    closes = np.zeros(last[-1], dtype=np.bool_)
    closes[last[:-1] - 1] = True
    return np.append(starts, groups[-1]), closes

def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


__all__ = ["Distances", "Matrix", "Points", "Ranking", "cores"]
