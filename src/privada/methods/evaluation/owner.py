"""Answers to an evaluation, the only module of this package that sees rows: each record counts by itself."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.exceptions import AnswerError
from privada.methods.evaluation.questions import GRID, ErrorMoments, OutcomeCounts
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows


def answer_outcomes(question: OutcomeCounts, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count in integers, then draw; every entry gets noise, empty or not."""
    counts = rows.total(partial(count_outcomes, question), numbers=question.hypothesis.outputs)
    return {"table": draw("table", question.plan.lattice("table").place(counts))}


def count_outcomes(question: OutcomeCounts, batch: Batch) -> IntArray:
    """The table of a batch."""
    labels = np.asarray(batch.labels, dtype=np.int64)
    if question.scored:
        predicted, bins = _predict_by_scores(question, batch.X, labels)
    else:
        # A record without a class is an error: it counts as another class than the true one.
        codes, bins = question.hypothesis.codes(batch.X), np.zeros(len(labels), dtype=np.int64)
        valid = (codes >= 0) & (codes < question.n_classes)
        predicted = np.where(valid, codes, (labels + 1) % question.n_classes)
    _, predictions, n_bins = question.shape
    places = (labels * predictions + predicted) * n_bins + bins
    return np.bincount(places, minlength=math.prod(question.shape)).reshape(question.shape)


def _predict_by_scores(question: OutcomeCounts, X: FloatArray, labels: IntArray) -> tuple[IntArray, IntArray]:
    """Predictions and bins from scores; a record without scores is an error, in the lowest bin."""
    scores = np.array(question.hypothesis.scores(X), dtype=np.float64)
    if question.link == "softmax":
        from privada.methods.cells.questions import kernels

        kernels.normalise(scores)
    absent = ~np.isfinite(scores).all(axis=1)
    scores[absent] = 0.0
    if question.n_classes > 2:
        predicted = np.where(absent, (labels + 1) % question.n_classes, scores.argmax(axis=1))
        binned = scores.max(axis=1) if question.positive is None else scores[:, question.positive]
        return predicted, np.where(absent, 0, np.searchsorted(question.edges, binned, side="right"))
    # Of two classes, the bin tells the prediction; without bins, the threshold does.
    score, zeros = scores[:, -1], np.zeros(len(labels), dtype=np.int64)
    if not len(question.edges):
        return np.where(absent, 1 - labels, (score >= question.threshold).astype(np.int64)), zeros
    wrong_bins = np.where(labels == 1, 0, len(question.edges))
    return zeros, np.where(absent, wrong_bins, np.searchsorted(question.edges, score, side="right"))


def answer_errors(question: ErrorMoments, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Add up rows, clipped errors and their squares, in whole steps, then draw."""
    if rows.schema.label_bounds is None:
        raise AnswerError("The label is not a number.")
    low, high = map(float, rows.schema.label_bounds)
    totals = rows.total(partial(add_errors, question, low, high))
    return {name: draw(name, totals[name]) for name in question.shares()}


def add_errors(question: ErrorMoments, low: float, high: float, batch: Batch) -> dict[str, IntArray]:
    """Sums over a batch; a record without a prediction has the largest error."""
    predicted = np.clip(question.hypothesis.scores(batch.X)[:, 0], low, high)
    off = (predicted - batch.labels) / math.sqrt(question.largest)
    share = np.minimum(np.nan_to_num(off * off, nan=1.0), 1.0)
    terms = {"errors": share, "squares": share * share, "rows": np.ones(len(batch))}
    return {name: np.atleast_1d(GRID.truncate(terms[name]).sum()) for name in question.shares()}


__all__ = ["add_errors", "answer_errors", "answer_outcomes", "count_outcomes"]
