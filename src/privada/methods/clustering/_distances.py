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
    """Distances made when they are needed, in memory that grows like n."""

    def column(self, candidate: int) -> Floats:
        found = np.empty((1, len(self)), dtype=self.dtype)
        _kernels.fill(self.axes, self.rows[candidate : candidate + 1], found)
        return found[0]

    def gains(self, wanted: Ints, near: Floats, weights: Floats) -> Float64s:
        found = np.empty(len(wanted))

        def part(a: int, b: int) -> None:
            _kernels.point_gains(self.axes, self.rows, wanted[a:b], near, weights, found[a:b])

        self.split(len(wanted), 64, part)
        return found

    def changes(self, wanted: Ints, ranking: Ranking) -> Float64s:
        found = np.empty(len(wanted))
        r, rows = ranking, self.rows[ranking.order]

        def part(a: int, b: int) -> None:
            axes = np.ascontiguousarray(self.axes[:, wanted[a:b]])
            _kernels.point_changes(axes, rows, r.groups, r.near, r.second, r.weights, found[a:b])

        self.split(len(wanted), 512, part)
        return found


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


__all__ = ["Distances", "Matrix", "Points", "Ranking", "cores"]
