"""How a noisy descent is answered: a step at a time, exact sums on the grid, then noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner import fused, kernels
from privada.methods.linear.questions.descent import LinearDescent
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows


def answer_descent(question: LinearDescent, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Release the noisy sum at the current point; it leads to the next point."""
    # coordinates, offsets and labels do not change from step to step, so they are computed once
    parts = rows.prepared(partial(prepare, question))
    V, velocity = question.start()
    released = {}
    for name in question.names():
        released[name] = draw(name, parts.total(partial(_sum_pulls, question, V)))
        V, velocity = question.go_on(V, velocity, released[name])
    return released


def prepare(question: LinearDescent, batch: Batch) -> tuple[Any, FloatArray, FloatArray]:
    """Coordinates, offsets and labels of a batch, each record by itself."""
    X, y = labelled(batch)
    Z = question.columns(X)
    if question.transform is not None:
        Z = kernels.mapped(Z, question.transform, np.zeros(question.coordinates), np.inf)
    offsets = np.zeros((len(X), question.outputs))
    if question.intercepts is not None:
        offsets += question.intercepts
    if question.models is not None and question.model_weights is not None:
        predictions = question.models.predict(X)
        offsets += kernels.scored(predictions, question.model_weights, np.zeros(question.outputs))
    if question.loss == "softmax":
        return Z, offsets, y
    singles = fused.Singles.of(Z, bound=question.bound, per_step=_per_step(question))
    return singles, offsets[:, 0], y / question.unit if question.loss == "squared" else y


def _sum_pulls(question: LinearDescent, V: FloatArray, part: tuple[Any, FloatArray, FloatArray]) -> IntArray:
    """What the records of a batch contribute at V, in grid steps."""
    rows, offsets, y = part
    sums = np.zeros(V.shape, dtype=np.int64)
    threshold = np.inf if question.threshold is None else float(question.threshold)
    if question.loss == "softmax":
        bound = float(question.bound)
        kernels.add_softmax(sums, rows, offsets, y, V, threshold, bound, _per_step(question))
    else:
        v = V[:, 0].astype(np.float32)
        fused.add_pulls(sums[:, 0], rows, offsets, y, v, loss=question.loss, threshold=threshold)
    return sums


def _per_step(question: LinearDescent) -> float:
    return 1 / question.plan.lattice("gradient_0").grid.step


def labelled(batch: Batch) -> tuple[FloatArray, FloatArray]:
    """Features and labels as the kernels want them."""
    return np.ascontiguousarray(batch.X), np.ascontiguousarray(batch.labels, dtype=np.float64)


__all__ = ["answer_descent", "labelled", "prepare"]
