"""The books of a swap search, compiled: every point's two nearest centres, and what each removal costs.

The cap is the last centre of every point, at ``losses[k]``, which is infinite: it is never removed.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from privada._arrays import IntArray

Floats = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _rank(
    table: Floats, caps: Floats, i: int, near: Floats, second: Floats, slot: IntArray
) -> None:  # pragma: no cover - compiled
    """Nearest and second nearest of a point's centres and its cap; the cap's slot is one past the last."""
    first, next_, found = caps[i], caps[i], table.shape[1]
    for c in range(table.shape[1]):
        d = table[i, c]
        if d < first:
            first, next_, found = d, first, c
        elif d < next_:
            next_ = d
    near[i], second[i], slot[i] = first, next_, found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def rank_all(
    table: Floats, caps: Floats, weights: Floats, near: Floats, second: Floats, slot: IntArray, losses: Floats
) -> None:  # pragma: no cover - compiled
    """Rank every point's centres, and sum what the removal of each centre would cost."""
    losses[:] = 0.0
    for i in range(table.shape[0]):
        _rank(table, caps, i, near, second, slot)
        losses[slot[i]] += (second[i] - near[i]) * weights[i]
    losses[table.shape[1]] = np.inf


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def best_removal(
    column: Floats, weights: Floats, near: Floats, second: Floats, slot: IntArray, losses: Floats
) -> tuple[float, int]:  # pragma: no cover - compiled
    """Change of the cost if a candidate replaces the centre that is best removed for it, and that centre."""
    change, removed = 0.0, losses.copy()
    for i in range(column.shape[0]):
        d = column[i]
        if d < second[i]:
            if d < near[i]:
                change += (d - near[i]) * weights[i]
                removed[slot[i]] += (near[i] - second[i]) * weights[i]
            else:
                removed[slot[i]] += (d - second[i]) * weights[i]
    best = int(np.argmin(removed))
    return change + removed[best], best


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def replace(
    column: Floats,
    out: int,
    table: Floats,
    caps: Floats,
    weights: Floats,
    near: Floats,
    second: Floats,
    slot: IntArray,
    losses: Floats,
) -> None:  # pragma: no cover - compiled
    """Put a candidate's distances in the place of centre ``out``; rank again only the points that notice."""
    for i in range(column.shape[0]):
        old, table[i, out] = table[i, out], column[i]
        if old <= second[i] or column[i] < second[i]:
            losses[slot[i]] -= (second[i] - near[i]) * weights[i]
            _rank(table, caps, i, near, second, slot)
            losses[slot[i]] += (second[i] - near[i]) * weights[i]
    losses[table.shape[1]] = np.inf


__all__ = ["best_removal", "rank_all", "replace"]
