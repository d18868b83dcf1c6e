"""How transport's questions are answered: sums of integers, or rows in an order that tells nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import IntArray
from privada.methods.transport.questions.rows import RowRelease
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.mechanism import Gaussian


def answer_statistics(question: ClassStatistics, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Sum every class in whole grid steps, then draw; every class is noised, also an empty one."""
    numbers = question.features.components + question.triangle
    exact = rows.total(partial(_sum_classes, question), numbers=numbers)
    return {name: draw(name, value) for name, value in exact.items()}


def _sum_classes(question: ClassStatistics, batch: Batch) -> dict[str, IntArray]:
    """Counts, sums and moments of a batch by class, in grid steps."""
    z, codes, q = question.features.apply(batch.X), batch.labels.astype(np.int64), question.n_classes
    counts = question.plan.lattice("counts").place(np.bincount(codes, minlength=q))
    sums = {"counts": counts, "sums": _by_class(codes, q, question.plan.lattice("sums").grid.truncate(z))}
    if question.moments:
        steps = question.plan.lattice("moments").grid.truncate(packed(z))
        sums["moments"] = _by_class(codes, q, steps)
    return sums


def _by_class(codes: IntArray, classes: int, steps: IntArray) -> IntArray:
    """Sums of rows by class."""
    sums = np.zeros((classes, steps.shape[1]), dtype=np.int64)
    np.add.at(sums, codes, steps)
    return sums


def packed(z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Upper triangle of each ``z zᵀ``, off-diagonal entries times √2: an isometry of the Frobenius norm."""
    row, column = np.triu_indices(z.shape[1])
    return np.asarray(z[:, row] * z[:, column] * np.where(row == column, 1.0, np.sqrt(2)))


def answer_rows(question: RowRelease, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Noise every sampled row, in an order drawn afresh that knows nothing of rows or labels."""
    batch = rows.gathered()  # what is released is a row each
    X, y = batch.X, batch.y
    payload: dict[str, Any] = {}
    for index in range(question.batches):
        picked = draw.noise.permutation(question.size)[: question.drawn]
        real = picked < len(X)  # of fewer rows than announced, the others are empty
        names = question.names(index)
        mechanism = question.plan.find(names[0], Gaussian)
        z = np.zeros((question.drawn, question.features.components))
        mapped = question.features.spread if question.unclipped else question.features.apply
        z[real] = mapped(X[picked[real]])
        payload[names[0]] = draw(names[0], mechanism.grid.truncate(z))
        if question.n_classes is not None and y is not None:
            codes = np.zeros(question.drawn, dtype=np.int64)
            codes[real] = y[picked[real]]
            payload[names[1]] = draw(names[1], codes)
    return payload


__all__ = ["answer_rows", "answer_statistics", "packed"]
