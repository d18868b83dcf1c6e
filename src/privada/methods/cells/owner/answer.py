"""How counts and sums over public cells are answered: one pass over the rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.cells.questions.partition import Bins
from privada.methods.cells.questions.statistics import CellStatistics
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows


def answer(question: CellStatistics, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count and sum in integers, then draw; every cell gets noise, empty or not."""
    exact = rows.total(partial(tabulate, question))
    return {name: draw(name, value) for name, value in exact.items()}


def tabulate(question: CellStatistics, batch: Batch) -> dict[str, IntArray]:
    """Exact counts and sums of every table, in grid steps, under their payload names."""
    if question.radius is None and all(isinstance(table, Bins) for table in question.tables):
        return _count_bins(question, batch)
    classes, shapes, found = question.n_classes or 1, question.answer_shapes(), {}
    for index, table in enumerate(question.tables):
        counts, sums = question.names(index)
        cells = table.assign(batch.X)
        codes = cells if question.n_classes is None else cells * classes + batch.labels
        counted = np.bincount(codes, minlength=table.n_cells * classes).reshape(shapes[counts])
        found[counts] = question.plan.lattice(counts).place(counted)
        if question.radius is not None:
            step = question.plan.lattice(sums).grid.step
            found[sums] = clipped_sums(batch.X, cells, question.origins(table), question.radius, step)
    return found


def _count_bins(question: CellStatistics, batch: Batch) -> dict[str, IntArray]:
    """Counts over bins of single features: a row is read once for all tables."""
    from privada.methods.cells.questions import binning

    bins = binning.lay_out(question.tables, question.n_classes or 1)
    labels = np.zeros(0, dtype=np.int64) if question.n_classes is None else batch.labels
    flat, shapes, found = bins.count(batch.X, labels), question.answer_shapes(), {}
    for index, counted in enumerate(flat):
        name, _ = question.names(index)
        found[name] = question.plan.lattice(name).place(counted.reshape(shapes[name]))
    return found


def clipped_sums(X: FloatArray, cells: IntArray, origins: FloatArray, radius: float, step: float) -> IntArray:
    """Sums of rows by cell, each relative to its cell's origin and clipped, in whole steps."""
    from privada.methods.cells.questions import kernels

    sums = np.zeros(origins.shape, dtype=np.int64)
    kernels.add_clipped(sums, X, cells, origins, float(radius), 1 / step)
    return sums


__all__ = ["answer", "clipped_sums", "tabulate"]
