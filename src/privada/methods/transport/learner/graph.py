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
        rows = _check.matrix(points=points)
        k = min(_check.count(neighbours=neighbours), len(rows) - 1)
        if k < 1:
            return cls(points=rows, reach=np.ones(len(rows)), smoothing=_empty(len(rows)), neighbours=0)
        distances, near = _nearest(rows, rows, k + 1)
        distances, near = _without_self(distances, near)
        reach = np.maximum(distances[:, -1], 1e-12 * max(1.0, float(np.abs(rows).max())))
        weights = np.exp(-(distances**2) / (reach[:, None] * reach[near]))
        return cls(points=rows, reach=reach, smoothing=_normalised(weights, near), neighbours=k)

    def smooth(self, opinions: FloatArray, *, kept: float = KEPT) -> FloatArray:
        """Solve ``F = (1-α) Y + α S F`` (Zhou et al. 2004) and make rows sum to one."""
        found = opinions
        for _ in range(SWEEPS):
            found = (1 - kept) * opinions + kept * (self.smoothing @ found)
        return _rows_to_one(found)

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


def _without_self(
    distances: FloatArray, near: npt.NDArray[np.int64]
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Drop each point from its own list; where duplicates crowd it out, drop the last."""
    self_at = near == np.arange(len(near))[:, None]
    self_at[~self_at.any(axis=1), -1] = True
    keep = ~self_at
    shape = len(near), near.shape[1] - 1
    return distances[keep].reshape(shape), near[keep].reshape(shape)


def _normalised(weights: FloatArray, near: npt.NDArray[np.int64]) -> Any:
    from scipy.sparse import coo_array, diags_array

    n, k = near.shape
    at = np.repeat(np.arange(n), k), near.ravel()
    one = coo_array((weights.ravel(), at), shape=(n, n)).tocsr()
    both = one.maximum(one.T)
    root = diags_array(1 / np.sqrt(np.maximum(both.sum(axis=1), 1e-300)))
    return (root @ both @ root).tocsr()


def _empty(n: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array((n, n))


def _rows_to_one(found: FloatArray) -> FloatArray:
    sums = found.sum(axis=1, keepdims=True)
    return np.asarray(np.where(sums > 0, found / np.where(sums > 0, sums, 1.0), 1 / found.shape[1]))


__all__ = ["KEPT", "NeighbourGraph"]
