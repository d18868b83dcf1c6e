"""The nearest of many public centres: quickly, and bit for bit the result of the exact rule.

The exact rule chooses the centre whose squared distance, summed in float64 in coordinate order, is
least, and the first one on ties. Its result depends on the record alone (hazard 10 of privacy.md,
section 0), but applying it to 5,000 centres is slow. Here single precision rules out nearly all
centres, with a margin that makes the elimination certain, and the exact rule decides among the rest.

*Why it is exact.* Shift and scale so that every centre has ``|c| <= 1`` (a power
of two, no rounding). Let ``u = 2^-24``, ``r = |x|`` and ``w_j`` the single-precision
value of ``|c_j|² - 2 c_j·x``, which orders centres as the squared distance ``D_j``
does. Inputs, products and sums round at most d + 3 times each term, in any order and with
or without fused multiplications, so ``|w_j - (|c_j|² - 2 c_j·x)| <= (d + 5) u (1 + 2r)``.
The exact rule's own sums are off by a factor ``1 ± (d + 3) 2^-53``, so its choice
j* has ``D_j* <= D_i + (d + 4) 2^-51 (1 + r)²`` for every i. Together

    ``w_j* <= w_i + 2 (d + 6) u (1 + 2r) + (d + 4) 2^-51 (1 + r)²``.

Centres are in groups. If the second least group minimum exceeds the least by more than that margin,
j* is in the group of the least, and the exact rule runs over that group; otherwise over all centres.

*Why it is fast.* Queries lie side by side (``tile[k, b]`` is coordinate k of query b), so one
instruction serves eight of them. Up to eight coordinates, everything that the inner loop reads and
writes is in one array, ``board``, at distances that the compiler knows: it then needs no tests for
overlap. Minima are written from one row to another and back, because a row that is read and written
at once would be stored under a mask, which is slow.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada._threads import in_parts

Singles = npt.NDArray[np.float32]

FEW_CENTERS = 64  # below, the exact rule alone is as fast
MOST_FEATURES = 1000  # within the rounding analysis above
SCALES = (1e-100, 1e100)  # of the centres' spread: within float64 when squared
CHUNK_ROWS = 8192
TILE = 512
GROUP = 8
CHUNK = 8
FAR_QUERY = 1e15  # a query so far out, in scaled units, is left to the exact rule
LARGEST_FLOAT32 = np.float32(np.finfo(np.float32).max)
_FAST = {"contract", "nnan", "nsz"}  # no value is ever infinite or NaN: see FAR_QUERY and LARGEST_FLOAT32


class NearestSearch:
    """The nearest of public centres, the first on ties.

    Parameters
    ----------
    centers : array of shape (centers, features)

    Examples
    --------
    >>> search = NearestSearch(np.arange(100.0)[:, None])
    >>> search.assign(np.array([[41.5], [41.6], [1e3]])).tolist()
    [41, 42, 99]
    """

    def __init__(self, centers: FloatArray) -> None:
        self.centers = centers

    def assign(self, X: FloatArray) -> IntArray:
        """Centre of each row: a function of that row alone, whatever the batch and the machine."""
        rows = np.ascontiguousarray(X, dtype=np.float64)
        cells = np.empty(len(rows), dtype=np.int64)

        def work(part: slice) -> None:
            if self.quick:
                assign_quickly(rows[part], self.centers, *self.prepared, cells[part])
            else:
                assign_exactly(rows[part], self.centers, cells[part])

        in_parts(work, len(rows), CHUNK_ROWS)
        return cells

    @cached_property
    def _spread(self) -> float:
        with np.errstate(all="ignore"):  # centres may be as far as floats go
            shifted = self.centers - self.centers.mean(axis=0)
            return float(np.abs(shifted).max() * np.sqrt(self.centers.shape[1]))

    @cached_property
    def quick(self) -> bool:
        """Whether the analysis above holds and is worth it."""
        fits = self.centers.shape[1] <= MOST_FEATURES and SCALES[0] < self._spread < SCALES[1]
        return fits and len(self.centers) >= FEW_CENTERS

    @cached_property
    def prepared(self) -> tuple[Singles, Singles, FloatArray, FloatArray, float]:
        """Twice the centres and their squared norms in single precision; groups, origin and scale.

        ``groups[g, k]`` has coordinate k of all centres of a group, exactly.
        """
        n, d = self.centers.shape
        origin = self.centers.mean(axis=0)
        scale = 2.0 ** -np.ceil(np.log2(self._spread))
        shifted = (self.centers - origin) * scale
        # Coordinates are filled up to whole chunks, and centres to an even number of groups
        # by centres that are farther than any.
        height, width = (-(-size // step) * step for size, step in ((n, 2 * GROUP), (d, CHUNK)))
        doubled = np.zeros((height, width), dtype=np.float32)
        doubled[:n, :d] = 2 * shifted
        norms = np.full(height, LARGEST_FLOAT32, dtype=np.float32)
        norms[:n] = np.sum(shifted**2, axis=1)
        groups = np.zeros((height, d))
        groups[:n] = self.centers
        groups = np.ascontiguousarray(groups.reshape(-1, GROUP, d).swapaxes(1, 2))
        return doubled, norms, groups, origin, float(scale)


def _pass_between(source: int, goal: int) -> Any:
    """Compile ``goal = min(source, norm - center·x)`` of two centres over the board's coordinates.

    Coordinates, rows 0 to 7 of the board, are loaded once for both.
    """
    before, after = source * TILE, goal * TILE

    @numba.njit(nogil=True, fastmath=_FAST)  # type: ignore[untyped-decorator, unused-ignore]
    def run(u: Singles, one: Singles, other: Singles, norm: Any, far: Any) -> None:  # pragma: no cover
        c0, c1, c2, c3, c4, c5, c6, c7 = one[0], one[1], one[2], one[3], one[4], one[5], one[6], one[7]
        d0, d1, d2, d3 = other[0], other[1], other[2], other[3]
        d4, d5, d6, d7 = other[4], other[5], other[6], other[7]
        for b in range(TILE):
            x0, x1, x2, x3 = u[b], u[b + TILE], u[b + 2 * TILE], u[b + 3 * TILE]
            x4, x5, x6, x7 = u[b + 4 * TILE], u[b + 5 * TILE], u[b + 6 * TILE], u[b + 7 * TILE]
            first = norm - c0 * x0 - c1 * x1 - c2 * x2 - c3 * x3 - c4 * x4 - c5 * x5 - c6 * x6 - c7 * x7
            second = far - d0 * x0 - d1 * x1 - d2 * x2 - d3 * x3 - d4 * x4 - d5 * x5 - d6 * x6 - d7 * x7
            least = first if first < second else second
            u[b + after] = least if least < u[b + before] else u[b + before]

    return run


_lower_forth, _lower_back = _pass_between(CHUNK, CHUNK + 1), _pass_between(CHUNK + 1, CHUNK)


@numba.njit(nogil=True, fastmath=_FAST)  # type: ignore[untyped-decorator, unused-ignore]
def _subtract_products(
    tile: Singles, k: int, center: Singles, total: Singles
) -> None:  # pragma: no cover - compiled
    """Subtract ``center·x`` over the eight coordinates from k on from the total."""
    c0, c1, c2, c3 = center[k], center[k + 1], center[k + 2], center[k + 3]
    c4, c5, c6, c7 = center[k + 4], center[k + 5], center[k + 6], center[k + 7]
    for b in range(TILE):
        rest = total[b] - c0 * tile[k, b] - c1 * tile[k + 1, b] - c2 * tile[k + 2, b] - c3 * tile[k + 3, b]
        rest = rest - c4 * tile[k + 4, b] - c5 * tile[k + 5, b] - c6 * tile[k + 6, b]
        total[b] = rest - c7 * tile[k + 7, b]


@numba.njit(nogil=True, fastmath=_FAST)  # type: ignore[untyped-decorator, unused-ignore]
def _lower_minima(
    tile: Singles, center: Singles, norm: Any, total: Singles, before: Singles, after: Singles
) -> None:  # pragma: no cover - compiled
    """``after = min(before, norm - center·x)``, eight coordinates at a time."""
    total[:] = norm
    for k in range(0, center.shape[0], CHUNK):
        _subtract_products(tile, k, center, total)
    for b in range(TILE):
        after[b] = total[b] if total[b] < before[b] else before[b]


@numba.njit(nogil=True, fastmath=_FAST)  # type: ignore[untyped-decorator, unused-ignore]
def _group_minima(
    board: Singles, tile: Singles, total: Singles, doubled: Singles, norms: Singles, start: int
) -> None:  # pragma: no cover - compiled
    """Write the least value of every query over one group of centres into the board's row `CHUNK`."""
    row, spare = board[CHUNK * TILE : (CHUNK + 1) * TILE], board[(CHUNK + 1) * TILE : (CHUNK + 2) * TILE]
    row[:] = LARGEST_FLOAT32
    if doubled.shape[1] == CHUNK:
        for j in range(start, start + GROUP, 4):
            _lower_forth(board, doubled[j], doubled[j + 1], norms[j], norms[j + 1])
            _lower_back(board, doubled[j + 2], doubled[j + 3], norms[j + 2], norms[j + 3])
    else:
        for j in range(start, start + GROUP, 2):
            _lower_minima(tile, doubled[j], norms[j], total, row, spare)
            _lower_minima(tile, doubled[j + 1], norms[j + 1], total, spare, row)


@numba.njit(nogil=True, fastmath=_FAST)  # type: ignore[untyped-decorator, unused-ignore]
def _merge(
    row: Singles, group: int, state: Singles, after: Singles, which: Any, later: Any
) -> None:  # pragma: no cover - compiled
    """Update the least value, the second least and the index of the least with a group's minima."""
    for b in range(TILE):
        larger = row[b] if row[b] > state[0, b] else state[0, b]
        after[1, b] = larger if larger < state[1, b] else state[1, b]
        later[b] = group if row[b] < state[0, b] else which[b]
        after[0, b] = row[b] if row[b] < state[0, b] else state[0, b]


@numba.njit(nogil=True, fastmath=_FAST)  # type: ignore[untyped-decorator, unused-ignore]
def _two_best(
    board: Singles, tile: Singles, doubled: Singles, norms: Singles, state: Singles, which: Any
) -> None:  # pragma: no cover - compiled
    """Find the least and second least group minimum of every query, and the group of the least.

    The number of groups is even, so that the results end where they began.
    """
    total = np.empty(TILE, np.float32)
    other, elsewhere = np.empty_like(state), np.empty_like(which)
    row = board[CHUNK * TILE : (CHUNK + 1) * TILE]
    state[:] = LARGEST_FLOAT32
    which[:] = 0
    for group in range(0, norms.shape[0] // GROUP, 2):
        _group_minima(board, tile, total, doubled, norms, group * GROUP)
        _merge(row, group, state, other, which, elsewhere)
        _group_minima(board, tile, total, doubled, norms, (group + 1) * GROUP)
        _merge(row, group + 1, other, state, elsewhere, which)


@numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _exact(x: FloatArray, centers: FloatArray, start: int, stop: int) -> int:  # pragma: no cover - compiled
    """Apply the rule itself: the least float64 sum in coordinate order, the first centre on ties."""
    best, nearest = np.inf, start
    for j in range(start, stop):
        total = 0.0
        for k in range(x.shape[0]):
            gap = x[k] - centers[j, k]
            total += gap * gap
        if total < best:
            best, nearest = total, j
    return nearest


@numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _exact_in_group(
    x: FloatArray, group: FloatArray, start: int, stop: int, totals: FloatArray
) -> int:  # pragma: no cover - compiled
    """`_exact` over one group, whose coordinates lie side by side: the same sums, several at once."""
    for j in range(GROUP):
        totals[j] = 0.0
    for k in range(x.shape[0]):
        for j in range(GROUP):
            gap = x[k] - group[k, j]
            totals[j] += gap * gap
    best, nearest = np.inf, start
    for j in range(stop - start):
        if totals[j] < best:
            best, nearest = totals[j], start + j
    return nearest


@numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _load(
    tile: Singles, margins: FloatArray, X: FloatArray, origin: FloatArray, scale: float
) -> None:  # pragma: no cover - compiled
    """Put rows side by side, relative to the origin, with the margin that each needs."""
    d = X.shape[1]
    for b in range(X.shape[0]):
        total = 0.0
        for k in range(d):
            gap = (X[b, k] - origin[k]) * scale
            total += gap * gap
        r = np.sqrt(total)
        margins[b] = (d + 6) * 2.0**-23 * (1 + 2 * r) + (d + 4) * 2.0**-51 * (1 + r) ** 2
        if not r < FAR_QUERY:
            margins[b] = np.inf
        for k in range(d):
            tile[k, b] = np.float32((X[b, k] - origin[k]) * scale) if r < FAR_QUERY else np.float32(0.0)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def assign_quickly(
    X: FloatArray,
    centers: FloatArray,
    doubled: Singles,
    norms: Singles,
    groups: FloatArray,
    origin: FloatArray,
    scale: float,
    cells: npt.NDArray[np.int64],
) -> int:  # pragma: no cover - compiled
    """Write the index of each row's nearest centre; return for how many all centres were compared."""
    board = np.zeros((CHUNK + 2) * TILE, np.float32)
    tile = np.zeros((doubled.shape[1], TILE), np.float32)
    if doubled.shape[1] == CHUNK:
        tile = board[: CHUNK * TILE].reshape(CHUNK, TILE)
    state, which = np.empty((2, TILE), np.float32), np.empty(TILE, np.int32)
    margins, totals = np.empty(TILE), np.empty(GROUP)
    ties = 0
    for start in range(0, X.shape[0], TILE):
        rows = X[start : start + TILE]
        _load(tile, margins, rows, origin, scale)
        _two_best(board, tile, doubled, norms, state, which)
        for b in range(rows.shape[0]):
            if np.float64(state[1, b]) > np.float64(state[0, b]) + margins[b]:
                first = which[b] * GROUP
                last = min(first + GROUP, centers.shape[0])
                cells[start + b] = _exact_in_group(rows[b], groups[which[b]], first, last, totals)
            else:
                cells[start + b] = _exact(rows[b], centers, 0, centers.shape[0])
                ties += 1
    return ties


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def assign_exactly(
    X: FloatArray, centers: FloatArray, cells: npt.NDArray[np.int64]
) -> None:  # pragma: no cover - compiled
    """Write the index of each row's nearest centre, by the exact rule over all of them."""
    for i in range(X.shape[0]):
        cells[i] = _exact(X[i], centers, 0, centers.shape[0])


__all__ = ["CHUNK", "FAR_QUERY", "GROUP", "TILE", "NearestSearch", "assign_exactly", "assign_quickly"]
