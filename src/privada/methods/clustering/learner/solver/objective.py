"""The cost of source-target clustering: how far target points are from what serves them.

Each target point is served by the nearest source point or chosen centre. The
source's part is a distance per target point, its *cap*: whatever is chosen, the
point pays no more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError

_TREE_WIDTH = 12  # in more dimensions a tree looks at most points anyway
_CHUNK = 2**20  # numbers of a block: 4 MB


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
    S, centres = _points(T.shape[1], source=source), _points(T.shape[1], chosen=chosen)
    if not len(S) and not len(centres):
        raise InputError(
            "Expected at least one source point or chosen centre; without any the cost is infinite."
        )
    return mean(np.minimum(_nearest(T, S), _nearest(T, centres)), check_weights(weights, len(T)))


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
    return _nearest(T, _points(T.shape[1], source=source))


def _points(width: int, **named: npt.ArrayLike | None) -> FloatArray:
    """Return points as a finite float64 matrix of that width; it may have no rows."""
    ((_, value),) = named.items()
    if value is None or np.size(value) == 0:
        return np.empty((0, width))
    return _check.matrix(width=width, **named)


def check_weights(weights: npt.ArrayLike | None, n: int) -> FloatArray:
    """Return n weights: finite, not negative, not all 0; ones if none are given."""
    if weights is None:
        return np.ones(n)
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (n,):
        raise InputError(f"Expected weights of shape ({n},), got {found.shape}.")
    if not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise InputError("Expected weights to be finite, >= 0 and not all 0.")
    return np.asarray(found / found.max())


def mean(distances: FloatArray, weights: FloatArray) -> float:
    """Weighted mean."""
    return float(np.average(distances, weights=weights))


def _nearest(T: FloatArray, centres: FloatArray) -> FloatArray:
    if not len(centres):
        return np.full(len(T), np.inf)
    if T.shape[1] > _TREE_WIDTH:
        return _nearest_by_products(T, centres)
    from scipy.spatial import cKDTree

    distances, _ = cKDTree(centres).query(T, workers=-1)
    return np.asarray(distances, dtype=np.float64)


def _nearest_by_products(T: FloatArray, centres: FloatArray) -> FloatArray:
    """Blocks that stay in the cache: a product in single precision finds the nearest, then it is measured."""
    middle = centres.mean(axis=0)
    reach = max(np.abs(centres - middle).max(), np.abs(T - middle).max()) or 1.0  # singles overflow early
    shifted = (centres - middle) / reach
    half = np.einsum("ij,ij->i", shifted, shifted) / 2
    table = np.ascontiguousarray(np.column_stack([shifted, -half]).T, dtype=np.float32)
    found, step = np.empty(len(T)), max(1, _CHUNK // len(centres))
    for start in range(0, len(T), step):
        rows = T[start : start + step]
        extended = np.column_stack([(rows - middle) / reach, np.ones(len(rows))]).astype(np.float32)
        closest = (extended @ table).argmax(axis=1)
        found[start : start + step] = np.linalg.norm(rows - centres[closest], axis=1)
    return found


__all__ = ["cost", "source_distances"]
