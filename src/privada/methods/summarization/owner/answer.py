"""How owners and the consumer answer: one pass of the embedding; rows are chosen by local herding."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.methods.summarization.learner.herding import herd
from privada.methods.summarization.owner.denoising import denoise
from privada.methods.summarization.questions.rounds import (
    NO_POINT,
    Participation,
    RoundBids,
    RoundPoints,
)
from privada.methods.summarization.questions.rows import EmbeddedRows, SummaryRows
from privada.methods.summarization.questions.scoring import order_points, score_points
from privada.methods.summarization.questions.sums import EmbeddingSum, NearCount
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows


def answer_sum(question: EmbeddingSum, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Sum the embedding in whole grid steps, then draw."""
    width = question.embedding.dimension
    return {"sum": draw("sum", rows.total(partial(_sum_batch, question), numbers=width))}


def _sum_batch(question: EmbeddingSum, batch: Batch) -> IntArray:
    """The batch's embeddings in whole grid steps, added up."""
    from privada.methods.summarization.questions import kernels

    steps = 1 / question.plan.lattice("sum").grid.step
    sums = np.zeros(question.embedding.dimension, dtype=np.int64)
    kernels.add_truncated(sums, question.embedding.transform(batch.X), steps)
    return sums


def answer_near(question: NearCount, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count rows beyond the hyperplane, then draw."""
    count = rows.total(partial(_count_batch, question), numbers=question.embedding.dimension)
    return {"count": draw("count", question.plan.lattice("count").place(count))}


def _count_batch(question: NearCount, batch: Batch) -> IntArray:
    """How many rows of the batch lie beyond the hyperplane."""
    from privada.methods.summarization.questions import kernels

    features = question.embedding.transform(batch.X)
    return np.array([kernels.count_beyond(features, question.direction, question.threshold)])


def answer_rows(question: SummaryRows, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Raw rows and labels that match the target best, in the order of choice."""
    X, y, chosen, _ = _match_rows(question, rows)
    return {"X": X[chosen]} | ({} if y is None else {"y": y[chosen]})


def answer_embeddings(question: EmbeddedRows, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """The same rows' embeddings and labels."""
    _, y, chosen, features = _match_rows(question, rows)
    return {"H": features[chosen]} | ({} if y is None else {"y": y[chosen]})


def answer_participation(question: Participation, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Nothing but the promise, which was charged."""
    return {"rounds": question.rounds.rounds, "against": question.rounds.against}


def answer_bids(question: RoundBids, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Scores and numbers of the best points that were not sent, falling; the first of equal rows only.

    A row's score is a function of that row; ties are broken by the rows' values (`order_points`).
    """
    X = rows.gathered().X
    left = np.setdiff1d(first_of_equals(X), question.sent)
    scores = score_points(question.embedding.transform(X[left]), question.slope)
    order = order_points(scores, X[left], most=question.batch)
    return {"scores": scores[order], "index": left[order]}


def answer_points(question: RoundPoints, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Raw rows and labels by number; none for the places that name no point."""
    batch = rows.gathered()
    X, y = batch.X, batch.y
    index = question.index[question.index != NO_POINT]
    return {"X": X[index]} | ({} if y is None else {"y": y[index]})


def _match_rows(
    question: SummaryRows, rows: Rows
) -> tuple[FloatArray, npt.NDArray[Any] | None, IntArray, FloatArray]:
    held = rows.gathered()
    X, y = held.X, held.y
    features = question.embedding.transform(X)
    target, _ = denoise(features, question.target, question.variance)
    distinct = first_of_equals(X)
    quick = features[distinct].astype(np.float32)
    chosen = herd(quick, target, min(question.skip + question.size, len(distinct)))[question.skip :]
    return X, y, distinct[chosen], features


def first_of_equals(X: FloatArray) -> IntArray:
    """Index of the first of each set of equal rows, in order: a summary holds a point once."""
    if not len(X):
        return np.zeros(0, dtype=np.int64)
    whole = np.ascontiguousarray(X + 0.0)  # -0.0 and 0.0 are one number
    keys = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).reshape(-1)
    return np.sort(np.unique(keys, return_index=True)[1])


__all__ = [
    "answer_bids",
    "answer_embeddings",
    "answer_near",
    "answer_participation",
    "answer_points",
    "answer_rows",
    "answer_sum",
    "first_of_equals",
]
