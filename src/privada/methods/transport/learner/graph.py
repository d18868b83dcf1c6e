"""The target's neighbour graph: class probabilities smoothed over it, and extended to new points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray

NEIGHBOURS = 10
KEPT = 0.9  # α: how much of a point's opinion comes from its neighbours
SWEEPS = 80  # α^80 = 2e-4


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourGraph:
    """Symmetric graph of k nearest neighbours, its Gaussian weights self-tuned (Zelnik-Manor, Perona 2004).

    Attributes
    ----------
    points : array of shape (points, components)
    reach : array of shape (points,)
        Distance of each point to its k-th neighbour.
    smoothing : sparse array
        ``D^-1/2 W D^-1/2``.

    >>> points = np.concatenate([np.linspace(0, 1, 20), np.linspace(5, 6, 20)])[:, None]
    >>> some = np.full((40, 2), 0.5); some[0], some[30] = [1, 0], [0, 1]
    >>> NeighbourGraph.of(points).smooth(some).argmax(axis=1).tolist() == [0] * 20 + [1] * 20
    True
    """

    points: FloatArray
    reach: FloatArray
    smoothing: Any
    neighbours: int

    @classmethod
    def of(cls, points: npt.ArrayLike, *, neighbours: int = NEIGHBOURS) -> Self:
        """Build the graph of public points."""
        from scipy.sparse import coo_array, csr_array, diags_array

        rows = _check.matrix(points=points)
        k = min(_check.count(neighbours=neighbours), len(rows) - 1)
        if k < 1:
            empty = csr_array((len(rows), len(rows)))
            return cls(points=rows, reach=np.ones(len(rows)), smoothing=empty, neighbours=0)
        distances, near = _nearest(rows, rows, k + 1)
        # drop each point from its own list; where duplicates crowd it out, drop the last
        itself = near == np.arange(len(near))[:, None]
        itself[~itself.any(axis=1), -1] = True
        distances, near = distances[~itself].reshape(-1, k), near[~itself].reshape(-1, k)
        reach = np.maximum(distances[:, -1], 1e-12 * max(1.0, float(np.abs(rows).max())))
        weights = np.exp(-(distances**2) / (reach[:, None] * reach[near]))
        ends = np.repeat(np.arange(len(rows)), k), near.ravel()
        one_way = coo_array((weights.ravel(), ends), shape=(len(rows), len(rows))).tocsr()
        both_ways = one_way.maximum(one_way.T)
        root = diags_array(1 / np.sqrt(np.maximum(both_ways.sum(axis=1), 1e-300)))
        return cls(points=rows, reach=reach, smoothing=(root @ both_ways @ root).tocsr(), neighbours=k)

    def smooth(self, opinions: FloatArray, *, kept: float = KEPT) -> FloatArray:
        """Solve ``F = (1-α) Y + α S F`` (Zhou et al. 2004) and make rows sum to one."""
        smoothed = opinions
        for _ in range(SWEEPS):
            smoothed = (1 - kept) * opinions + kept * (self.smoothing @ smoothed)
        return _rows_to_one(smoothed)

    def cohesion(self, labels: npt.NDArray[np.int64]) -> float:
        """Cohen's kappa on the edges: 0 where neighbours agree as by chance, 1 where they always do."""
        edges = self.smoothing.tocoo()
        total = float(edges.data.sum())
        chance = float(np.sum((np.bincount(labels) / len(labels)) ** 2))
        if total <= 0 or chance >= 1:
            return 0.0
        row, column = edges.coords
        agreed = float(edges.data[labels[row] == labels[column]].sum()) / total
        return (agreed - chance) / (1 - chance)

    def extend(
        self, points: FloatArray, opinions: FloatArray, smoothed: FloatArray, *, kept: float = KEPT
    ) -> FloatArray:
        """Probabilities of new points: their own opinion and that of their neighbours in the graph."""
        if not self.neighbours:
            return _rows_to_one(opinions)
        distances, near = _nearest(points, self.points, self.neighbours)
        own = np.maximum(distances[:, -1:], 1e-300)
        weights = np.exp(-(distances**2) / (own * self.reach[near])) + 1e-12
        weights /= weights.sum(axis=1, keepdims=True)
        near_opinions = np.einsum("nk,nkc->nc", weights, smoothed[near])
        return _rows_to_one((1 - kept) * opinions + kept * near_opinions)


def _nearest(rows: FloatArray, points: FloatArray, k: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=k).fit(points).kneighbors(rows)


def _rows_to_one(shares: FloatArray) -> FloatArray:
    sums = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.where(sums > 0, shares / np.where(sums > 0, sums, 1.0), 1 / shares.shape[1]))


__all__ = ["KEPT", "NeighbourGraph"]
