"""Answers about public cells, the only module of this package that sees rows: one pass over them."""

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
    from privada.methods.cells.questions import kernels

    classes, shapes = question.n_classes or 1, question.answer_shapes()
    totals: dict[str, IntArray] = {}
    bins = [table for table in question.tables if isinstance(table, Bins)]
    if question.radius is None and len(bins) == len(question.tables):
        # Bins of single features alone: a row is read once for all tables.
        labels = np.zeros(0, dtype=np.int64) if question.n_classes is None else batch.labels
        for index, counted in enumerate(kernels.count_bins(bins, batch.X, labels, classes)):
            name, _ = question.names(index)
            totals[name] = question.plan.lattice(name).place(counted.reshape(shapes[name]))
        return totals
    for index, table in enumerate(question.tables):
        counts, sums = question.names(index)
        cells = table.assign(batch.X)
        codes = cells if question.n_classes is None else cells * classes + batch.labels
        counted = np.bincount(codes, minlength=table.n_cells * classes).reshape(shapes[counts])
        totals[counts] = question.plan.lattice(counts).place(counted)
        if question.radius is not None:
            step = question.plan.lattice(sums).grid.step
            totals[sums] = clipped_sums(batch.X, cells, question.origins(table), question.radius, step)
    return totals


def clipped_sums(X: FloatArray, cells: IntArray, origins: FloatArray, radius: float, step: float) -> IntArray:
    """Sums of rows by cell, each relative to its cell's origin and clipped, in whole steps."""
    from privada.methods.cells.questions import kernels

    sums = np.zeros(origins.shape, dtype=np.int64)
    kernels.add_clipped(sums, X, cells, origins, float(radius), 1 / step)
    return sums


__all__ = ["answer", "clipped_sums", "tabulate"]
