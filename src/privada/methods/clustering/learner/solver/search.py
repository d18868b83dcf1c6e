"""Greedy choice of centres, and swaps that improve a choice."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.clustering.learner.solver import nearest_pairs
from privada.methods.clustering.learner.solver.problem import Floats, Problem, Ranking

PATIENCE = 128
"""Offers in a row that may fail before candidates are screened afresh."""


def greedy(problem: Problem, k: int, candidates: IntArray | None = None) -> IntArray:
    """Choose k centres one by one, each the one that saves most, the smallest index on ties.

    What a candidate saves only shrinks as centres are added, so what it once
    saved bounds what it saves now: only those with the largest bounds are looked
    at again (CELF, Leskovec et al. 2007). The choice is that of the plain greedy
    algorithm.
    """
    near, chosen = problem.caps.copy(), np.empty(k, dtype=np.int64)
    candidates = problem.candidates if candidates is None else candidates
    gains = problem.gains(candidates, near).tolist()
    heap = [(-gain, index, 0) for gain, index in zip(gains, candidates.tolist(), strict=True)]
    heapq.heapify(heap)
    for step in range(k):
        batch = 1
        while heap[0][2] < step:
            stale = _pop_stale(heap, step, batch)
            for gain, index in zip(problem.gains(stale, near).tolist(), stale.tolist(), strict=True):
                heapq.heappush(heap, (-gain, index, step))
            batch = min(2 * batch, 256)
        chosen[step] = heapq.heappop(heap)[1]
        np.minimum(near, problem.column(int(chosen[step])), out=near)
    return chosen


def _pop_stale(heap: list[tuple[float, int, int]], step: int, most: int) -> IntArray:
    """Take the largest bounds off the heap, as long as they are older than this step."""
    found: list[int] = []
    while heap and heap[0][2] < step and len(found) < most:
        found.append(heapq.heappop(heap)[1])
    return np.array(found, dtype=np.int64)


def best_of(problem: Problem, k: int, starts: int, max_swaps: int) -> IntArray:
    """Improve several greedy starts, no two of which share a centre, and keep the best, the first on ties."""
    left = problem.candidates
    found: list[Search] = []
    while len(found) < starts and len(left) >= k:
        start = greedy(problem, k, left)
        left = np.setdiff1d(left, start)
        found.append(Search(problem, start, max_swaps))
        found[-1].improve()
    return min(found, key=lambda search: search.cost).chosen


class Search:
    """A choice of centres that takes every swap that lowers its cost.

    The books of FasterPAM (Schubert and Rousseeuw 2021): each point's nearest
    and second nearest centre and, for each centre, what its removal would cost.
    A point's cap counts among its centres, and cannot be removed.
    """

    def __init__(self, problem: Problem, chosen: IntArray, max_swaps: int) -> None:
        self.problem, self.chosen, self.max_swaps = problem, chosen.copy(), max_swaps
        self.near, self.second = np.empty_like(problem.caps), np.empty_like(problem.caps)
        self.slot: IntArray = np.empty(len(problem), dtype=np.int64)
        self.swaps = 0
        self._losses = np.empty(len(chosen) + 1)
        self._table = np.empty((len(problem), len(chosen)), dtype=problem.dtype)
        for place, centre in enumerate(chosen.tolist()):
            self._table[:, place] = problem.column(centre)
        nearest_pairs.rank_all(self._table, problem.caps, problem.weights, *self._books)
        self._least = self.cost * (1e-12 if problem.dtype == np.float64 else 1e-6)

    @property
    def cost(self) -> float:
        """Weighted sum of what the points pay."""
        return float(np.dot(self.near.astype(np.float64), self.problem.weights))

    def offer(self, candidate: int) -> bool:
        """Swap the candidate for the centre that is best removed for it, if that lowers the cost."""
        column, weights = self.problem.column(candidate), self.problem.weights
        change, out = nearest_pairs.best_removal(column, weights, *self._books)
        if self.swaps == self.max_swaps or not change < -self._least:
            return False
        nearest_pairs.replace(column, out, self._table, self.problem.caps, weights, *self._books)
        self.chosen[out] = candidate
        self.swaps += 1
        return True

    def offer_all(self, candidates: Iterable[int]) -> None:
        """Offer candidates in turn until too many in a row have failed."""
        failed = 0
        for candidate in candidates:
            failed = 0 if self.offer(candidate) else failed + 1
            if failed == PATIENCE:
                return

    def promising(self, candidates: IntArray) -> list[int]:
        """Candidates with a swap that lowers the cost, the best first, the smallest index on ties."""
        if not len(candidates):
            return []
        changes = self.problem.changes(candidates, self.ranking())
        changes[np.isin(candidates, self.chosen)] = 0.0
        order = np.argsort(changes, kind="stable")
        return candidates[order[: np.searchsorted(changes[order], -self._least)]].tolist()

    def improve(self) -> None:
        """Swap until no single swap with a candidate lowers the cost.

        After a look at all candidates, those whose own distances have changed
        are looked at again until they are at rest; then all once more.
        """
        wanted = everyone = self.problem.candidates
        while self.swaps < self.max_swaps:
            near, second, swaps = self.near.copy(), self.second.copy(), self.swaps
            self.offer_all(self.promising(wanted))
            if self.swaps > swaps:
                touched = (near != self.near) | (second != self.second)
                wanted = everyone[touched[everyone]]
            elif len(wanted) == len(everyone):
                return
            else:
                wanted = everyone

    def ranking(self) -> Ranking:
        """The points grouped by their nearest centre."""
        order = self.problem.order
        order = order[np.argsort(self.slot[order], kind="stable")]
        groups = np.searchsorted(self.slot[order], np.arange(len(self.chosen) + 2))
        return Ranking(order, groups, self.near[order], self.second[order], self.problem.weights[order])

    @property
    def _books(self) -> tuple[Floats, Floats, IntArray, FloatArray]:
        return self.near, self.second, self.slot, self._losses


__all__ = ["Search", "best_of", "greedy"]
