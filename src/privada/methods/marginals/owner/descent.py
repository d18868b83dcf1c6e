"""How a descent and a histogram of labels are answered: exact sums of whole steps, then noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.linear.owner import kernels
from privada.methods.marginals.questions.descent import LabelDescent
from privada.methods.marginals.questions.histogram import LabelHistogram
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.mechanism import Lattice

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def answer_descent(question: LabelDescent, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Every step: the sum of what records add at the current point, noised; the next point follows."""
    parts = [_prepared(question, batch) for batch in rows.batches()]
    V, released = question.start(), {}
    for name in question.names():
        sums = np.zeros(V.shape, dtype=np.int64)
        for Z, y in parts:
            sums += _gradient(question, Z, y, V)
        released[name] = draw(name, sums)
        V = question.go_on(V, released[name])
    return released


def _prepared(question: LabelDescent, batch: Batch) -> tuple[FloatArray, FloatArray]:
    """Features and labels of a batch, each record by itself."""
    assert batch.y is not None
    y = np.ascontiguousarray(batch.y, dtype=np.float64)
    if not question.n_classes:
        y = (y - question.middle) / question.unit
    return question.features(batch.X), y


def _gradient(question: LabelDescent, Z: FloatArray, y: FloatArray, V: FloatArray) -> IntArray:
    """What the records of a batch add at V, in grid steps."""
    mechanism = question.plan.draws[question.names()[0]]
    assert isinstance(mechanism, Lattice)
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
    mechanism, counts = question.plan.draws["counts"], np.zeros(question.bins, dtype=np.int64)
    assert isinstance(mechanism, Lattice)
    for batch in rows.batches():
        assert batch.y is not None
        places = np.searchsorted(question.edges[1:-1], batch.y, side="right")
        counts += np.bincount(places, minlength=question.bins)
    return {"counts": draw("counts", mechanism.place(counts))}


__all__ = ["answer_descent", "answer_histogram"]
