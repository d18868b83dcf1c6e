"""How sanitised sources are answered: one pass over the rows, integers on the grid, then noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.cells.owner import answer as cells_owner
from privada.methods.cells.questions.nearest import QuickNearest, ahead, in_parts
from privada.methods.clustering.questions.means import (
    LocalMeans,
    NearestMeans,
    NeighbourAverages,
    SourceRadius,
)
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.parties.answering import Draws
from privada.parties.rows import Rows
from privada.privacy.mechanism import Lattice, Plan

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
FEW_TARGETS = 8  # target points that one worker takes at a time


def answer_nearest(question: NearestMeans, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Counts and sums of cells; every cell is noised, empty or not."""
    if question.noise == "lattice":
        return cells_owner.answer(question.statistics, rows, draw)
    counts, sums = _counts_and_sums(question, rows)
    table = np.column_stack([counts, question.grid.values(sums) / question.radius])
    return {"table": draw("table", table / question.moves)}


def _counts_and_sums(question: NearestMeans, rows: Rows) -> tuple[IntArray, IntArray]:
    from privada.methods.cells.questions import kernels

    cells = QuickNearest(centers=question.cells)
    origins = question.origins
    counts = np.zeros(cells.n_cells, dtype=np.int64)
    sums = np.zeros(origins.shape, dtype=np.int64)
    for batch in rows.batches():
        found = cells.assign(batch.X)
        counts += np.bincount(found, minlength=cells.n_cells)
        radius, steps = float(question.radius), 1 / question.grid.step
        kernels.add_clipped(sums, batch.X, found, origins, radius, steps)
    return counts, sums


def answer_pyramid(question: GridPyramid, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Counts of every cell of every level; all are noised, empty or not."""
    return cells_owner.answer(question.statistics, rows, draw)


def answer_local(question: LocalMeans, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Counts, sums and moments of shells; every shell is noised, empty or not."""
    from privada.methods.clustering.owner import passes

    cells = QuickNearest(centers=question.cells)
    shape = (len(question.cells), len(question.shells))
    counts = np.zeros(question.n_shells, dtype=np.int64)
    sums = np.zeros((question.n_shells, question.width), dtype=np.int64)
    kept = len(question.shells) if question.moments == "pooled" else question.n_shells
    moments = np.zeros((kept, question.triangle), dtype=np.int64)
    steps = np.array([1 / _step(question.plan, "sums"), 1 / _step(question.plan, "moments")])
    for batch in ahead(rows.batches()):
        X = np.ascontiguousarray(batch.X)
        found = cells.assign(X)
        passes.add_local(counts, sums, moments, X, found, question.cells, question.shells, steps)
    payload = {"counts": draw("counts", _placed(question.plan, counts).reshape(shape))}
    payload["sums"] = draw("sums", sums.reshape(*shape, question.width))
    if question.moments != "none":
        payload["moments"] = draw("moments", moments.reshape(question.moments_shape))
    return payload


def _step(plan: Plan, name: str) -> float:
    """Grid step of a draw; 1 where there is none."""
    mechanism = plan.draws.get(name)
    return mechanism.grid.step if isinstance(mechanism, Lattice) else 1.0


def _placed(plan: Plan, counts: IntArray) -> IntArray:
    mechanism = plan.draws["counts"]
    assert isinstance(mechanism, Lattice)
    return mechanism.place(counts)


def answer_neighbours(question: NeighbourAverages, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Sums of the t nearest rows of each target point; absent ones count as the centre."""
    _, kept = _nearest_rows(question, rows)
    steps = np.stack([question.grid.truncate(near).sum(axis=0) for near in kept])
    if question.noise == "k-norm":
        return {"sums": draw("sums", question.grid.values(steps))}
    return {"sums": draw("sums", steps)}


def answer_radius(question: SourceRadius, rows: Rows, draw: Draws) -> dict[str, Any]:
    """The sum of distances; absent neighbours count as the farthest possible ones."""
    squared, _ = _nearest_rows(question, rows)
    most = question.farthest[:, None]
    near = np.minimum(np.sqrt(squared), most * question.grid.step)
    steps = np.minimum(question.grid.truncate(near), most)
    return {"total": draw("total", steps.sum(keepdims=True).reshape(1))}


def _nearest_rows(question: NeighbourAverages | SourceRadius, rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Squared distances and clipped rows of the t first neighbours of each target point, unordered.

    It begins with t copies of the centre, infinitely far.
    """
    from privada.methods.clustering.owner import passes

    n, d = question.targets.shape
    squared = np.full((n, question.t), np.inf)
    kept = np.zeros((n, question.t, d))
    for batch in rows.batches():
        X = passes.into_ball(np.ascontiguousarray(batch.X), float(question.radius))

        def work(part: slice, X: FloatArray = X) -> None:
            passes.keep_nearest(squared[part], kept[part], X, question.targets[part])

        in_parts(work, n, FEW_TARGETS)
    return squared, kept


__all__ = ["answer_local", "answer_nearest", "answer_neighbours", "answer_radius"]
