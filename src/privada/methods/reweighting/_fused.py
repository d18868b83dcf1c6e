"""One pass over all rows for one gradient: residuals, losses and the weighted sum, each row read once.

NumPy needs two products, ``X @ w`` and ``X.T @ r``, hence two reads of X. Here a row stays in the cache
between its residual and its contribution. Rows are single precision and split over threads in fixed parts,
so a result does not change from run to run. For public rows, and for those who may see all rows: sums of
floats, not of a grid.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
THREADS = 2


@numba.njit(cache=True, nogil=True, fastmath=True)  # type: ignore[untyped-decorator, unused-ignore]
def _part(
    X: Floats, y: Floats, q: Floats, w: Floats, losses: Floats, total: Floats
) -> None:  # pragma: no cover - compiled
    d = X.shape[1]
    for i in range(X.shape[0]):
        row = X[i]
        dot = np.float32(0.0)
        for j in range(d):
            dot += row[j] * w[j]
        left = dot - y[i]
        losses[i] = left * left
        pull = np.float32(2.0) * q[i] * left
        for j in range(d):
            total[j] += pull * row[j]


def weighted_gradient(X: Floats, y: Floats, q: Floats, w: Floats) -> tuple[Floats, Floats]:
    """``Σ qᵢ ∇(w·xᵢ - yᵢ)²`` and the losses, in one pass on two threads.

    >>> X = np.eye(3, dtype=np.float32)
    >>> one = np.ones(3, dtype=np.float32)
    >>> weighted_gradient(X, one, one, np.zeros(3, dtype=np.float32))[0].tolist()
    [-2.0, -2.0, -2.0]
    """
    losses = np.empty(len(X), dtype=np.float32)
    totals = np.zeros((THREADS, max(X.shape[1], 64)), dtype=np.float32)
    cuts = [len(X) * part // THREADS for part in range(THREADS + 1)]

    def work(part: int) -> None:
        at = slice(cuts[part], cuts[part + 1])
        _part(X[at], y[at], q[at], w, losses[at], totals[part])

    other = _pool().submit(work, 1)
    work(0)
    other.result()
    found: Floats = totals.sum(axis=0)[: X.shape[1]]
    return found, losses


@cache
def _pool() -> ThreadPoolExecutor:
    """The second thread, kept from call to call."""
    return ThreadPoolExecutor(max_workers=THREADS - 1)


__all__ = ["weighted_gradient"]
