"""Centres that cost least on average over several plausible sources.

One source gives one cap to each point. Over several, point i pays
``mean_q min(d(i, j), caps[q, i])`` to candidate j: a matrix of what is paid, on
which the same search runs. For many points, where no matrix is made, the mean
caps stand in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.clustering.learner.solver import objective, problem
from privada.methods.clustering.learner.solver.search import Search, greedy
from privada.methods.clustering.learner.solver.solve import Solution, distinct, medoids, scaled

MOST_POINTS = 8000
"""Up to here the matrix of what is paid is made, twice: by candidate and by point."""


class ExpectedProblem(problem.MatrixProblem):
    """What each point pays to each candidate, on average over sources."""

    def __init__(
        self, points: FloatArray, caps: FloatArray, weights: FloatArray, candidates: npt.NDArray[np.int64]
    ) -> None:
        super().__init__(points, caps.mean(axis=0), weights, candidates)
        sources = np.ascontiguousarray(caps, dtype=self.dtype)
        self.split(len(self), 256, lambda a, b: self._average(sources, a, b))
        self._by_point = np.ascontiguousarray(self._matrix.T)

    def _average(self, sources: problem.Floats, start: int, stop: int) -> None:
        """Replace distances of some candidates by what is paid; a row is one candidate's."""
        block = self._matrix[start:stop]
        paid = np.zeros_like(block)
        for caps in sources:
            paid += np.minimum(block, caps)
        block[:] = paid / len(sources)

    def changes(self, wanted: IntArray, ranking: problem.Ranking) -> FloatArray:
        by_candidate, self._matrix = self._matrix, self._by_point
        try:
            return super().changes(wanted, ranking)
        finally:
            self._matrix = by_candidate


def expected_medoids(
    target: npt.ArrayLike, k: int, *, caps: npt.ArrayLike, random_state: int | None = None
) -> Solution:
    """Choose k target points that serve the target best on average.

    Parameters
    ----------
    target : array of shape (n, d)
    k : int
        Number of centres; 0 chooses none.
    caps : array of shape (sources, n)
        What each point pays at most under each plausible source.
    random_state : int, optional
        For the search over very many points.

    >>> target = [[0.0], [1.0], [2.0], [10.0]]
    >>> near_left = [0.1, 0.1, 0.1, 9.0]
    >>> expected_medoids(target, 1, caps=[near_left, near_left]).indices.tolist()
    [3]
    """
    T = _check.matrix(target=target)
    limits = np.atleast_2d(np.asarray(caps, dtype=np.float64))
    if limits.ndim != 2 or limits.shape[1] != len(T) or np.isnan(limits).any() or (limits < 0).any():
        raise InputError(f"Expected caps >= 0 of shape (sources, {len(T)}), got {limits.shape}.")
    chosen = distinct(T)
    if len(limits) == 1 or len(T) > MOST_POINTS or k == 0 or k >= len(chosen):
        found = medoids(T, k, caps=limits.mean(axis=0), random_state=random_state)
        return Solution(found.indices, _cost(T, found.indices, limits))
    points, _ = scaled(T, limits[0])
    unit = np.array([scaled(T, row)[1] for row in limits])
    problem = ExpectedProblem(points, unit, np.ones(len(T)), chosen)
    search = Search(problem, greedy(problem, _check.count(k=k)), 10_000)
    search.improve()
    indices = np.sort(search.chosen)
    return Solution(indices, _cost(T, indices, limits))


def _cost(T: FloatArray, chosen: npt.NDArray[np.int64], caps: FloatArray) -> float:
    served = objective.source_distances(T, T[chosen])
    return float(np.minimum(caps, served).mean())


__all__ = ["expected_medoids"]
