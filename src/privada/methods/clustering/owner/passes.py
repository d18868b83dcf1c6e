"""Passes over source rows in which what a record adds depends on that record alone.

Norms and distances are summed coordinate by coordinate in one fixed order; what
is added up are whole grid steps, the same in every order.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from privada._arrays import FloatArray, IntArray

_INSIDE = 1 - 2.0**-40  # keeps a clipped vector inside its ball whatever the last bits round to
_ROOT = float(np.sqrt(2.0))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _norm(gap: FloatArray) -> float:  # pragma: no cover - compiled
    """Euclidean norm, for values up to 1e300."""
    largest = 0.0
    for k in range(gap.shape[0]):
        largest = max(largest, abs(gap[k]))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for k in range(gap.shape[0]):
        part = gap[k] / largest
        total += part * part
    return float(largest * np.sqrt(total))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _add_moments(row: IntArray, v: FloatArray, steps: float) -> None:  # pragma: no cover - compiled
    """Add nothing, ``|v|²``, or the triangle of ``vv'`` with off-diagonal entries times √2."""
    width, d = row.shape[0], v.shape[0]
    if width == 0:
        return
    if width == 1:
        total = 0.0
        for k in range(d):
            total += v[k] * v[k]
        row[0] += np.int64(total * steps)
        return
    place = 0
    for k in range(d):
        row[place] += np.int64(v[k] * v[k] * steps)
        place += 1
        for other in range(k + 1, d):
            row[place] += np.int64(v[k] * v[other] * _ROOT * steps)
            place += 1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_local(
    counts: IntArray,
    sums: IntArray,
    moments: IntArray,
    X: FloatArray,
    cells: IntArray,
    centers: FloatArray,
    shells: FloatArray,
    steps: Any,
) -> None:  # pragma: no cover - compiled
    """Add each row to the first shell of its cell that holds it; beyond the last one, nothing.

    The norm of a row that is too far for a float is infinite, and so beyond the last shell.
    """
    h, v = shells.shape[0], np.empty(X.shape[1])
    for i in range(X.shape[0]):
        for k in range(X.shape[1]):
            v[k] = X[i, k] - centers[cells[i], k]
        norm = _norm(v)
        shell = np.searchsorted(shells, norm)
        if shell == h:
            continue
        inside = _INSIDE - X.shape[1] * 2.0**-52
        scale = inside / max(norm, shells[shell] * inside)
        at = cells[i] * h + shell
        counts[at] += 1
        for k in range(X.shape[1]):
            v[k] *= scale
            sums[at, k] += np.int64(v[k] * steps[0])
        _add_moments(moments[at % moments.shape[0]], v, steps[1])  # pooled: a row for each shell


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def into_ball(X: FloatArray, radius: float) -> FloatArray:  # pragma: no cover - compiled
    """Rows, each brought into the ball if it is outside.

    A clipped row is its direction times the radius, not the row times a factor, which
    could be too small for a float.
    """
    clipped = X.copy()
    inner = radius * (_INSIDE - X.shape[1] * 2.0**-52)  # a sum of d squares is off by d units at most
    for i in range(X.shape[0]):
        largest = 0.0
        for k in range(X.shape[1]):
            largest = max(largest, abs(X[i, k]))
        if largest == 0.0:
            continue
        total = 0.0
        for k in range(X.shape[1]):
            total += (X[i, k] / largest) * (X[i, k] / largest)
        length = np.sqrt(total)
        if largest * length > inner:
            for k in range(X.shape[1]):
                clipped[i, k] = X[i, k] / largest * (inner / length)
    return clipped


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _before(
    distance: float, row: FloatArray, other: float, against: FloatArray
) -> bool:  # pragma: no cover - compiled
    """The order of neighbours: by distance, then by coordinates."""
    if distance != other:
        return distance < other
    for k in range(row.shape[0]):
        if row[k] != against[k]:
            return bool(row[k] < against[k])
    return False


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sink(distances: FloatArray, rows: FloatArray) -> None:  # pragma: no cover - compiled
    """Restore a heap, the last neighbour on top, after its top was replaced."""
    size, at = distances.shape[0], 0
    while True:
        below = 2 * at + 1
        if below >= size:
            return
        right = below + 1
        if right < size and _before(distances[below], rows[below], distances[right], rows[right]):
            below = right
        if not _before(distances[at], rows[at], distances[below], rows[below]):
            return
        distances[at], distances[below] = distances[below], distances[at]
        for k in range(rows.shape[1]):
            rows[at, k], rows[below, k] = rows[below, k], rows[at, k]
        at = below


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def keep_nearest(
    distances: FloatArray, rows: FloatArray, X: FloatArray, targets: FloatArray
) -> None:  # pragma: no cover - compiled
    """Keep the t first neighbours of each target point, squared distances and rows, as heaps."""
    for j in range(targets.shape[0]):
        heap, kept = distances[j], rows[j]
        for i in range(X.shape[0]):
            total = 0.0
            for k in range(X.shape[1]):
                gap = X[i, k] - targets[j, k]
                total += gap * gap
                if total > heap[0]:
                    break
            if _before(total, X[i], heap[0], kept[0]):
                heap[0] = total
                for k in range(X.shape[1]):
                    kept[0, k] = X[i, k]
                _sink(heap, kept)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def merge_nearest(
    distances: FloatArray, rows: FloatArray, more: FloatArray, others: FloatArray
) -> None:  # pragma: no cover - compiled
    """Keep the t first of two sets of neighbours of each target point in the first set, as heaps."""
    for j in range(distances.shape[0]):
        heap, kept = distances[j], rows[j]
        for i in range(more.shape[1]):
            if _before(more[j, i], others[j, i], heap[0], kept[0]):
                heap[0] = more[j, i]
                for k in range(rows.shape[2]):
                    kept[0, k] = others[j, i, k]
                _sink(heap, kept)


__all__ = ["add_local", "into_ball", "keep_nearest", "merge_nearest"]
