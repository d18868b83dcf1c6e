"""K-medoids for many points: start from a sample, then move centres within their clusters and swap some.

After de Mathelin et al. (2022): all distances to the source come from a tree,
and medoids are updated cluster by cluster by a batched branch and bound. To that
comes a screening of sampled candidates for swaps, which moves centres between
clusters. Memory grows like n k; time like n squared over k.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.methods.clustering.learner.solver import kernels
from privada.methods.clustering.learner.solver.problem import (
    Floats,
    PointProblem,
    Problem,
    Ranking,
)
from privada.methods.clustering.learner.solver.search import Search, best_of

SAMPLE = 8192
"""Most points of the sample that gives the start, unless k asks for more."""

WORK = 2 * 10**9
"""Distances that one look at candidates may take, over all points."""

ROUNDS = 8
ENOUGH = 2e-4
"""A round that lowers the cost by a smaller share is the last."""


def search(problem: PointProblem, k: int, rng: np.random.Generator, max_swaps: int) -> IntArray:
    """Choose k of the candidates."""
    found = Search(problem, _start(problem, k, rng, max_swaps), max_swaps)
    cost = np.inf
    for _ in range(ROUNDS):
        if found.cost > (1 - ENOUGH) * cost:
            break
        cost = found.cost
        _recentre(found)
        found.offer_all(found.promising(_sample(found, rng)))
    _recentre(found)
    return found.chosen


def _start(problem: Problem, k: int, rng: np.random.Generator, max_swaps: int) -> IntArray:
    """Solve the problem on a sample that prefers points far from the source, and corrects for it."""
    n = len(problem.candidates)
    caps, weights = (a[problem.candidates].astype(np.float64) for a in (problem.caps, problem.weights))
    share = _mixed(weights * caps, weights)
    size = min(n, max(8 * k, min(SAMPLE, n // 4)))
    drawn = np.sort(rng.choice(n, size, replace=False, p=share))
    sampled = problem.candidates[drawn]
    sample = PointProblem(
        problem.rows[sampled].astype(np.float64),
        caps[drawn],
        weights[drawn] / share[drawn] / n,
        np.arange(size),
    )
    chosen: IntArray = sampled[best_of(sample, k, 1, max_swaps)]
    return chosen


def _sample(search: Search, rng: np.random.Generator) -> IntArray:
    """Candidates to look at: all if there is time, else more of those that pay more."""
    candidates = search.problem.candidates
    size = max(1024, WORK // len(search.problem))
    if size >= len(candidates):
        return candidates
    paid = (search.near * search.problem.weights)[candidates].astype(np.float64)
    drawn = rng.choice(len(candidates), size, replace=False, p=_mixed(paid, np.ones(len(paid))))
    return candidates[np.sort(drawn)]


def _mixed(*parts: FloatArray) -> FloatArray:
    """Probabilities in equal shares proportional to each of the parts, and to 1."""
    whole = [part / part.sum() if part.any() else np.zeros_like(part) for part in parts]
    mixed = np.sum([*whole, np.full(len(parts[0]), 1 / len(parts[0]))], axis=0)
    return np.asarray(mixed / mixed.sum())


def _recentre(search: Search) -> None:
    """Move centres to the best member of their cluster, until none moves."""
    for _ in range(20):
        swaps = search.swaps
        for candidate in np.unique(_best_members(search)).tolist():
            search.offer(candidate)
        if search.swaps == swaps:
            return


def _best_members(search: Search) -> IntArray:
    """For each cluster the member that would serve it best, where that is not its centre."""
    ranking, found = search.ranking(), np.full(len(search.chosen), -1)
    allowed = np.isin(ranking.order, search.problem.candidates)

    def update(c: int, _: int) -> None:
        found[c] = _best_member(search, ranking, allowed, c)

    search.problem.split(len(found), 1, update)
    return found[found >= 0]


def _best_member(search: Search, ranking: Ranking, allowed: npt.NDArray[np.bool_], c: int) -> int:
    """Member that would serve cluster c best, -1 if that is its centre."""
    part = slice(ranking.groups[c], ranking.groups[c + 1])
    members, weights, all_rows = ranking.order[part], ranking.weights[part], search.problem.rows
    if not weights.any():
        return -1
    rows = all_rows[members]
    tried = _central(rows, weights, allowed[part], WORK // len(search.chosen))
    old, away = all_rows[search.chosen[c]], ranking.near[part][tried]
    axes = np.ascontiguousarray(rows.T)
    best = kernels.best_member(axes, rows[tried], old, away, ranking.second[part], weights)
    return int(members[tried[best]]) if best >= 0 else -1


def _central(rows: Floats, weights: Floats, allowed: npt.NDArray[np.bool_], work: int) -> IntArray:
    """Members that may be centres, the nearest to the mean first; of a huge cluster only those."""
    away = np.linalg.norm(rows - np.average(rows, axis=0, weights=weights), axis=1)
    order = np.argsort(np.where(allowed, away, np.inf), kind="stable")
    return order[: min(allowed.sum(), max(64, work // len(rows)))]


__all__ = ["search"]
