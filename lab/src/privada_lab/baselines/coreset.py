"""Coresets of a public target: few of its points, one of them near to each.

A coreset of a public target is public: it costs nothing. Fewer points are less
noise for `NeighbourAverages` and larger counts for `NearestMeans` and `LocalMeans`, at the cost of
its radius C in the objective (Corollary B.1 of the paper).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.methods.cells.questions.partition import NearestCells


@dataclass(frozen=True, kw_only=True, eq=False)
class Coreset:
    """Chosen points of a target.

    Attributes
    ----------
    indices : array of shape (chosen,)
        Which target points were chosen, in the order of the target.
    weights : array of shape (chosen,)
        How many target points each stands for; they add up to the target's size.
    labels : array of shape (targets,)
        Which chosen point stands for each target point: the nearest.
    radius : float
        Every target point is within it of its chosen point.
    """

    indices: IntArray
    weights: IntArray
    labels: IntArray
    radius: float

    def __len__(self) -> int:
        return len(self.indices)

    @classmethod
    def of(cls, target: npt.ArrayLike, *, radius: float) -> Self:
        """Choose few target points so that every one is within ``radius`` of a chosen one.

        The point that covers most of what is not yet covered is chosen first (the greedy cover,
        within a factor ``1 + ln n`` of the smallest), by kd-tree and with lazy evaluation. Ties go
        to the first point, so the same target gives the same coreset.

        Parameters
        ----------
        target : array of shape (targets, features)
            Public.
        radius : float
            C of the paper; 0 keeps one of each distinct point.

        Examples
        --------
        >>> found = Coreset.of([[0.0], [0.1], [0.2], [1.0]], radius=0.1)
        >>> found.indices.tolist(), found.weights.tolist(), found.labels.tolist()
        ([1, 3], [3, 1], [0, 0, 0, 1])
        """
        points = np.ascontiguousarray(_check.matrix(target=target))
        reach = _check.non_negative(radius=radius)
        chosen = np.sort(_greedy_cover(points, reach))
        labels = NearestCells(centers=points[chosen]).assign(points)
        weights = np.bincount(labels, minlength=len(chosen)).astype(np.int64)
        return cls(indices=chosen, weights=weights, labels=labels, radius=reach)

    @classmethod
    def balanced(
        cls,
        target: npt.ArrayLike,
        *,
        noise: Callable[[int], float],
        radii: Sequence[float] = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4),
    ) -> Self:
        """The coreset of the radius for which the bound of Corollary B.1 is least.

        The bound adds a noise term and, twice, the radius. Both are public, as Δᵗ(S) does not depend on C:
        nothing is paid for the choice. (The corollary prints C once; why it counts twice is said in
        `privada.methods.clustering.learner.bounds`.)

        Parameters
        ----------
        target : array of shape (targets, features)
            Public.
        noise : callable
            The bound's noise term for a number of points, such as `privada_lab.papers.clustering.nas_noise`.
        radii : sequence of float
            What is tried.

        Examples
        --------
        >>> line = [[i / 100] for i in range(100)]
        >>> [Coreset.balanced(line, noise=lambda n: scale * n).radius for scale in (0.0, 0.001, 1.0)]
        [0.0, 0.02, 0.4]
        """
        found = [cls.of(target, radius=radius) for radius in radii]
        return min(found, key=lambda each: noise(len(each)) + 2 * each.radius)


def _greedy_cover(points: FloatArray, radius: float) -> IntArray:
    """Indices of the greedy cover; a point's gain only shrinks, so an old gain is an upper bound."""
    from scipy.spatial import KDTree

    tree = KDTree(points)
    gains: Any = tree.query_ball_point(points, radius, return_length=True)
    queue = [(-int(gain), index) for index, gain in enumerate(gains)]
    heapq.heapify(queue)
    uncovered = np.ones(len(points), dtype=np.bool_)
    left, chosen = len(points), []
    while left:
        _, index = heapq.heappop(queue)
        near = np.asarray(tree.query_ball_point(points[index], radius))
        fresh = near[uncovered[near]]
        mine = (-len(fresh), index)
        if len(fresh) and queue and queue[0] < mine:
            heapq.heappush(queue, mine)
            continue
        if len(fresh):
            chosen.append(index)
            uncovered[fresh] = False
            left -= len(fresh)
    return np.array(chosen, dtype=np.int64)


__all__ = ["Coreset"]
