"""Summaries that people would make instead: Kim et al.'s greedy, uniform sampling, thresholding.

All of them see the exact rows; none is private.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import IntArray
from privada.exceptions import InputError


def kernel_greedy(rows: npt.ArrayLike, validation: npt.ArrayLike, size: int, *, gamma: float) -> IntArray:
    """Greedy matching under the exact kernel ``exp(-gamma |x - y|²)`` (Kim, Khanna and Koyejo 2016).

    Parameters
    ----------
    rows : array of shape (n, features)
        All owners' rows together, in the clear.
    validation : array of shape (m, features)
    size : int
    gamma : float

    Returns
    -------
    array of int
        Indices in the order of choice.

    >>> kernel_greedy([[0.0], [1.0], [5.0]], [[0.0], [1.0]], 2, gamma=1.0).tolist()
    [0, 1]
    """
    from scipy.spatial.distance import cdist

    X, V = _check.matrix(rows=rows), _check.matrix(validation=validation)
    _at_most(size, len(X))
    pull = np.exp(-gamma * cdist(X, V, "sqeuclidean")).mean(axis=1)
    score = pull.copy()
    chosen = np.empty(size, dtype=np.int64)
    for step in range(size):
        best = int(np.argmax(score))
        chosen[step] = best
        score[best] = -np.inf
        score += pull - np.exp(-gamma * cdist(X, X[best : best + 1], "sqeuclidean")[:, 0])
    return chosen


def uniform_sample(sizes: Sequence[int], size: int, *, random_state: int | None = None) -> list[IntArray]:
    """As many rows of each owner, at random; owners that have fewer give all, the others the rest.

    Returns
    -------
    list of arrays of int
        Indices into each owner's rows.

    >>> [len(part) for part in uniform_sample([100, 2, 100], 12, random_state=0)]
    [5, 2, 5]
    """
    n = np.asarray(sizes, dtype=np.int64)
    _at_most(size, int(n.sum()))
    rng = np.random.default_rng(random_state)
    counts = np.zeros_like(n)
    while (left := size - int(counts.sum())) > 0:
        room = np.flatnonzero(counts < n)
        if left < len(room):
            counts[rng.choice(room, left, replace=False)] += 1
        else:
            counts[room] += np.minimum(left // len(room), (n - counts)[room])
    return [rng.choice(total, count, replace=False) for total, count in zip(n, counts, strict=True)]


def fourier_threshold(features: npt.ArrayLike, target: npt.ArrayLike, size: int) -> IntArray:
    """The rows whose random Fourier features agree most with the validation mean: a threshold, no matching.

    >>> fourier_threshold([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]], [1.0, 0.0], 2).tolist()
    [0, 2]
    """
    H = _check.matrix(features=features)
    _at_most(size, len(H))
    order = np.argsort(-(H @ np.asarray(target, dtype=np.float64)), kind="stable")
    return np.asarray(order[:size], dtype=np.int64)


def _at_most(size: int, rows: int) -> None:
    if _check.count(size=size) > rows:
        raise InputError(f"Expected size to be at most the {rows} rows, got {size}.")


__all__ = ["fourier_threshold", "kernel_greedy", "uniform_sample"]
