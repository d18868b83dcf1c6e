"""How sanitised sources are answered: one pass over the rows, integers on the grid, then noise.

The compiled passes are at the end. In each of them, what a record adds depends on that record alone: norms
and distances are summed coordinate by coordinate in one fixed order, and the numbers that are added up are
whole grid steps, whose sum is the same in every order.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np

from privada._arrays import FloatArray, IntArray
from privada._threads import in_parts
from privada.methods.cells import owner as cells_owner
from privada.methods.clustering.questions.means import NearestMeans, NeighbourAverages, SourceRadius
from privada.methods.clustering.questions.multiscale import GridPyramid, LocalMeans
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.mechanism import Lattice

Neighbours = tuple[FloatArray, FloatArray]  # squared distances and rows
FEW_TARGETS = 8  # target points that one worker takes at a time
_INSIDE = 1 - 2.0**-40  # keeps a clipped vector inside its ball whatever the last bits round to
_ROOT = float(np.sqrt(2.0))


def answer_nearest(question: NearestMeans, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Counts and sums of cells; every cell is noised, empty or not."""
    if question.noise == "lattice":
        return cells_owner.answer(question.statistics, rows, draw)
    exact = rows.total(partial(_sum_cells, question))
    table = np.column_stack([exact["counts"], question.grid.values(exact["sums"]) / question.radius])
    return {"table": draw("table", table / question.moves)}


def _sum_cells(question: NearestMeans, batch: Batch) -> dict[str, IntArray]:
    cells = question.statistics.tables[0].assign(batch.X)
    step, radius = question.grid.step, question.radius
    return {
        "counts": np.bincount(cells, minlength=len(question.cells)),
        "sums": cells_owner.clipped_sums(batch.X, cells, question.origins, radius, step),
    }


def answer_pyramid(question: GridPyramid, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Counts of every cell of every level; all are noised, empty or not."""
    return cells_owner.answer(question.statistics, rows, draw)


def answer_local(question: LocalMeans, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Counts, sums and moments of shells; every shell is noised, empty or not."""
    exact = rows.total(partial(_sum_shells, question))
    shape = (len(question.cells), len(question.shells))
    # The grid of counts may be finer than 1, so whole counts are put on it.
    counts = question.plan.lattice("counts").place(exact["counts"])
    payload = {"counts": draw("counts", counts.reshape(shape))}
    payload["sums"] = draw("sums", exact["sums"].reshape(*shape, question.width))
    if question.moments != "none":
        payload["moments"] = draw("moments", exact["moments"].reshape(question.moments_shape))
    return payload


def _sum_shells(question: LocalMeans, batch: Batch) -> dict[str, IntArray]:
    n, draws = question.n_shells, question.plan.draws
    pooled = len(question.shells) if question.moments == "pooled" else n
    shapes = {"counts": (n,), "sums": (n, question.width), "moments": (pooled, question.triangle)}
    exact = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    grids = [
        draw.grid if isinstance(draw := draws.get(name), Lattice) else None for name in ("sums", "moments")
    ]
    steps = np.array([1.0 if grid is None else 1 / grid.step for grid in grids])
    cells = question.partition.assign(batch.X)
    add_to_shells(*exact.values(), batch.X, cells, question.cells, question.shells, steps)
    return exact


def answer_neighbours(question: NeighbourAverages, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Sums of the t nearest rows of each target point; absent ones count as the centre."""
    _, nearest = _find_nearest(question, rows)
    steps = np.stack([question.grid.truncate(neighbours).sum(axis=0) for neighbours in nearest])
    if question.noise == "k-norm":
        return {"sums": draw("sums", question.grid.values(steps))}
    return {"sums": draw("sums", steps)}


def answer_radius(question: SourceRadius, rows: Rows, draw: Draws) -> dict[str, Any]:
    """The sum of distances; absent neighbours count as the farthest possible ones."""
    squared, _ = _find_nearest(question, rows)
    most = question.farthest[:, None]
    # Absent neighbours are infinitely far: they are capped before they are put on the grid.
    distances = np.minimum(np.sqrt(squared), most * question.grid.step)
    steps = np.minimum(question.grid.truncate(distances), most)
    return {"total": draw("total", steps.sum(keepdims=True).reshape(1))}


def _find_nearest(question: NeighbourAverages | SourceRadius, rows: Rows) -> Neighbours:
    """Squared distances and clipped rows of the t first neighbours of each target point, unordered."""
    return rows.merged(partial(_find_nearest_of_batch, question), _merge)


def _merge(neighbours: Neighbours, others: Neighbours) -> Neighbours:
    merge_nearest(*neighbours, *others)
    return neighbours


def _find_nearest_of_batch(question: NeighbourAverages | SourceRadius, batch: Batch) -> Neighbours:
    # It begins with t copies of the centre, infinitely far, as the lemma of the questions says.
    n, d = question.targets.shape
    squared, nearest = np.full((n, question.t), np.inf), np.zeros((n, question.t, d))
    X = clip_rows(batch.X, float(question.radius))

    def work(part: slice) -> None:
        keep_nearest(squared[part], nearest[part], X, question.targets[part])

    in_parts(work, n, FEW_TARGETS)
    return squared, nearest


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _measure(vector: FloatArray) -> tuple[float, float]:  # pragma: no cover - compiled
    """Largest coordinate, and the norm in units of it: their product holds norms up to 1e300."""
    largest = 0.0
    for k in range(vector.shape[0]):
        largest = max(largest, abs(vector[k]))
    if largest == 0.0:
        return 0.0, 0.0
    total = 0.0
    for k in range(vector.shape[0]):
        part = vector[k] / largest
        total += part * part
    return largest, np.sqrt(total)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_to_shells(
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

    The norm of a row that is too far for a float is infinite, and so beyond the last shell. Its moments are
    nothing, ``|v|²``, or the triangle of ``vv'`` with off-diagonal entries times √2.
    """
    h, d, v = shells.shape[0], X.shape[1], np.empty(X.shape[1])
    for i in range(X.shape[0]):
        for k in range(d):
            v[k] = X[i, k] - centers[cells[i], k]
        largest, length = _measure(v)
        norm = largest * length
        shell = np.searchsorted(shells, norm)
        if shell == h:
            continue
        # The norm is off by d units in the last place at most; the factor keeps v inside the unit ball.
        inside = _INSIDE - d * 2.0**-52
        scale = inside / max(norm, shells[shell] * inside)
        at = cells[i] * h + shell
        counts[at] += 1
        for k in range(d):
            v[k] *= scale
            sums[at, k] += np.int64(v[k] * steps[0])
        row = moments[at % moments.shape[0]]  # pooled moments have one row for each shell
        if row.shape[0] == 1:
            total = 0.0
            for k in range(d):
                total += v[k] * v[k]
            row[0] += np.int64(total * steps[1])
        elif row.shape[0] > 1:
            place = 0
            for k in range(d):
                row[place] += np.int64(v[k] * v[k] * steps[1])
                place += 1
                for other in range(k + 1, d):
                    row[place] += np.int64(v[k] * v[other] * _ROOT * steps[1])
                    place += 1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def clip_rows(X: FloatArray, radius: float) -> FloatArray:  # pragma: no cover - compiled
    """Bring rows that are outside the ball into it.

    A clipped row is its direction times the radius, not the row times a factor, which
    could be too small for a float.
    """
    clipped = X.copy()
    inner = radius * (_INSIDE - X.shape[1] * 2.0**-52)  # a sum of d squares is off by d units at most
    for i in range(X.shape[0]):
        largest, length = _measure(X[i])
        if largest * length > inner:
            for k in range(X.shape[1]):
                clipped[i, k] = X[i, k] / largest * (inner / length)
    return clipped


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _precedes(
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
def _replace_last(
    distances: FloatArray, rows: FloatArray, distance: float, row: FloatArray
) -> None:  # pragma: no cover - compiled
    """Put a neighbour in the place of the last one, which is on top of the heap, and restore the heap."""
    distances[0] = distance
    for k in range(row.shape[0]):
        rows[0, k] = row[k]
    size, at = distances.shape[0], 0
    while True:
        below = 2 * at + 1
        if below >= size:
            return
        right = below + 1
        if right < size and _precedes(distances[below], rows[below], distances[right], rows[right]):
            below = right
        if not _precedes(distances[at], rows[at], distances[below], rows[below]):
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
        for i in range(X.shape[0]):
            total = 0.0
            for k in range(X.shape[1]):
                gap = X[i, k] - targets[j, k]
                total += gap * gap
                if total > distances[j, 0]:
                    break
            if _precedes(total, X[i], distances[j, 0], rows[j, 0]):
                _replace_last(distances[j], rows[j], total, X[i])


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def merge_nearest(
    distances: FloatArray, rows: FloatArray, more: FloatArray, others: FloatArray
) -> None:  # pragma: no cover - compiled
    """Keep the t first of two sets of neighbours of each target point in the first set, as heaps."""
    for j in range(distances.shape[0]):
        for i in range(more.shape[1]):
            if _precedes(more[j, i], others[j, i], distances[j, 0], rows[j, 0]):
                _replace_last(distances[j], rows[j], more[j, i], others[j, i])


__all__ = ["answer_local", "answer_nearest", "answer_neighbours", "answer_pyramid", "answer_radius"]
