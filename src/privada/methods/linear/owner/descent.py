"""How a noisy descent is answered: a step at a time, exact sums on the grid, then noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner import fused, kernels
from privada.methods.linear.questions.descent import LinearDescent
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Prepared, Rows

Part = tuple[Any, FloatArray, FloatArray]


def answer_descent(question: LinearDescent, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Every step: the sum of pulls at the current point, with noise; it gives the next point."""
    return descend(question, rows.prepared(partial(prepare, question)), draw)


def descend(question: LinearDescent, parts: Prepared[Part], draw: Draws) -> dict[str, Any]:
    """The steps, on batches that were prepared."""
    V, velocity = question.start()
    released = {}
    for name in question.names():
        released[name] = draw(name, parts.total(partial(_sum_pulls, question, V)))
        V, velocity = question.go_on(V, velocity, released[name])
    return released


def prepare(question: LinearDescent, batch: Batch) -> Part:
    """Mapped features, base scores and labels of a batch, each record by itself."""
    X, y = labelled(batch)
    Z = kernels.mapped(X, question.transform, question.shift, np.inf)
    base = kernels.scored(X, question.weights, question.intercepts)
    if question.loss == "softmax":
        return Z, base, y
    return fused.Singles.of(Z, bound=question.bound, per_step=_per_step(question)), base[:, 0], y


def _sum_pulls(question: LinearDescent, V: FloatArray, part: Part) -> IntArray:
    """A batch's contributions at V, in grid steps."""
    rows, base, y = part
    sums, threshold = np.zeros(V.shape, dtype=np.int64), float(question.threshold)
    if question.loss == "softmax":
        per_step, bound = _per_step(question), float(question.bound)
        kernels.add_softmax(sums, rows, base, y, V, threshold, bound, per_step)
    else:
        v = V[:, 0].astype(np.float32)
        fused.add_pulls(sums[:, 0], rows, base, y, v, loss=question.loss, threshold=threshold)
    return sums


def _per_step(question: LinearDescent) -> float:
    mechanism = question.plan.lattice(question.names()[0])
    return 1 / mechanism.grid.step


def labelled(batch: Batch) -> tuple[FloatArray, FloatArray]:
    """Features and labels as the kernels want them."""
    return np.ascontiguousarray(batch.X), np.ascontiguousarray(batch.labels, dtype=np.float64)


__all__ = ["Part", "answer_descent", "descend", "labelled", "prepare"]
