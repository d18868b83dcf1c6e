"""Choose k target points as centres beside a source that serves for free, and what a choice costs.

Each target point is served by the nearest source point or chosen centre. The source's part is a distance for
each target point, its *cap*: whatever is chosen, the point pays no more. So the problem is k-medoids with
caps: point i pays the least of ``caps[i]`` and of its distances to the chosen points. In a matrix
of what i pays to candidate j the cap belongs to the row; such a matrix is not
symmetric, and transposed it is another problem. Here distances stay uncapped and
the cap is one more centre of its point, which cannot be removed.

The search (`privada.methods.clustering.learner.search`) starts with the greedy choice and then swaps one
centre for one candidate, as in FasterPAM, until no swap lowers the cost. For many points it looks at samples.
Nothing here is private: targets are public, and caps come from a release or from no source at all.

References
----------
.. [1] E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering", Information Systems 101, 2021.
.. [2] A. de Mathelin et al., "Discrepancy-based active learning for domain adaptation", ICLR 2022.
.. [3] J. Leskovec et al., "Cost-effective outbreak detection in networks", KDD 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError

METHODS = ("auto", "large", "swap")
FEW_POINTS = 2048  # up to here a matrix of distances is faster than making them when they are needed
MANY_FEATURES = 12  # above, a matrix pays off for more points, and a tree looks at most points anyway
LARGEST_MATRIX = 20_000  # points; no n-by-n matrix is made for more
MOST_AVERAGED = 8000  # points; up to here the matrix of average payments is made, by candidate and by point
BLOCK = 2**20  # numbers of a block of distances: 4 MB


@dataclass(frozen=True, eq=False)
class Solution:
    """Chosen centres and what they cost.

    Attributes
    ----------
    indices : array of shape (k,)
        Rows of the target, in increasing order, no two of them the same point.
    cost : float
        Weighted mean over the target of the distance to the nearest of source and centres.
    """

    indices: IntArray
    cost: float


def cost(
    target: npt.ArrayLike,
    source: npt.ArrayLike | None,
    chosen: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> float:
    """Mean distance of target points to the nearest of source and chosen points.

    Parameters
    ----------
    target : array of shape (n, d)
    source : array of shape (m, d) or None
        May have no rows, which is what None stands for.
    chosen : array of shape (k, d)
        The centres themselves; may have no rows.
    weights : array of shape (n,), optional
        The mean is weighted by these.

    Raises
    ------
    InputError
        If there is neither a source point nor a chosen one, or an array is not
        finite or of the wrong shape.

    Examples
    --------
    >>> target = [[0.0], [1.0], [10.0], [13.0]]
    >>> cost(target, [[0.0]], [[10.0]])
    1.0
    >>> cost(target, [[0.0]], [])
    6.0
    """
    T = _check.matrix(target=target)
    S, centres = _check_points(T.shape[1], source=source), _check_points(T.shape[1], chosen=chosen)
    if not len(S) and not len(centres):
        raise InputError(
            "Expected at least one source point or chosen centre; without any the cost is infinite."
        )
    distances = np.minimum(_measure_nearest(T, S), _measure_nearest(T, centres))
    return float(np.average(distances, weights=_check_weights(weights, len(T))))


def source_distances(target: npt.ArrayLike, source: npt.ArrayLike | None) -> FloatArray:
    """Distance of each target point to the nearest source point; infinite if there is none.

    A tree answers in few dimensions. In many, blocks of matrix products find the
    nearest point, up to their rounding, and its distance is then computed exactly.

    Examples
    --------
    >>> source_distances([[0.0, 0.0], [3.0, 4.0]], [[0.0, 0.0]]).tolist()
    [0.0, 5.0]
    >>> source_distances([[0.0, 0.0]], None).tolist()
    [inf]
    """
    T = _check.matrix(target=target)
    return _measure_nearest(T, _check_points(T.shape[1], source=source))


def medoids(
    target: npt.ArrayLike,
    k: int,
    *,
    caps: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
    method: str = "auto",
    max_swaps: int = 10_000,
) -> Solution:
    """Choose k target points that serve the target best, beside a source.

    Parameters
    ----------
    target : array of shape (n, d)
    k : int
        Number of centres. If the target has fewer distinct points, all of them
        are chosen; 0 chooses none.
    caps : array of shape (n,), optional
        What each point pays at most: its distance to the source
        (`source_distances`). Infinite, and so without a source, by default.
    weights : array of shape (n,), optional
        How much each point counts; a weight of 2 is the point twice.
    random_state : int, numpy Generator or None, default=None
        For the samples of ``large``; ``swap`` draws nothing.
    method : {"auto", "swap", "large"}, default="auto"
        ``swap`` ends where no single swap lowers the cost, for few points from
        several starts; its time grows like n squared. ``large`` starts from a
        sample and looks at samples of the candidates. ``auto`` is ``swap`` for
        up to 20,000 points.
    max_swaps : int, default=10_000
        Stop after so many swaps.

    Returns
    -------
    Solution
        On ties the smallest index.

    Raises
    ------
    InputError
        On bad shapes, values that are not finite, and k = 0 without a source.

    Examples
    --------
    >>> target = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    >>> medoids(target, 2)
    Solution(indices=array([1, 4]), cost=0.6666666666666666)

    A source at 1 serves the first three points already:

    >>> caps = source_distances(target, [[1.0]])
    >>> medoids(target, 1, caps=caps).indices.tolist()
    [4]
    """
    T = _check.matrix(target=target)
    _check.one_of(METHODS, method=method)
    size, swaps = _check.count(least=0, k=k), _check.count(least=0, max_swaps=max_swaps)
    limits = np.full(len(T), np.inf) if caps is None else np.asarray(caps, dtype=np.float64)
    if limits.shape != (len(T),):
        raise InputError(f"Expected caps of shape ({len(T)},), got {limits.shape}.")
    if np.isnan(limits).any() or (limits < 0).any():
        raise InputError("Expected caps >= 0; they hold a missing or negative value.")
    shares = _check_weights(weights, len(T))
    if size == 0 and np.isinf(limits).any():
        raise InputError("Expected k > 0 where there is no source; without any centre the cost is infinite.")
    chosen = find_distinct(T)
    if size == 0:
        chosen = chosen[:0]
    elif size < len(chosen):
        from privada.methods.clustering.learner import search  # compiled: imported where it is used

        n, width = T.shape
        parts = (*scale_problem(T, limits), shares, chosen)
        if method == "large" or (method == "auto" and n > LARGEST_MATRIX):
            rng = np.random.default_rng(random_state)
            chosen = search.search_samples(search.PointProblem(*parts), size, rng, swaps)
        else:
            by_matrix = n <= FEW_POINTS or (width > MANY_FEATURES and n <= LARGEST_MATRIX)
            problem = search.MatrixProblem(*parts) if by_matrix else search.PointProblem(*parts)
            starts = 4 if n <= 256 else 2 if n <= 4096 else 1
            chosen = search.best_of(problem, size, starts, swaps)
    chosen = np.sort(chosen)
    payments = np.minimum(limits, _measure_nearest(T, T[chosen]))
    return Solution(chosen, float(np.average(payments, weights=shares)))


def expected_medoids(
    target: npt.ArrayLike, k: int, *, caps: npt.ArrayLike, random_state: int | None = None
) -> Solution:
    """Choose k target points that serve the target best on average over several plausible sources.

    One source gives one cap to each point. Over several, point i pays ``mean_q min(d(i, j), caps[q, i])`` to
    candidate j, and the same search runs on the matrix of these payments. For many points, where no
    matrix is made, the mean caps stand in.

    Parameters
    ----------
    target : array of shape (n, d)
    k : int
        Number of centres; 0 chooses none.
    caps : array of shape (sources, n)
        What each point pays at most under each plausible source.
    random_state : int, default=None
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
    candidates = find_distinct(T)
    if len(limits) == 1 or len(T) > MOST_AVERAGED or k == 0 or k >= len(candidates):
        indices = medoids(T, k, caps=limits.mean(axis=0), random_state=random_state).indices
    else:
        from privada.methods.clustering.learner.search import ExpectedProblem, Search, greedy

        points, _ = scale_problem(T, limits[0])
        scaled = np.array([scale_problem(T, row)[1] for row in limits])
        problem = ExpectedProblem(points, scaled, np.ones(len(T)), candidates)
        search = Search(problem, greedy(problem, _check.count(k=k)), 10_000)
        search.improve()
        indices = np.sort(search.chosen)
    return Solution(indices, float(np.minimum(limits, _measure_nearest(T, T[indices])).mean()))


def scale_problem(T: FloatArray, caps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bring the target into a box of diagonal 1 around 0, and caps to that unit, at most a little over 1."""
    low, high = T.min(axis=0), T.max(axis=0)
    # halves, so that no difference of two large floats overflows
    diagonal = float(np.max(high / 2 - low / 2)) * 2 * T.shape[1] ** 0.5
    if diagonal > 1e150:
        raise InputError("Expected target values below 1e150, so that squared distances are finite.")
    return (T - (high / 2 + low / 2)) / diagonal, np.minimum(caps / diagonal, 1.0 + 1e-5)


def find_distinct(T: FloatArray) -> IntArray:
    """First row of each distinct point, in order."""
    rows = np.ascontiguousarray(T + 0.0)  # adding 0 makes -0 the same bytes as 0
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first = np.unique(keys, return_index=True)
    return np.sort(first).astype(np.int64)


def _check_points(width: int, **named: npt.ArrayLike | None) -> FloatArray:
    """Points as a finite matrix of that width; it may have no rows."""
    ((_, value),) = named.items()
    if value is None or np.size(value) == 0:
        return np.empty((0, width))
    return _check.matrix(width=width, **named)


def _check_weights(weights: npt.ArrayLike | None, n: int) -> FloatArray:
    """Weights that are finite, not negative and not all 0; ones if there are none."""
    if weights is None:
        return np.ones(n)
    shares = np.asarray(weights, dtype=np.float64)
    if shares.shape != (n,):
        raise InputError(f"Expected weights of shape ({n},), got {shares.shape}.")
    if not np.isfinite(shares).all() or (shares < 0).any() or not shares.any():
        raise InputError("Expected weights to be finite, >= 0 and not all 0.")
    return np.asarray(shares / shares.max())


def _measure_nearest(T: FloatArray, centres: FloatArray) -> FloatArray:
    """Distance of each row to the nearest centre."""
    if not len(centres):
        return np.full(len(T), np.inf)
    if T.shape[1] <= MANY_FEATURES:
        from scipy.spatial import cKDTree

        return np.asarray(cKDTree(centres).query(T, workers=-1)[0], dtype=np.float64)
    # In blocks that stay in the cache, a product in single precision finds the nearest centre of each row;
    # only its distance is computed exactly. Single precision overflows early, so everything is scaled.
    middle = centres.mean(axis=0)
    reach = max(np.abs(centres - middle).max(), np.abs(T - middle).max()) or 1.0
    shifted = (centres - middle) / reach
    half = np.einsum("ij,ij->i", shifted, shifted) / 2
    table = np.ascontiguousarray(np.column_stack([shifted, -half]).T, dtype=np.float32)
    distances, step = np.empty(len(T)), max(1, BLOCK // len(centres))
    for start in range(0, len(T), step):
        rows = T[start : start + step]
        extended = np.column_stack([(rows - middle) / reach, np.ones(len(rows))]).astype(np.float32)
        closest = (extended @ table).argmax(axis=1)
        distances[start : start + step] = np.linalg.norm(rows - centres[closest], axis=1)
    return distances


__all__ = ["Solution", "cost", "expected_medoids", "medoids", "source_distances"]
