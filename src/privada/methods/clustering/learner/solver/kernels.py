"""Compiled passes over distances, each reading every number once and in order.

A distance is never capped here. The source's distance, the cap, is the first
bound of ``near`` and ``second``: a centre that cannot be removed. So a point's
cap stays with the point, and no capped, asymmetric matrix exists to transpose.

All kernels release the interpreter's lock; those that sum in float32 do so over
short runs and add the runs in float64.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from privada._arrays import IntArray

Floats = npt.NDArray[Any]

RUN = 256

_jit = numba.njit(cache=True, nogil=True)
# Sums may be reassociated, so that they fill the vector unit; NaN and infinity keep their meaning.
_sum_jit = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def _distances(axes: Floats, first: int, point: Floats, found: Floats) -> None:  # pragma: no cover - compiled
    """Distances from one point to others, from the first on; their coordinates come axis by axis.

    Axes come in multiples of four. Without reassociation: the same two points
    are equally far wherever they stand.
    """
    last = first + found.shape[0]
    found[:] = 0
    for a in range(0, axes.shape[0], 4):
        a0, a1 = axes[a, first:last], axes[a + 1, first:last]
        a2, a3 = axes[a + 2, first:last], axes[a + 3, first:last]
        x0, x1, x2, x3 = point[a], point[a + 1], point[a + 2], point[a + 3]
        for j in range(found.shape[0]):
            g0, g1, g2, g3 = a0[j] - x0, a1[j] - x1, a2[j] - x2, a3[j] - x3
            found[j] += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3)
    for j in range(found.shape[0]):
        found[j] = np.sqrt(found[j])


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def fill(axes: Floats, rows: Floats, matrix: Floats) -> None:  # pragma: no cover - compiled
    """Distances from each of some points (``rows``) to all (``axes``)."""
    for i in range(rows.shape[0]):
        _distances(axes, 0, rows[i], matrix[i])


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def _gain(column: Floats, near: Floats, weights: Floats) -> float:  # pragma: no cover - compiled
    total, zero = 0.0, near[0] - near[0]
    for start in range(0, column.shape[0], RUN):
        part = zero
        for i in range(start, min(start + RUN, column.shape[0])):
            saved = near[i] - column[i]
            part += (saved if saved > zero else zero) * weights[i]
        total += part
    return total


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def matrix_gains(
    matrix: Floats, wanted: IntArray, near: Floats, weights: Floats, found: Floats
) -> None:  # pragma: no cover - compiled
    """How much each wanted candidate would save as one more centre."""
    for c in range(wanted.shape[0]):
        found[c] = _gain(matrix[wanted[c]], near, weights)


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def balls(
    rows: Floats, runs: IntArray, centres: Floats, radii: Floats
) -> None:  # pragma: no cover - compiled
    """Mean of each run of points, and how far from it they reach; an empty run reaches nothing."""
    radii[:] = -np.inf
    for r in range(radii.shape[0]):
        for i in range(runs[r], runs[r + 1]):
            centres[r] += rows[i] / (runs[r + 1] - runs[r])
        for i in range(runs[r], runs[r + 1]):
            square = 0.0
            for a in range(rows.shape[1]):
                square += (rows[i, a] - centres[r, a]) ** 2
            radii[r] = max(radii[r], np.sqrt(square))


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def run_bounds(
    runs: IntArray, near: Floats, second: Floats, weights: Floats, highest: Floats, losses: Floats
) -> None:  # pragma: no cover - compiled
    """Largest second distance of each run, and what the removal of its centre costs."""
    highest[:], losses[:] = 0.0, 0.0
    for r in range(losses.shape[0]):
        for i in range(runs[r], runs[r + 1]):
            highest[r] = max(highest[r], second[i])
            losses[r] += (second[i] - near[i]) * weights[i]


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def point_gains(
    axes: Floats,
    runs: IntArray,
    ball_axes: Floats,
    reach: Floats,
    points: Floats,
    near: Floats,
    weights: Floats,
    found: Floats,
) -> None:  # pragma: no cover - compiled
    """How much each of some ``points`` would save as one more centre, without a matrix.

    A run of points from which all are further than they are from a centre now is passed over.
    """
    away, made = np.empty(reach.shape[0], near.dtype), np.empty(RUN, near.dtype)
    for c in range(points.shape[0]):
        found[c] = 0.0
        _distances(ball_axes, 0, points[c], away)
        for r in range(reach.shape[0]):
            if away[r] < reach[r]:
                first, last = runs[r], runs[r + 1]
                _distances(axes, first, points[c], made[: last - first])
                found[c] += _gain(made[: last - first], near[first:last], weights[first:last])


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def _add(
    row: Floats, near: Any, second: Any, weight: Any, shared: Floats, own: Floats
) -> None:  # pragma: no cover - compiled
    """Add one point's part to a block of candidates: whichever centre goes, and if its own goes."""
    for j in range(row.shape[0]):
        d = row[j]
        low = d if d < near else near
        high = d if d < second else second
        shared[j] += (low - near) * weight
        own[j] += (high - low) * weight


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def _move(part: Floats, total: Floats) -> None:  # pragma: no cover - compiled
    for j in range(part.shape[0]):
        total[j] += part[j]
        part[j] = 0


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def _close_group(own: Floats, changes: Floats) -> None:  # pragma: no cover - compiled
    """One centre's points are all seen: keep it where its removal is the cheapest so far."""
    for j in range(own.shape[0]):
        changes[j] = min(changes[j], own[j])
        own[j] = 0.0


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def matrix_changes(
    matrix: Floats,
    start: int,
    order: IntArray,
    groups: IntArray,
    near: Floats,
    second: Floats,
    weights: Floats,
    changes: Floats,
) -> None:  # pragma: no cover - compiled
    """Change of the cost by the best swap of each candidate from column ``start`` on, in one pass.

    Points come grouped by their centre (``order``, ``groups``; the last group's
    is its cap), and ``near``, ``second`` and ``weights`` in that order too.
    """
    stop = start + changes.shape[0]
    run, own_run = np.zeros(stop - start, near.dtype), np.zeros(stop - start, near.dtype)
    shared, own = np.zeros(stop - start), np.zeros(stop - start)
    changes[:] = np.inf
    for c in range(groups.shape[0] - 1):
        for first in range(groups[c], groups[c + 1], RUN):
            for p in range(first, min(first + RUN, groups[c + 1])):
                _add(matrix[order[p], start:stop], near[p], second[p], weights[p], run, own_run)
            _move(run, shared)
            _move(own_run, own)
        if c < groups.shape[0] - 2:  # a cap cannot be removed
            _close_group(own, changes)
    changes += shared


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def point_changes(
    axes: Floats,
    rows: Floats,
    runs: IntArray,
    closes: npt.NDArray[np.bool_],
    ball_axes: Floats,
    reach: Floats,
    losses: Floats,
    near: Floats,
    second: Floats,
    weights: Floats,
    changes: Floats,
) -> None:  # pragma: no cover - compiled
    """Do as `matrix_changes` without a matrix: ``axes`` of the candidates, ``rows`` of the grouped points.

    A run of points all of which have two centres nearer than any candidate is
    passed over: of it, only what the removal of its own centre costs counts.
    """
    size = changes.shape[0]
    made, run, own_run = np.empty(size, near.dtype), np.zeros(size, near.dtype), np.zeros(size, near.dtype)
    shared, own = np.zeros(size), np.zeros(size)
    middle, away = np.empty(axes.shape[0], near.dtype), np.empty(reach.shape[0], near.dtype)
    for a in range(axes.shape[0]):
        middle[a] = axes[a].mean()
    _distances(axes, 0, middle, made)
    radius = made.max()
    _distances(ball_axes, 0, middle, away)
    changes[:] = np.inf
    for r in range(reach.shape[0]):
        if away[r] - radius < reach[r]:
            for p in range(runs[r], runs[r + 1]):
                _distances(axes, 0, rows[p], made)
                _add(made, near[p], second[p], weights[p], run, own_run)
            _move(run, shared)
            _move(own_run, own)
        else:
            own += losses[r]
        if closes[r]:
            _close_group(own, changes)
    changes += shared


@_sum_jit  # type: ignore[untyped-decorator, unused-ignore]
def _capped_sum(
    axes: Floats, point: Floats, start: int, limits: Floats, weights: Floats, made: Floats
) -> float:  # pragma: no cover - compiled
    """Cost of one run of a cluster's members if its centre were ``point``."""
    size = min(RUN, limits.shape[0] - start)
    _distances(axes, start, point, made[:size])
    total = limits[0] - limits[0]
    for i in range(size):
        d, limit = made[i], limits[start + i]
        total += (d if d < limit else limit) * weights[start + i]
    return float(total)


@_jit  # type: ignore[untyped-decorator, unused-ignore]
def best_member(
    axes: Floats, rows: Floats, old: Floats, away: Floats, limits: Floats, weights: Floats
) -> int:  # pragma: no cover - compiled
    """Find the member that serves its cluster best, by branch and bound over runs of members.

    Each member pays at most its limit, so a cost moves by no more than the
    weight times the distance that the centre moves. A candidate ``away`` from
    the old centre is dropped as soon as its cost on the runs seen, plus the least
    that the others can cost by that rule, reaches the best cost so far.

    Returns -1 if no member is better than the old centre.
    """
    made = np.empty(RUN, limits.dtype)
    runs = (limits.shape[0] + RUN - 1) // RUN
    rest, weight = np.zeros(runs + 1), np.zeros(runs + 1)
    for r in range(runs - 1, -1, -1):
        rest[r] = rest[r + 1] + _capped_sum(axes, old, r * RUN, limits, weights, made)
        weight[r] = weight[r + 1] + weights[r * RUN : (r + 1) * RUN].sum()
    best, found = rest[0], -1
    for j in range(rows.shape[0]):
        cost, r = 0.0, 0
        while r < runs and cost + max(0.0, rest[r] - weight[r] * away[j]) < best:
            cost += _capped_sum(axes, rows[j], r * RUN, limits, weights, made)
            r += 1
        if r == runs and cost < best:
            best, found = cost, j
    return found


__all__ = [
    "RUN",
    "balls",
    "best_member",
    "fill",
    "matrix_changes",
    "matrix_gains",
    "point_changes",
    "point_gains",
    "run_bounds",
]
