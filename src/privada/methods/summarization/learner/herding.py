"""Greedy matching of a mean in feature space: one matrix-vector product for each chosen row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError


def herd(features: npt.ArrayLike, target: npt.ArrayLike, size: int) -> IntArray:
    """Choose rows one by one so that their mean comes nearest to ``target``.

    Parameters
    ----------
    features : array of shape (n, d)
        Embedded rows of equal norm.
    target : array of shape (d,)
    size : int
        How many; all different.

    Returns
    -------
    array of int
        Indices in the order of choice; the first of equals.

    Notes
    -----
    With S the sum of q rows so far, ``|g - (S + h)/(q+1)|²`` is least where ``(q+1) g·h - S·h`` is
    largest, if all rows have one norm. That score moves by ``g·h - h_j·h`` when j is chosen, so a step
    costs one matrix-vector product; it is kept in the precision of ``features``.

    >>> herd([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], 2).tolist()
    [0, 1]
    """
    H = np.ascontiguousarray(features)
    if H.dtype not in (np.float32, np.float64):
        H = H.astype(np.float64)
    if H.ndim != 2 or _check.count(least=0, size=size) > len(H):
        raise InputError(f"Expected size to be at most the {len(H)} rows, got {size}.")
    g = np.asarray(target, dtype=H.dtype)
    pull = H @ g
    score = pull.copy()
    chosen = np.empty(size, dtype=np.int64)
    moved = np.empty_like(pull)
    for step in range(size):
        best = int(np.argmax(score))
        chosen[step] = best
        score[best] = -np.inf
        np.dot(H, H[best], out=moved)
        np.subtract(pull, moved, out=moved)
        score += moved
    return chosen


def marginal_gains(features: npt.ArrayLike, target: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
    """Greedy order of all rows, and what each added to ``J = |g|² - |g - mean|²`` when it came.

    The gain of the first row is over an empty summary, whose J is 0.
    """
    H = np.asarray(features, dtype=np.float64)
    g = np.asarray(target, dtype=np.float64)
    order = herd(H, g, len(H))
    sums = np.concatenate([np.zeros((1, H.shape[1])), np.cumsum(H[order], axis=0)])
    means = sums / np.maximum(np.arange(len(sums)), 1)[:, None]
    worth = 2 * means @ g - np.sum(means**2, axis=1)
    return order, np.diff(worth)


__all__ = ["herd", "marginal_gains"]
