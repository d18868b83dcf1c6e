"""How a descent and a histogram of labels are answered: exact sums of whole steps, then noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner import kernels
from privada.methods.marginals.questions.descent import LabelDescent
from privada.methods.marginals.questions.histogram import LabelHistogram
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows


def answer_descent(question: LabelDescent, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Every step: the sum of what records add at the current point, noised; the next point follows."""
    parts = rows.prepared(partial(_prepared, question))
    V, released = question.start(), {}
    for name in question.names():
        released[name] = draw(name, parts.total(partial(_gradient, question, V)))
        V = question.go_on(V, released[name])
    return released


def _prepared(question: LabelDescent, batch: Batch) -> tuple[FloatArray, FloatArray]:
    """Features and labels of a batch, each record by itself."""
    assert batch.y is not None
    y = np.ascontiguousarray(batch.y, dtype=np.float64)
    if not question.n_classes:
        y = (y - question.middle) / question.unit
    return question.features(batch.X), y


def _gradient(question: LabelDescent, V: FloatArray, part: tuple[FloatArray, FloatArray]) -> IntArray:
    """What the records of a batch add at V, in grid steps."""
    Z, y = part
    mechanism = question.plan.lattice(question.names()[0])
    sums, per_step = np.zeros(V.shape, dtype=np.int64), 1 / mechanism.grid.step
    nothing, bound = np.zeros((len(Z), V.shape[1])), float(question.bound)
    if question.n_classes:
        kernels.add_softmax(sums, Z, nothing, y, V, np.inf, bound, per_step)
        return sums
    with np.errstate(all="ignore"):  # a record whose score overflows adds nothing
        off = kernels.scored(Z, V, np.zeros(1)) - y[:, None]
    kernels.add_outer(sums, Z, off, np.ones(len(Z)), bound, per_step)
    return sums


def answer_histogram(question: LabelHistogram, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count in integers, then draw; every bin is noised, empty or not."""
    mechanism = question.plan.lattice("counts")
    return {"counts": draw("counts", mechanism.place(rows.total(partial(_counts, question))))}


def _counts(question: LabelHistogram, batch: Batch) -> IntArray:
    """Labels of a batch by bin; one beyond the bounds is in the first or the last."""
    assert batch.y is not None
    places = np.searchsorted(question.edges[1:-1], batch.y, side="right")
    return np.bincount(places, minlength=question.bins).astype(np.int64)


__all__ = ["answer_descent", "answer_histogram"]
