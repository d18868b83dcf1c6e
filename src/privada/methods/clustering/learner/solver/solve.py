"""Choose k target points as centres beside a source that serves for free.

The problem is k-medoids with a cap: point i pays the least of its distance to
the source, ``caps[i]``, and of its distances to the chosen points. In a matrix
of what i pays to candidate j the cap belongs to the row; such a matrix is not
symmetric, and transposed it is another problem. Here distances stay uncapped and
the cap is one more centre of its point, which cannot be removed.

Start: greedy, the best candidate first, by lazy evaluation. Then swaps of one
centre for one candidate, as in FasterPAM, until none lowers the cost. For many
points, see `_large`. Nothing here is private: targets are public, and caps come
from a release or from no source at all.

References
----------
.. [1] E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering", Information Systems 101, 2021.
.. [2] A. de Mathelin et al., "Discrepancy-based active learning for domain adaptation", ICLR 2022.
.. [3] J. Leskovec et al., "Cost-effective outbreak detection in networks", KDD 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.clustering.learner.solver import objective

LARGEST_MATRIX = 20_000
"""No n-by-n matrix is made for more points than this."""

METHODS = ("auto", "large", "swap")

_Seed = int | np.random.Generator | None
_Parts = tuple[FloatArray, FloatArray, FloatArray, IntArray]


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


def medoids(
    target: npt.ArrayLike,
    k: int,
    *,
    caps: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    random_state: _Seed = None,
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
    random_state : int, numpy Generator or None
        For the samples of ``large``; ``swap`` draws nothing.
    method : {"auto", "swap", "large"}
        ``swap`` ends where no single swap lowers the cost, for few points from
        several starts; its time grows like n squared. ``large`` starts from a
        sample and looks at samples of the candidates. ``auto`` is ``swap`` for
        up to 20,000 points.
    max_swaps : int
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

    >>> caps = objective.source_distances(target, [[1.0]])
    >>> medoids(target, 1, caps=caps).indices.tolist()
    [4]
    """
    T = _check.matrix(target=target)
    _check.one_of(METHODS, method=method)
    wanted, swaps = _check.count(least=0, k=k), _check.count(least=0, max_swaps=max_swaps)
    limits, shares = _check_caps(caps, len(T)), objective.check_weights(weights, len(T))
    if wanted == 0 and np.isinf(limits).any():
        raise InputError("Expected k > 0 where there is no source; without any centre the cost is infinite.")
    chosen = distinct(T)
    if wanted == 0:
        chosen = chosen[:0]
    elif wanted < len(chosen):
        problem = (*scaled(T, limits), shares, chosen)
        large = method == "large" or (method == "auto" and len(T) > LARGEST_MATRIX)
        solve = partial(_by_samples, random_state) if large else _by_swaps
        chosen = np.sort(solve(problem, wanted, swaps))
    return _priced(T, chosen, limits, shares)


def _by_swaps(problem: _Parts, k: int, max_swaps: int) -> IntArray:
    from privada.methods.clustering.learner.solver.problem import MatrixProblem, PointProblem
    from privada.methods.clustering.learner.solver.search import best_of

    n, width = problem[0].shape
    form = MatrixProblem if _pays_off(n, width) else PointProblem
    starts = 4 if n <= 256 else 2 if n <= 4096 else 1
    return best_of(form(*problem), k, starts, max_swaps)


def _by_samples(random_state: _Seed, problem: _Parts, k: int, max_swaps: int) -> IntArray:
    from privada.methods.clustering.learner.solver import large
    from privada.methods.clustering.learner.solver.problem import PointProblem

    return large.search(PointProblem(*problem), k, np.random.default_rng(random_state), max_swaps)


def _pays_off(n: int, width: int) -> bool:
    """Whether a matrix of distances is faster than making them when needed, and may be made."""
    return n <= 2048 or (width > 12 and n <= LARGEST_MATRIX)


def scaled(T: FloatArray, caps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bring the target into a box of diagonal 1 around 0, and caps to that unit, at most a little over 1."""
    low, high = T.min(axis=0), T.max(axis=0)
    diagonal = float(np.max(high / 2 - low / 2)) * 2 * T.shape[1] ** 0.5
    if diagonal > 1e150:
        raise InputError("Expected target values below 1e150, so that squared distances are finite.")
    return (T - (high / 2 + low / 2)) / diagonal, np.minimum(caps / diagonal, 1.0 + 1e-5)


def distinct(T: FloatArray) -> IntArray:
    """First row of each distinct point, in order."""
    rows = np.ascontiguousarray(T + 0.0)  # adding 0 makes -0 the same bytes as 0
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first = np.unique(keys, return_index=True)
    return np.sort(first).astype(np.int64)


def _check_caps(caps: npt.ArrayLike | None, n: int) -> FloatArray:
    if caps is None:
        return np.full(n, np.inf)
    found = np.asarray(caps, dtype=np.float64)
    if found.shape != (n,):
        raise InputError(f"Expected caps of shape ({n},), got {found.shape}.")
    if np.isnan(found).any() or (found < 0).any():
        raise InputError("Expected caps >= 0; they hold a missing or negative value.")
    return found


def _priced(T: FloatArray, chosen: IntArray, caps: FloatArray, weights: FloatArray) -> Solution:
    served = objective.source_distances(T, T[chosen])
    return Solution(chosen, objective.mean(np.minimum(caps, served), weights))


__all__ = ["LARGEST_MATRIX", "Solution", "distinct", "medoids", "scaled"]
