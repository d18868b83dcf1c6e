"""How sanitised sources are answered: one pass over the rows, integers on the grid, then noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada._threads import in_parts
from privada.methods.cells import owner as cells_owner
from privada.methods.clustering.questions.means import (
    LocalMeans,
    NearestMeans,
    NeighbourAverages,
    SourceRadius,
)
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.mechanism import Lattice, Plan

Neighbours = tuple[FloatArray, FloatArray]
FEW_TARGETS = 8  # target points that one worker takes at a time


def answer_nearest(question: NearestMeans, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Counts and sums of cells; every cell is noised, empty or not."""
    if question.noise == "lattice":
        return cells_owner.answer(question.statistics, rows, draw)
    exact = rows.total(partial(_count_and_sum, question))
    table = np.column_stack([exact["counts"], question.grid.values(exact["sums"]) / question.radius])
    return {"table": draw("table", table / question.moves)}


def _count_and_sum(question: NearestMeans, batch: Batch) -> dict[str, IntArray]:
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
    payload = {"counts": draw("counts", _placed(question.plan, exact["counts"]).reshape(shape))}
    payload["sums"] = draw("sums", exact["sums"].reshape(*shape, question.width))
    if question.moments != "none":
        payload["moments"] = draw("moments", exact["moments"].reshape(question.moments_shape))
    return payload


def _sum_shells(question: LocalMeans, batch: Batch) -> dict[str, IntArray]:
    from privada.methods.clustering.owner import passes

    X, n = batch.X, question.n_shells
    cells = question.partition.assign(X)
    pooled = len(question.shells) if question.moments == "pooled" else n
    shapes = {"counts": (n,), "sums": (n, question.width), "moments": (pooled, question.triangle)}
    exact = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    steps = np.array([1 / _step(question.plan, "sums"), 1 / _step(question.plan, "moments")])
    passes.add_local(*exact.values(), X, cells, question.cells, question.shells, steps)
    return exact


def _step(plan: Plan, name: str) -> float:
    """Grid step of a draw; 1 where there is none."""
    mechanism = plan.draws.get(name)
    return mechanism.grid.step if isinstance(mechanism, Lattice) else 1.0


def _placed(plan: Plan, counts: IntArray) -> IntArray:
    mechanism = plan.lattice("counts")
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


def _nearest_rows(question: NeighbourAverages | SourceRadius, rows: Rows) -> Neighbours:
    """Squared distances and clipped rows of the t first neighbours of each target point, unordered."""
    return rows.merged(partial(_nearest_of_batch, question), _merge_nearest)


def _nearest_of_batch(question: NeighbourAverages | SourceRadius, batch: Batch) -> Neighbours:
    """It begins with t copies of the centre, infinitely far."""
    from privada.methods.clustering.owner import passes

    n, d = question.targets.shape
    squared, kept = np.full((n, question.t), np.inf), np.zeros((n, question.t, d))
    X = passes.into_ball(batch.X, float(question.radius))

    def work(part: slice) -> None:
        passes.keep_nearest(squared[part], kept[part], X, question.targets[part])

    in_parts(work, n, FEW_TARGETS)
    return squared, kept


def _merge_nearest(found: Neighbours, more: Neighbours) -> Neighbours:
    from privada.methods.clustering.owner import passes

    passes.merge_nearest(*found, *more)
    return found


__all__ = ["answer_local", "answer_nearest", "answer_neighbours", "answer_radius"]
