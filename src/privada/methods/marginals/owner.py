"""Answers about labels and outcomes, in whole numbers over the rows; the only module here that sees rows."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from privada._arrays import IntArray
from privada.methods.marginals.questions import (
    GRID,
    HypothesisChoice,
    LabelHistogram,
    OutcomeTables,
    SquaredErrors,
)
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows


def answer_outcomes(question: OutcomeTables, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count in integers, then draw; every entry gets noise, empty or not."""
    counts = rows.total(partial(count_outcomes, question))
    payload = {}
    for name, table in zip(question.names(), question.tables, strict=True):
        placed = question.plan.lattice(name).place(counts[name])
        payload[name] = draw(name, placed.reshape(table.n_cells, *question.outcomes))
    return payload


def count_outcomes(question: OutcomeTables, batch: Batch) -> dict[str, IntArray]:
    """Counts of a batch in every table."""
    codes, signs = np.zeros(len(batch), dtype=np.int64), None
    if question.count != "rows":
        assert batch.y is not None
        if question.hypothesis is None:
            codes = batch.y
        else:
            wrong = question.hypothesis.codes(batch.X) != batch.y
            if question.count == "signed":
                signs = np.where(wrong, 1.0, -1.0)
            else:
                right = (~wrong).astype(np.int64)
                codes = batch.y * 2 + right if question.count == "classes" else right
    entries, counts = math.prod(question.outcomes), {}
    for name, table in zip(question.names(), question.tables, strict=True):
        places = table.assign(batch.X) * entries + codes
        counted = np.bincount(places, weights=signs, minlength=table.n_cells * entries)
        # A float sum of ±1 is exact below 2^53.
        counts[name] = counted.astype(np.int64)
    return counts


def answer_choice(question: HypothesisChoice, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Score every candidate by its correct labels, then choose."""
    return {"choice": draw("choice", rows.total(partial(score_candidates, question)))}


def score_candidates(question: HypothesisChoice, batch: Batch) -> IntArray:
    """Rows of a batch that each candidate labels correctly."""
    right = [int((candidate.codes(batch.X) == batch.y).sum()) for candidate in question.candidates]
    return np.asarray(right, dtype=np.int64)


def answer_squares(question: SquaredErrors, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Counts and clipped squared errors, in whole steps."""
    totals = rows.total(partial(add_squares, question))
    payload: dict[str, Any] = {}
    for index in range(len(question.tables)):
        first, second = question.names(index)
        payload[first] = draw(first, question.plan.lattice(first).place(totals[first]))
        payload[second] = draw(second, totals[second])
    return payload


def add_squares(question: SquaredErrors, batch: Batch) -> dict[str, IntArray]:
    """Counts and errors of a batch in every table."""
    assert batch.y is not None
    # A number beyond floats is an error of 1, not a failure.
    with np.errstate(all="ignore"):
        off = question.hypothesis.scores(batch.X)[:, 0] - batch.y
        squares = np.nan_to_num(off * off / question.largest, nan=1.0)
    steps, totals = GRID.truncate(np.minimum(squares, 1.0)), {}
    for index, table in enumerate(question.tables):
        first, second = question.names(index)
        cells = table.assign(batch.X)
        totals[first] = np.bincount(cells, minlength=table.n_cells).astype(np.int64)
        totals[second] = np.zeros(table.n_cells, dtype=np.int64)
        np.add.at(totals[second], cells, steps)
    return totals


def answer_histogram(question: LabelHistogram, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count in integers, then draw; every bin gets noise, empty or not."""
    mechanism = question.plan.lattice("counts")
    return {"counts": draw("counts", mechanism.place(rows.total(partial(count_labels, question))))}


def count_labels(question: LabelHistogram, batch: Batch) -> IntArray:
    """Labels of a batch by bin; one beyond the bounds is in the first or the last."""
    assert batch.y is not None
    bins = np.searchsorted(question.edges[1:-1], batch.y, side="right")
    return np.bincount(bins, minlength=question.bins).astype(np.int64)


__all__ = [
    "add_squares",
    "answer_choice",
    "answer_histogram",
    "answer_outcomes",
    "answer_squares",
    "count_labels",
    "count_outcomes",
    "score_candidates",
]
