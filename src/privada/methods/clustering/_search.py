"""Greedy choice of centres, and swaps that improve a choice; both with a cap on what each point pays."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from privada.methods.clustering import _kernels
from privada.methods.clustering._distances import Distances, Floats, Float64s, Ints, Ranking

PATIENCE = 128
"""Offers in a row that may fail before all candidates are screened afresh."""


def greedy(distances: Distances, candidates: Ints, k: int, caps: Floats, weights: Floats) -> Ints:
    """Choose k centres one by one, each the one that saves most, the smallest index on ties.

    What a candidate saves only shrinks as centres are added, so what it once
    saved bounds what it saves now: only the candidate with the largest bound is
    looked at again (CELF, Leskovec et al. 2007). The choice is that of the plain
    greedy algorithm.
    """
    near, chosen = caps.copy(), np.empty(k, dtype=np.int64)
    gains = distances.gains(candidates, near, weights)
    heap = [(-gain, index, 0) for gain, index in zip(gains.tolist(), candidates.tolist(), strict=True)]
    heapq.heapify(heap)
    for step in range(k):
        batch = 1
        while heap[0][2] < step:
            stale = _pop_stale(heap, step, batch)
            gains = distances.gains(stale, near, weights)
            for gain, index in zip(gains.tolist(), stale.tolist(), strict=True):
                heapq.heappush(heap, (-gain, index, step))
            batch = min(2 * batch, 256)
        chosen[step] = heapq.heappop(heap)[1]
        np.minimum(near, distances.column(int(chosen[step])), out=near)
    return chosen


def _pop_stale(heap: list[tuple[float, int, int]], step: int, most: int) -> Ints:
    """Take the largest bounds off the heap, as long as they are older than this step."""
    found: list[int] = []
    while heap and heap[0][2] < step and len(found) < most:
        found.append(heapq.heappop(heap)[1])
    return np.array(found, dtype=np.int64)


class Search:
    """A choice of centres that takes every swap that lowers its cost.

    The books of FasterPAM (Schubert and Rousseeuw 2021): each point's nearest
    and second nearest centre and, for each centre, what its removal would cost.
    A point's cap counts among its centres, and cannot be removed.
    """

    def __init__(self, distances: Distances, chosen: Ints, caps: Floats, weights: Floats) -> None:
        n, k = len(distances), len(chosen)
        self.distances, self.caps, self.weights = distances, caps, weights
        self.chosen = chosen.copy()
        self.near, self.second = np.empty_like(caps), np.empty_like(caps)
        self.slot: Ints = np.empty(n, dtype=np.int64)
        self.swaps = 0
        self._losses = np.empty(k + 1)
        self._table = np.empty((n, k), dtype=distances.dtype)
        for place, centre in enumerate(self.chosen.tolist()):
            self._table[:, place] = distances.column(centre)
        _kernels.rank_all(self._table, caps, weights, *self._books)
        self._least = 64 * float(np.finfo(distances.dtype).eps) * self.cost

    @property
    def cost(self) -> float:
        """Weighted sum of what the points pay."""
        return float(np.dot(self.near.astype(np.float64), self.weights))

    def offer(self, candidate: int) -> bool:
        """Swap the candidate for the centre that is best removed for it, if that lowers the cost."""
        column = self.distances.column(candidate)
        change, out = _kernels.best_removal(column, self.weights, *self._books)
        if not change < -self._least:
            return False
        _kernels.replace(column, out, self._table, self.caps, self.weights, *self._books)
        self.chosen[out] = candidate
        self.swaps += 1
        return True

    def offer_all(self, candidates: Iterable[int], max_swaps: int) -> None:
        """Offer candidates in turn until too many in a row have failed."""
        failed = 0
        for candidate in candidates:
            if failed == PATIENCE or self.swaps >= max_swaps:
                return
            failed = 0 if self.offer(candidate) else failed + 1

    def promising(self, candidates: Ints) -> Ints:
        """Candidates with a swap that lowers the cost, the best first."""
        changes = self.distances.changes(candidates, self.ranking())
        changes[np.isin(candidates, self.chosen)] = 0.0
        order = np.argsort(changes, kind="stable")
        found: Ints = candidates[order[: np.searchsorted(changes[order], -self._least)]]
        return found

    def improve(self, candidates: Ints, max_swaps: int) -> None:
        """Swap until no single swap with a candidate lowers the cost.

        After a look at all candidates, those whose own distances have changed
        are looked at again until they are at rest; then all once more.
        """
        wanted = candidates
        while self.swaps < max_swaps:
            near, second, swaps = self.near.copy(), self.second.copy(), self.swaps
            self.offer_all(self.promising(wanted).tolist(), max_swaps)
            if self.swaps > swaps:
                touched = (near != self.near) | (second != self.second)
                wanted = candidates[touched[candidates]]
            elif wanted is candidates:
                return
            else:
                wanted = candidates

    def ranking(self) -> Ranking:
        """The points grouped by their nearest centre."""
        order = self.distances.order
        order = order[np.argsort(self.slot[order], kind="stable")]
        groups = np.searchsorted(self.slot[order], np.arange(len(self.chosen) + 2))
        return Ranking(order, groups, self.near[order], self.second[order], self.weights[order])

    @property
    def _books(self) -> tuple[Floats, Floats, Ints, Float64s]:
        return self.near, self.second, self.slot, self._losses


__all__ = ["Search", "greedy"]
