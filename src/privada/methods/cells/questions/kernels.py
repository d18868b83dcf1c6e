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
def add_clipped(
    sums: npt.NDArray[np.int64],
    X: npt.NDArray[np.float64],
    cells: npt.NDArray[np.int64],
    origins: npt.NDArray[np.float64],
    radius: float,
    steps: float,
) -> None:  # pragma: no cover - compiled
    """Add each row, relative to its cell's origin, clipped to the ball and truncated to whole steps.

    Centres are the learner's choice and may be as far as floats go. Half a difference of two
    floats is finite, and a clipped row is its direction times the radius, never a row times a
    factor too small for a float; so the norm stays within the radius for every centre.
    """
    inner = radius * (_INSIDE - X.shape[1] * 2.0**-52)  # a sum of d squares is off by d units at most
    for i in range(X.shape[0]):
        cell = cells[i]
        largest = 0.0
        for k in range(X.shape[1]):
            largest = max(largest, abs(0.5 * X[i, k] - 0.5 * origins[cell, k]))
        if largest == 0.0:
            continue
        total = 0.0
        for k in range(X.shape[1]):
            part = (0.5 * X[i, k] - 0.5 * origins[cell, k]) / largest
            total += part * part
        length = np.sqrt(total)
        if 2.0 * largest * length > inner:
            for k in range(X.shape[1]):
                part = (0.5 * X[i, k] - 0.5 * origins[cell, k]) / largest
                sums[cell, k] += np.int64(part * (inner / length) * steps)
        else:
            for k in range(X.shape[1]):
                sums[cell, k] += np.int64((X[i, k] - origins[cell, k]) * steps)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def affine(
    X: npt.NDArray[np.float64], matrix: npt.NDArray[np.float64], shift: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:  # pragma: no cover - compiled
    """``X @ matrix + shift``, each row summed in one fixed order."""
    found = np.empty((X.shape[0], matrix.shape[1]))
    for i in range(X.shape[0]):
        for j in range(matrix.shape[1]):
            found[i, j] = shift[j]
        for k in range(X.shape[1]):
            value = X[i, k]
            for j in range(matrix.shape[1]):
                found[i, j] += value * matrix[k, j]
    return found


__all__ = ["add_clipped", "affine"]
