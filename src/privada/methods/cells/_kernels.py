"""Passes over rows in which the result for a record depends on that record alone.

Distances and norms are summed coordinate by coordinate in one fixed order, so
neither a record's place in a batch nor its neighbours can move its last bit;
sums are sums of integers, the same in every order.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

_INSIDE = 1 - 2.0**-40


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def nearest(
    X: npt.NDArray[np.float64], centers: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:  # pragma: no cover - compiled
    """Index of the nearest centre of each row; the smallest index on ties."""
    found = np.empty(X.shape[0], dtype=np.int64)
    for i in range(X.shape[0]):
        best, best_index = np.inf, 0
        for j in range(centers.shape[0]):
            total = 0.0
            for k in range(X.shape[1]):
                gap = X[i, k] - centers[j, k]
                total += gap * gap
                if total >= best:
                    break
            if total < best:
                best, best_index = total, j
        found[i] = best_index
    return found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_clipped(
    sums: npt.NDArray[np.int64],
    X: npt.NDArray[np.float64],
    cells: npt.NDArray[np.int64],
    origins: npt.NDArray[np.float64],
    radius: float,
    steps: float,
) -> None:  # pragma: no cover - compiled
    """Add each row, seen from its cell's origin, clipped to the ball and truncated to whole steps."""
    for i in range(X.shape[0]):
        cell = cells[i]
        largest = 0.0
        for k in range(X.shape[1]):
            largest = max(largest, abs(X[i, k] - origins[cell, k]))
        if largest == 0.0:
            continue
        total = 0.0
        for k in range(X.shape[1]):
            part = (X[i, k] - origins[cell, k]) / largest
            total += part * part
        norm = largest * np.sqrt(total)
        factor = min(1.0, radius * _INSIDE / norm)
        for k in range(X.shape[1]):
            sums[cell, k] += np.int64((X[i, k] - origins[cell, k]) * factor * steps)


__all__ = ["add_clipped", "nearest"]
