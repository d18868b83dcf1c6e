"""How evaluations are answered: every record finds its entry, or adds its error, by itself."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.exceptions import AnswerError
from privada.methods.evaluation.questions.errors import GRID, ErrorMoments
from privada.methods.evaluation.questions.outcomes import OutcomeCounts
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.parties.schema import Number


def answer_outcomes(question: OutcomeCounts, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count in integers, then draw; every entry is noised, empty or not."""
    counts = rows.total(partial(_count, question), numbers=question.hypothesis.outputs)
    return {"table": draw("table", question.plan.lattice("table").place(counts))}


def _count(question: OutcomeCounts, batch: Batch) -> IntArray:
    """The table of a batch."""
    labels = np.asarray(batch.labels, dtype=np.int64)
    find = _scored if question.scored else _coded
    predicted, bins = find(question, batch.X, labels)
    _, predictions, n_bins = question.shape
    places = (labels * predictions + predicted) * n_bins + bins
    return np.bincount(places, minlength=math.prod(question.shape)).reshape(question.shape)


def _coded(question: OutcomeCounts, X: FloatArray, labels: IntArray) -> tuple[IntArray, IntArray]:
    """Predictions without scores; a record without a class is an error."""
    codes = question.hypothesis.codes(X)
    known = (codes >= 0) & (codes < question.n_classes)
    return np.where(known, codes, _another(question, labels)), np.zeros(len(labels), dtype=np.int64)


def _scored(question: OutcomeCounts, X: FloatArray, labels: IntArray) -> tuple[IntArray, IntArray]:
    """Predictions and bins from scores; a record without scores is an error, in the lowest bin."""
    scores = _linked(question, question.hypothesis.scores(X))
    absent = np.asarray(~np.isfinite(scores).all(axis=1), dtype=np.bool_)
    scores[absent] = 0.0
    if question.n_classes == 2:
        return _of_two(question, scores[:, -1], absent, labels)
    predicted = np.where(absent, _another(question, labels), scores.argmax(axis=1))
    binned = scores.max(axis=1) if question.positive is None else scores[:, question.positive]
    return predicted, np.where(absent, 0, _bins(question, binned))


def _of_two(
    question: OutcomeCounts, score: FloatArray, absent: npt.NDArray[np.bool_], labels: IntArray
) -> tuple[IntArray, IntArray]:
    """Of two classes: the bin says what is predicted, or without bins the threshold."""
    nothing = np.zeros(len(labels), dtype=np.int64)
    if not len(question.edges):
        said = (score >= question.threshold).astype(np.int64)
        return np.where(absent, 1 - labels, said), nothing
    wrong = np.where(labels == 1, 0, len(question.edges))
    return nothing, np.where(absent, wrong, _bins(question, score))


def _bins(question: OutcomeCounts, score: FloatArray) -> IntArray:
    return np.searchsorted(question.edges, score, side="right")


def _linked(question: OutcomeCounts, scores: FloatArray) -> FloatArray:
    """Scores, or probabilities made of them."""
    found = np.array(scores, dtype=np.float64)
    if question.link == "softmax":
        from privada.methods.cells.questions import kernels

        kernels.normalise(found)
    return found


def _another(question: OutcomeCounts, labels: IntArray) -> IntArray:
    """A class that is not the true one."""
    return (labels + 1) % question.n_classes


def answer_errors(question: ErrorMoments, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Rows, clipped errors and their squares, in whole steps."""
    label = rows.schema.label
    if not isinstance(label, Number):
        raise AnswerError("The label is not a number.")
    totals = rows.total(partial(_add_errors, question, float(label.low), float(label.high)))
    return {name: draw(name, totals[name]) for name in question.shares()}


def _add_errors(question: ErrorMoments, low: float, high: float, batch: Batch) -> dict[str, IntArray]:
    """What a batch adds to each sum. A record without a prediction has the largest error."""
    said = np.clip(question.hypothesis.scores(batch.X)[:, 0], low, high)
    off = (said - batch.labels) / math.sqrt(question.largest)
    share = np.minimum(np.nan_to_num(off * off, nan=1.0), 1.0)
    found = {"errors": _steps(share), "squares": _steps(share * share)}
    return found | ({"rows": _steps(np.ones(len(batch)))} if question.counts_rows else {})


def _steps(values: FloatArray) -> IntArray:
    return np.atleast_1d(GRID.truncate(values).sum())


__all__ = ["answer_errors", "answer_outcomes"]
