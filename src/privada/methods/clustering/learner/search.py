"""The search for medoids with caps: a greedy start, swaps, samples for many points, and the compiled passes.

A `Problem` says how far all points are from one candidate, what candidates would save as one more centre, and
what their best swaps would change: from one matrix of distances, or from the points themselves. `greedy` and
`Search` work on any of them; `search_samples` looks at samples where there are too many points.

A distance is never capped. The source's distance, the cap, is the first bound of ``near`` and ``second``, the
distances of a point to its two nearest centres: a centre that cannot be removed. So a point's cap stays with
the point, and no capped, asymmetric matrix exists to transpose.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from privada._arrays import BoolArray, FloatArray, IntArray
from privada._threads import in_parts

Floats = npt.NDArray[Any]  # float64, or float32 for many points

EXACT = 4096  # points; up to here distances are float64, above float32
RUN = 256  # points that are summed, bounded and passed over together
PATIENCE = 128  # offers in a row that may fail before candidates are screened afresh
SAMPLE = 8192  # most points of the sample that gives the start, unless k asks for more
WORK = 2 * 10**9  # distances that one look at candidates may take, over all points
ROUNDS = 8  # of looks at samples
ENOUGH = 2e-4  # a round that lowers the cost by a smaller share is the last

_jit = numba.njit(cache=True, nogil=True)
# Sums may be reassociated, so that they fill the vector unit; NaN and infinity keep their meaning.
_sum_jit = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})


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
        self.rows: Floats = np.zeros((n, width + -width % 4), dtype=dtype)  # passes take four axes at a time
        self.rows[:, :width] = points
        self.axes: Floats = np.ascontiguousarray(self.rows.T)
        self.caps: Floats = caps.astype(dtype)
        self.weights: Floats = weights.astype(dtype)
        self.candidates = candidates
        self.order: IntArray = np.arange(n)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the distances."""
        return self.rows.dtype

    @abstractmethod
    def column(self, candidate: int) -> Floats:
        """Distances of all points to one candidate."""

    @abstractmethod
    def gains(self, candidates: IntArray, near: Floats) -> FloatArray:
        """What each of some candidates would save as one more centre, if the points pay ``near`` now."""

    @abstractmethod
    def changes(self, candidates: IntArray, ranking: Ranking) -> FloatArray:
        """What the best swap of each of some candidates would change; negative is better."""


class MatrixProblem(Problem):
    """All distances are made once: n by n of them."""

    def __init__(
        self, points: FloatArray, caps: FloatArray, weights: FloatArray, candidates: IntArray
    ) -> None:
        super().__init__(points, caps, weights, candidates)
        n = len(self)
        self._matrix: Floats = np.empty((n, n), dtype=self.dtype)
        in_parts(lambda part: fill(self.axes, self.rows[part], self._matrix[part]), n, 256)

    def column(self, candidate: int) -> Floats:
        row: Floats = self._matrix[candidate]  # a row is read in order, and uncapped distances are symmetric
        return row

    def gains(self, candidates: IntArray, near: Floats) -> FloatArray:
        gains = np.empty(len(candidates))

        def work(part: slice) -> None:
            matrix_gains(self._matrix, candidates[part], near, self.weights, gains[part])

        in_parts(work, len(candidates), 256)
        return gains

    def changes(self, candidates: IntArray, ranking: Ranking) -> FloatArray:
        return self._find_changes(self._matrix, candidates, ranking)

    def _find_changes(self, matrix: Floats, candidates: IntArray, ranking: Ranking) -> FloatArray:
        """Changes, by a matrix with one row for each point and one column for each candidate."""
        few, r = 8 * len(candidates) < len(self), ranking
        columns = matrix.take(candidates, axis=1) if few else matrix
        changes = np.empty(columns.shape[1])

        def work(part: slice) -> None:
            matrix_changes(columns, part.start, r.order, r.groups, r.near, r.second, r.weights, changes[part])

        in_parts(work, len(changes), 2500)
        return changes if few else changes[candidates]


class GivenProblem(MatrixProblem):
    """Distances are given: a symmetric matrix, of any unit; every point counts alike and may be chosen."""

    def __init__(self, distances: FloatArray, caps: FloatArray) -> None:
        n, unit = len(distances), float(distances.max()) or 1.0
        limits = np.minimum(caps / unit, 1.0 + 1e-5)
        Problem.__init__(self, np.zeros((n, 1)), limits, np.ones(n), np.arange(n))
        self._matrix = np.ascontiguousarray(distances / unit, dtype=self.dtype)


class ExpectedProblem(MatrixProblem):
    """What each point pays to each candidate, on average over several sources, each with its own caps."""

    def __init__(
        self, points: FloatArray, caps: FloatArray, weights: FloatArray, candidates: IntArray
    ) -> None:
        super().__init__(points, caps.mean(axis=0), weights, candidates)
        sources = np.ascontiguousarray(caps, dtype=self.dtype)

        def average(part: slice) -> None:
            # Replaces distances of some candidates by payments; a row is one candidate's.
            block = self._matrix[part]
            payments = np.zeros_like(block)
            for limits in sources:
                payments += np.minimum(block, limits)
            block[:] = payments / len(sources)

        in_parts(average, len(self), 256)
        self._by_point = np.ascontiguousarray(self._matrix.T)  # payments are not symmetric

    def changes(self, candidates: IntArray, ranking: Ranking) -> FloatArray:
        return self._find_changes(self._by_point, candidates, ranking)


class PointProblem(Problem):
    """Distances are made when they are needed, in memory that grows like n.

    Points are looked at in the order of a tree's leaves, in runs, each within a
    ball; runs that a candidate cannot serve are passed over.
    """

    def __init__(
        self, points: FloatArray, caps: FloatArray, weights: FloatArray, candidates: IntArray
    ) -> None:
        from scipy.spatial import cKDTree

        super().__init__(points, caps, weights, candidates)
        tree = cKDTree(points, leafsize=32, balanced_tree=False)  # splits at gaps, so that leaves are narrow
        self.order = np.asarray(tree.indices, dtype=np.int64)
        self._sorted_axes = np.ascontiguousarray(self.axes[:, self.order])
        self._runs = np.append(np.arange(0, len(self), RUN), len(self))
        self._ball_axes, self._radii = self._find_balls(self.rows[self.order], self._runs)

    def column(self, candidate: int) -> Floats:
        distances = np.empty((1, len(self)), dtype=self.dtype)
        fill(self.axes, self.rows[candidate : candidate + 1], distances)
        row: Floats = distances[0]
        return row

    def gains(self, candidates: IntArray, near: Floats) -> FloatArray:
        gains, points = np.empty(len(candidates)), self.rows[candidates]
        near, weights = near[self.order], self.weights[self.order]
        balls = self._ball_axes, self._radii + np.maximum.reduceat(near, self._runs[:-1])

        def work(part: slice) -> None:
            point_gains(self._sorted_axes, self._runs, *balls, points[part], near, weights, gains[part])

        in_parts(work, len(candidates), 64)
        return gains

    def changes(self, candidates: IntArray, ranking: Ranking) -> FloatArray:
        changes, r = np.empty(len(candidates)), ranking
        rows, (runs, closes) = self.rows[r.order], cut_into_runs(r.groups)
        highest, losses = np.empty(len(closes)), np.empty(len(closes))
        bound_runs(runs, r.near, r.second, r.weights, highest, losses)
        ball_axes, radii = self._find_balls(rows, runs)
        runs_of = rows, runs, closes, ball_axes, radii + highest, losses
        # Candidates of one block are neighbours, so that one bound passes over runs for all of them.
        by_leaf = np.argsort(np.argsort(self.order)[candidates])

        def work(part: slice) -> None:
            block = by_leaf[part]
            axes, best = np.ascontiguousarray(self.axes[:, candidates[block]]), np.empty(len(block))
            point_changes(axes, *runs_of, r.near, r.second, r.weights, best)
            changes[block] = best

        in_parts(work, len(candidates), 256)
        return changes

    def _find_balls(self, rows: Floats, runs: IntArray) -> tuple[Floats, FloatArray]:
        """Middles of the runs, axis by axis, and radii with some slack for rounding."""
        middles, radii = np.zeros((len(runs) - 1, rows.shape[1]), dtype=self.dtype), np.empty(len(runs) - 1)
        bound_balls(rows, runs, middles, radii)
        return np.ascontiguousarray(middles.T), radii + 64 * float(np.finfo(self.dtype).eps)


def cut_into_runs(groups: IntArray) -> tuple[IntArray, BoolArray]:
    """Cut groups into runs, at least one each, and mark the last run of each group that has a centre."""
    pieces = np.maximum(-(-np.diff(groups) // RUN), 1)
    ends = np.cumsum(pieces)
    group = np.repeat(np.arange(len(pieces)), pieces)
    starts = groups[group] + RUN * (np.arange(ends[-1]) - (ends - pieces)[group])
    closes = np.zeros(ends[-1], dtype=np.bool_)
    closes[ends[:-1] - 1] = True
    return np.append(starts, groups[-1]), closes


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
            # Take the largest bounds off the heap, as long as they are older than this step.
            old: list[int] = []
            while heap and heap[0][2] < step and len(old) < batch:
                old.append(heapq.heappop(heap)[1])
            stale = np.array(old, dtype=np.int64)
            for gain, index in zip(problem.gains(stale, near).tolist(), old, strict=True):
                heapq.heappush(heap, (-gain, index, step))
            batch = min(2 * batch, 256)
        chosen[step] = heapq.heappop(heap)[1]
        np.minimum(near, problem.column(int(chosen[step])), out=near)
    return chosen


def best_of(problem: Problem, k: int, starts: int, max_swaps: int) -> IntArray:
    """Improve several greedy starts, no two of which share a centre, and keep the best, the first on ties."""
    candidates = problem.candidates
    searches: list[Search] = []
    while len(searches) < starts and len(candidates) >= k:
        start = greedy(problem, k, candidates)
        candidates = np.setdiff1d(candidates, start)
        searches.append(Search(problem, start, max_swaps))
        searches[-1].improve()
    return min(searches, key=lambda search: search.cost).chosen


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
        rank_all(self._table, problem.caps, problem.weights, *self._books)
        self._least = self.cost * (1e-12 if problem.dtype == np.float64 else 1e-6)

    @property
    def cost(self) -> float:
        """Weighted sum of what the points pay."""
        return float(np.dot(self.near.astype(np.float64), self.problem.weights))

    @property
    def _books(self) -> tuple[Floats, Floats, IntArray, FloatArray]:
        return self.near, self.second, self.slot, self._losses

    def offer(self, candidate: int) -> bool:
        """Swap the candidate for the centre that is best removed for it, if that lowers the cost."""
        column, weights = self.problem.column(candidate), self.problem.weights
        change, out = best_removal(column, weights, *self._books)
        if self.swaps == self.max_swaps or not change < -self._least:
            return False
        replace_centre(column, out, self._table, self.problem.caps, weights, *self._books)
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
        candidates = everyone = self.problem.candidates
        while self.swaps < self.max_swaps:
            near, second, swaps = self.near.copy(), self.second.copy(), self.swaps
            self.offer_all(self.promising(candidates))
            if self.swaps > swaps:
                touched = (near != self.near) | (second != self.second)
                candidates = everyone[touched[everyone]]
            elif len(candidates) == len(everyone):
                return
            else:
                candidates = everyone

    def ranking(self) -> Ranking:
        """The points grouped by their nearest centre."""
        order = self.problem.order
        order = order[np.argsort(self.slot[order], kind="stable")]
        groups = np.searchsorted(self.slot[order], np.arange(len(self.chosen) + 2))
        return Ranking(order, groups, self.near[order], self.second[order], self.problem.weights[order])


def search_samples(problem: PointProblem, k: int, rng: np.random.Generator, max_swaps: int) -> IntArray:
    """Choose k of many candidates: start from a sample, move centres within clusters, and swap some.

    After de Mathelin et al. (2022): all distances to the source come from a tree, and medoids are updated
    cluster by cluster by a batched branch and bound. A screening of sampled candidates for swaps is added,
    which moves centres between clusters. Memory grows like n k; time like n squared over k.
    """
    search = Search(problem, _start_from_sample(problem, k, rng, max_swaps), max_swaps)
    cost = np.inf
    for _ in range(ROUNDS):
        if search.cost > (1 - ENOUGH) * cost:
            break
        cost = search.cost
        recentre(search)
        # All candidates are looked at if there is time, else more of those that pay more.
        sample, size = problem.candidates, max(1024, WORK // len(problem))
        if size < len(sample):
            payments = (search.near * problem.weights)[sample].astype(np.float64)
            shares = _mix_shares(payments, np.ones(len(payments)))
            sample = sample[np.sort(rng.choice(len(sample), size, replace=False, p=shares))]
        search.offer_all(search.promising(sample))
    recentre(search)
    return search.chosen


def _start_from_sample(problem: Problem, k: int, rng: np.random.Generator, max_swaps: int) -> IntArray:
    """Solve the problem on a sample that prefers points far from the source, and corrects for it."""
    n = len(problem.candidates)
    caps, weights = (a[problem.candidates].astype(np.float64) for a in (problem.caps, problem.weights))
    shares = _mix_shares(weights * caps, weights)
    size = min(n, max(8 * k, min(SAMPLE, n // 4)))
    drawn = np.sort(rng.choice(n, size, replace=False, p=shares))
    sampled = problem.candidates[drawn]
    sample = PointProblem(
        problem.rows[sampled].astype(np.float64),
        caps[drawn],
        weights[drawn] / shares[drawn] / n,
        np.arange(size),
    )
    return np.asarray(sampled[best_of(sample, k, 1, max_swaps)])


def _mix_shares(*parts: FloatArray) -> FloatArray:
    """Probabilities in equal shares proportional to each of the parts, and to 1."""
    shares = [part / part.sum() if part.any() else np.zeros_like(part) for part in parts]
    mixed = np.sum([*shares, np.full(len(parts[0]), 1 / len(parts[0]))], axis=0)
    return np.asarray(mixed / mixed.sum())


def recentre(search: Search) -> None:
    """Move centres to the best member of their cluster, until none moves."""
    for _ in range(20):
        swaps = search.swaps
        for candidate in np.unique(find_best_members(search)).tolist():
            search.offer(candidate)
        if search.swaps == swaps:
            return


def find_best_members(search: Search) -> IntArray:
    """For each cluster the member that would serve it best, where that is not its centre."""
    ranking, members = search.ranking(), np.full(len(search.chosen), -1)
    allowed = np.isin(ranking.order, search.problem.candidates)

    def update(clusters: slice) -> None:
        c = clusters.start
        part = slice(ranking.groups[c], ranking.groups[c + 1])
        order, weights = ranking.order[part], ranking.weights[part]
        if not weights.any():
            return
        # The members nearest to the mean are tried first; of a huge cluster only those.
        rows = search.problem.rows[order]
        away = np.linalg.norm(rows - np.average(rows, axis=0, weights=weights), axis=1)
        nearest = np.argsort(np.where(allowed[part], away, np.inf), kind="stable")
        most = max(64, WORK // len(search.chosen) // len(rows))
        tried = nearest[: min(allowed[part].sum(), most)]
        best = best_member(
            np.ascontiguousarray(rows.T),
            rows[tried],
            search.problem.rows[search.chosen[c]],
            ranking.near[part][tried],
            ranking.second[part],
            weights,
        )
        if best >= 0:
            members[c] = order[tried[best]]

    in_parts(update, len(members), 1)
    return members[members >= 0]


# The compiled passes read every number once and in order, and release the interpreter's lock. Those that sum
# in float32 do so over short runs and add the runs in float64.


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def _distances(
    axes: Floats, first: int, point: Floats, distances: Floats
) -> None:  # pragma: no cover - compiled
    """Distances from one point to others, from the first on; their coordinates come axis by axis.

    Axes come in multiples of four. Without reassociation: the same two points
    are equally far wherever they stand.
    """
    last = first + distances.shape[0]
    distances[:] = 0
    for a in range(0, axes.shape[0], 4):
        a0, a1 = axes[a, first:last], axes[a + 1, first:last]
        a2, a3 = axes[a + 2, first:last], axes[a + 3, first:last]
        x0, x1, x2, x3 = point[a], point[a + 1], point[a + 2], point[a + 3]
        for j in range(distances.shape[0]):
            g0, g1, g2, g3 = a0[j] - x0, a1[j] - x1, a2[j] - x2, a3[j] - x3
            distances[j] += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3)
    for j in range(distances.shape[0]):
        distances[j] = np.sqrt(distances[j])


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def fill(axes: Floats, rows: Floats, matrix: Floats) -> None:  # pragma: no cover - compiled
    """Distances from each of some points (``rows``) to all (``axes``)."""
    for i in range(rows.shape[0]):
        _distances(axes, 0, rows[i], matrix[i])


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def _gain(column: Floats, near: Floats, weights: Floats) -> float:  # pragma: no cover - compiled
    total, zero = 0.0, near[0] - near[0]
    for start in range(0, column.shape[0], RUN):
        part = zero
        for i in range(start, min(start + RUN, column.shape[0])):
            saved = near[i] - column[i]
            part += (saved if saved > zero else zero) * weights[i]
        total += part
    return total


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def matrix_gains(
    matrix: Floats, candidates: IntArray, near: Floats, weights: Floats, gains: Floats
) -> None:  # pragma: no cover - compiled
    """How much each candidate would save as one more centre."""
    for c in range(candidates.shape[0]):
        gains[c] = _gain(matrix[candidates[c]], near, weights)


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def bound_balls(
    rows: Floats, runs: IntArray, centres: Floats, radii: Floats
) -> None:  # pragma: no cover - compiled
    """Mean of each run of points, and how far from it they reach; an empty run reaches nothing."""
    radii[:] = -np.inf
    for r in range(radii.shape[0]):
        for i in range(runs[r], runs[r + 1]):
            centres[r] += rows[i] / (runs[r + 1] - runs[r])
        for i in range(runs[r], runs[r + 1]):
            square = 0.0
            for a in range(rows.shape[1]):
                square += (rows[i, a] - centres[r, a]) ** 2
            radii[r] = max(radii[r], np.sqrt(square))


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def bound_runs(
    runs: IntArray, near: Floats, second: Floats, weights: Floats, highest: Floats, losses: Floats
) -> None:  # pragma: no cover - compiled
    """Largest second distance of each run, and what the removal of its centre costs."""
    highest[:], losses[:] = 0.0, 0.0
    for r in range(losses.shape[0]):
        for i in range(runs[r], runs[r + 1]):
            highest[r] = max(highest[r], second[i])
            losses[r] += (second[i] - near[i]) * weights[i]


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def point_gains(
    axes: Floats,
    runs: IntArray,
    ball_axes: Floats,
    reach: Floats,
    points: Floats,
    near: Floats,
    weights: Floats,
    gains: Floats,
) -> None:  # pragma: no cover - compiled
    """How much each of some ``points`` would save as one more centre, without a matrix.

    A run of points from which all are further than they are from a centre now is passed over.
    """
    away, scratch = np.empty(reach.shape[0], near.dtype), np.empty(RUN, near.dtype)
    for c in range(points.shape[0]):
        gains[c] = 0.0
        _distances(ball_axes, 0, points[c], away)
        for r in range(reach.shape[0]):
            if away[r] < reach[r]:
                first, last = runs[r], runs[r + 1]
                _distances(axes, first, points[c], scratch[: last - first])
                gains[c] += _gain(scratch[: last - first], near[first:last], weights[first:last])


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def _add(
    row: Floats, near: Any, second: Any, weight: Any, shared: Floats, own: Floats
) -> None:  # pragma: no cover - compiled
    """Add one point's part to a block of candidates: whichever centre goes, and if its own goes."""
    for j in range(row.shape[0]):
        d = row[j]
        low = d if d < near else near
        high = d if d < second else second
        shared[j] += (low - near) * weight
        own[j] += (high - low) * weight


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def _move(part: Floats, total: Floats) -> None:  # pragma: no cover - compiled
    for j in range(part.shape[0]):
        total[j] += part[j]
        part[j] = 0


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def _close_group(own: Floats, changes: Floats) -> None:  # pragma: no cover - compiled
    """One centre's points are all seen: keep it where its removal is the cheapest so far."""
    for j in range(own.shape[0]):
        changes[j] = min(changes[j], own[j])
        own[j] = 0.0


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def matrix_changes(
    matrix: Floats,
    start: int,
    order: IntArray,
    groups: IntArray,
    near: Floats,
    second: Floats,
    weights: Floats,
    changes: Floats,
) -> None:  # pragma: no cover - compiled
    """Change of the cost by the best swap of each candidate from column ``start`` on, in one pass.

    Points come grouped by their centre (``order``, ``groups``; the last group's
    is its cap), and ``near``, ``second`` and ``weights`` in that order too.
    """
    stop = start + changes.shape[0]
    run, own_run = np.zeros(stop - start, near.dtype), np.zeros(stop - start, near.dtype)
    shared, own = np.zeros(stop - start), np.zeros(stop - start)
    changes[:] = np.inf
    for c in range(groups.shape[0] - 1):
        for first in range(groups[c], groups[c + 1], RUN):
            for p in range(first, min(first + RUN, groups[c + 1])):
                _add(matrix[order[p], start:stop], near[p], second[p], weights[p], run, own_run)
            _move(run, shared)
            _move(own_run, own)
        if c < groups.shape[0] - 2:  # a cap cannot be removed
            _close_group(own, changes)
    changes += shared


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def point_changes(
    axes: Floats,
    rows: Floats,
    runs: IntArray,
    closes: BoolArray,
    ball_axes: Floats,
    reach: Floats,
    losses: Floats,
    near: Floats,
    second: Floats,
    weights: Floats,
    changes: Floats,
) -> None:  # pragma: no cover - compiled
    """Do as `matrix_changes` without a matrix: ``axes`` of the candidates, ``rows`` of the grouped points.

    A run of points all of which have two centres nearer than any candidate is
    passed over: of it, only what the removal of its own centre costs counts.
    """
    size = changes.shape[0]
    scratch, run, own_run = np.empty(size, near.dtype), np.zeros(size, near.dtype), np.zeros(size, near.dtype)
    shared, own = np.zeros(size), np.zeros(size)
    middle, away = np.empty(axes.shape[0], near.dtype), np.empty(reach.shape[0], near.dtype)
    for a in range(axes.shape[0]):
        middle[a] = axes[a].mean()
    _distances(axes, 0, middle, scratch)
    radius = scratch.max()
    _distances(ball_axes, 0, middle, away)
    changes[:] = np.inf
    for r in range(reach.shape[0]):
        if away[r] - radius < reach[r]:
            for p in range(runs[r], runs[r + 1]):
                _distances(axes, 0, rows[p], scratch)
                _add(scratch, near[p], second[p], weights[p], run, own_run)
            _move(run, shared)
            _move(own_run, own)
        else:
            own += losses[r]
        if closes[r]:
            _close_group(own, changes)
    changes += shared


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def _capped_sum(
    axes: Floats, point: Floats, start: int, limits: Floats, weights: Floats, scratch: Floats
) -> float:  # pragma: no cover - compiled
    """Cost of one run of a cluster's members if its centre were ``point``."""
    size = min(RUN, limits.shape[0] - start)
    _distances(axes, start, point, scratch[:size])
    total = limits[0] - limits[0]
    for i in range(size):
        d, limit = scratch[i], limits[start + i]
        total += (d if d < limit else limit) * weights[start + i]
    return float(total)


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def best_member(
    axes: Floats, rows: Floats, old: Floats, away: Floats, limits: Floats, weights: Floats
) -> int:  # pragma: no cover - compiled
    """Find the member that serves its cluster best, by branch and bound over runs of members.

    Each member pays at most its limit, so a cost moves by no more than the
    weight times the distance that the centre moves. A candidate ``away`` from
    the old centre is dropped as soon as its cost on the runs seen, plus the least
    that the others can cost by that rule, reaches the best cost so far.

    Returns -1 if no member is better than the old centre.
    """
    scratch = np.empty(RUN, limits.dtype)
    runs = (limits.shape[0] + RUN - 1) // RUN
    rest, weight = np.zeros(runs + 1), np.zeros(runs + 1)
    for r in range(runs - 1, -1, -1):
        rest[r] = rest[r + 1] + _capped_sum(axes, old, r * RUN, limits, weights, scratch)
        weight[r] = weight[r + 1] + weights[r * RUN : (r + 1) * RUN].sum()
    least, winner = rest[0], -1
    for j in range(rows.shape[0]):
        cost, r = 0.0, 0
        while r < runs and cost + max(0.0, rest[r] - weight[r] * away[j]) < least:
            cost += _capped_sum(axes, rows[j], r * RUN, limits, weights, scratch)
            r += 1
        if r == runs and cost < least:
            least, winner = cost, j
    return winner


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def _rank(
    table: Floats, caps: Floats, i: int, near: Floats, second: Floats, slot: IntArray
) -> None:  # pragma: no cover - compiled
    """Nearest and second nearest of a point's centres and its cap; the cap's slot is one past the last."""
    first, next_, own = caps[i], caps[i], table.shape[1]
    for c in range(table.shape[1]):
        d = table[i, c]
        if d < first:
            first, next_, own = d, first, c
        elif d < next_:
            next_ = d
    near[i], second[i], slot[i] = first, next_, own


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def rank_all(
    table: Floats, caps: Floats, weights: Floats, near: Floats, second: Floats, slot: IntArray, losses: Floats
) -> None:  # pragma: no cover - compiled
    """Rank every point's centres, and sum what the removal of each centre would cost."""
    losses[:] = 0.0
    for i in range(table.shape[0]):
        _rank(table, caps, i, near, second, slot)
        losses[slot[i]] += (second[i] - near[i]) * weights[i]
    losses[table.shape[1]] = np.inf


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def best_removal(
    column: Floats, weights: Floats, near: Floats, second: Floats, slot: IntArray, losses: Floats
) -> tuple[float, int]:  # pragma: no cover - compiled
    """Change of the cost if a candidate replaces the centre that is best removed for it, and that centre."""
    change, removed = 0.0, losses.copy()
    for i in range(column.shape[0]):
        d = column[i]
        if d < second[i]:
            if d < near[i]:
                change += (d - near[i]) * weights[i]
                removed[slot[i]] += (near[i] - second[i]) * weights[i]
            else:
                removed[slot[i]] += (d - second[i]) * weights[i]
    best = int(np.argmin(removed))
    return change + removed[best], best


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def replace_centre(
    column: Floats,
    out: int,
    table: Floats,
    caps: Floats,
    weights: Floats,
    near: Floats,
    second: Floats,
    slot: IntArray,
    losses: Floats,
) -> None:  # pragma: no cover - compiled
    """Put a candidate's distances in the place of centre ``out``; rank again only the points that notice."""
    for i in range(column.shape[0]):
        old, table[i, out] = table[i, out], column[i]
        if old <= second[i] or column[i] < second[i]:
            losses[slot[i]] -= (second[i] - near[i]) * weights[i]
            _rank(table, caps, i, near, second, slot)
            losses[slot[i]] += (second[i] - near[i]) * weights[i]
    losses[table.shape[1]] = np.inf


__all__ = ["ExpectedProblem", "GivenProblem", "MatrixProblem", "PointProblem", "Search", "best_of", "greedy"]
