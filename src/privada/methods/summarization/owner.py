"""How owners and the consumer answer: one pass of the embedding; rows are chosen by local herding."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.methods.summarization.learner.summary import herd
from privada.methods.summarization.questions import kernels
from privada.methods.summarization.questions.matching import (
    EmbeddedRows,
    EmbeddingSum,
    NearCount,
    SummaryRows,
)
from privada.methods.summarization.questions.rounds import (
    NO_POINT,
    Participation,
    RoundBids,
    RoundPoints,
    order_points,
    score_points,
)
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows

GROUPS = (4, 8, 16, 32, 64)  # of rows, at each of which a mixture is fitted
REPEATS = 3
MOST_FITTED = 4000  # rows that groups are fitted on; all rows are assigned
_SUM_WEIGHT = 30.0  # of the equation "the shares sum to 1" beside equations of size 1/sqrt(d)


def answer_sum(question: EmbeddingSum, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Sum the embedding in whole grid steps, then draw."""
    width = question.embedding.dimension
    return {"sum": draw("sum", rows.total(partial(_sum_batch, question), numbers=width))}


def _sum_batch(question: EmbeddingSum, batch: Batch) -> IntArray:
    # Whole grid steps, each row truncated by itself: the sum has the same bits for any batches.
    steps = 1 / question.plan.lattice("sum").grid.step
    sums = np.zeros(question.embedding.dimension, dtype=np.int64)
    kernels.add_truncated(sums, question.embedding.transform(batch.X), steps)
    return sums


def answer_near(question: NearCount, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count rows beyond the hyperplane, then draw."""
    count = rows.total(partial(_count_batch, question), numbers=question.embedding.dimension)
    return {"count": draw("count", question.plan.lattice("count").place(count))}


def _count_batch(question: NearCount, batch: Batch) -> IntArray:
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


def _match_rows(
    question: SummaryRows, rows: Rows
) -> tuple[FloatArray, npt.NDArray[Any] | None, IntArray, FloatArray]:
    """All rows and labels, the places of those that match the target, and all embeddings."""
    batch = rows.gathered()
    features = question.embedding.transform(batch.X)
    # The target that the owner matches is its own: the curator never learns it.
    target, _ = denoise(features, question.target, question.variance)
    distinct = find_distinct(batch.X)
    single = features[distinct].astype(np.float32)  # single precision is enough to choose
    chosen = herd(single, target, min(question.skip + question.size, len(distinct)))[question.skip :]
    return batch.X, batch.y, distinct[chosen], features


def answer_participation(question: Participation, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Nothing but the promise, which was charged."""
    return {"rounds": question.rounds.rounds, "against": question.rounds.against}


def answer_bids(question: RoundBids, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Scores and numbers of the best points that were not sent, falling; the first of equal rows only.

    A row's score is a function of that row; ties are broken by the rows' values (`order_points`).
    """
    X = rows.gathered().X
    unsent = np.setdiff1d(find_distinct(X), question.sent)
    scores = score_points(question.embedding.transform(X[unsent]), question.slope)
    order = order_points(scores, X[unsent], most=question.batch)
    return {"scores": scores[order], "index": unsent[order]}


def answer_points(question: RoundPoints, rows: Rows, draw: Draws) -> dict[str, Any]:  # noqa: ARG001
    """Raw rows and labels by number; none for the places that name no point."""
    batch = rows.gathered()
    index = question.index[question.index != NO_POINT]
    return {"X": batch.X[index]} | ({} if batch.y is None else {"y": batch.y[index]})


def find_distinct(X: FloatArray) -> IntArray:
    """Index of the first of each set of equal rows, in order: a summary holds a point once."""
    if not len(X):
        return np.zeros(0, dtype=np.int64)
    rows = np.ascontiguousarray(X + 0.0)  # -0.0 and 0.0 are one number
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
    return np.sort(np.unique(keys, return_index=True)[1])


def denoise(
    features: npt.ArrayLike, noisy: npt.ArrayLike, variance: float, *, random_state: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Remove from a noisy mean what the rows at hand cannot express: post-processing at the owner's.

    Parameters
    ----------
    features : array of shape (n, d)
        Embedded rows.
    noisy : array of shape (d,)
        Their target, with independent noise on each coordinate.
    variance : float
        Of that noise; known, because it is part of the release.
    random_state : int, default=0
        Of the grouping.

    Returns
    -------
    target : array of shape (d,)
        The mean that the rows can express and that the noisy mean makes plausible.
    weights : array of shape (n,)
        What share each row has in it; they sum to 1.

    Notes
    -----
    The noise has a part in every one of d directions, while the mean of a validation set that is like some
    of the rows is a mixture of a few groups of them. Rows are grouped at several finenesses; for each
    grouping, the mixture of group means nearest to the noisy mean g~ is found. Mixtures are not negative and
    sum to 1, so groups that the validation set lacks drop out.

    The risk of a mixture with a active groups is estimated by Mallows' criterion
    ``|t - g~|² + 2 σ² (a - 1)``; weights ``exp(-risk / 4σ²)`` are those of Leung and Barron (2006), whose
    bound says that the average is nearly as good as the best grouping. No constant is tuned.
    """
    H, g = np.asarray(features, dtype=np.float64), np.asarray(noisy, dtype=np.float64)
    if _check.non_negative(variance=variance) == 0.0 or len(H) < GROUPS[0]:
        return g, np.full(len(H), 1 / max(len(H), 1))
    from scipy.sparse import csr_array

    # Mixtures are averaged, not selected, with exponential weights in their estimated risks.
    risks, mixtures = [], []
    for labels in _group_rows(H, random_state):
        sizes = np.bincount(labels)
        members = csr_array((np.ones(len(H)), (labels, np.arange(len(H)))), shape=(len(sizes), len(H)))
        means = np.asarray(members @ H) / sizes[:, None]
        shares = _find_nearest_mixture(means, g)
        gap = means.T @ shares - g
        risks.append(gap @ gap + 2 * variance * (np.count_nonzero(shares) - 1))
        mixtures.append((shares / sizes)[labels])
    trust = np.exp(-(np.array(risks) - min(risks)) / (4 * variance))
    weights = (trust / trust.sum()) @ np.array(mixtures)
    return H.T @ weights, weights


def _group_rows(H: FloatArray, random_state: int) -> Iterator[IntArray]:
    """Labels of every row, without empty groups."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rng = np.random.default_rng(random_state)
    fitted = H if len(H) <= MOST_FITTED else H[rng.choice(len(H), MOST_FITTED, replace=False)]
    different = len(np.unique(fitted, axis=0))  # rows may be copies of each other: no more groups than that
    for count in GROUPS:
        if count > len(fitted) // 4 and count != GROUPS[0]:
            return
        for _ in range(REPEATS):
            means = KMeans(
                min(count, different), n_init=1, max_iter=20, random_state=int(rng.integers(2**31))
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # groups may fall together all the same
                labels = means.fit(fitted).predict(H)
            yield np.unique(labels, return_inverse=True)[1].reshape(-1)


def _find_nearest_mixture(means: FloatArray, g: FloatArray) -> FloatArray:
    """Shares, not negative and summing to 1, of the mixture of means that is nearest to g."""
    from scipy.optimize import nnls

    equations = np.vstack([means.T, np.full(len(means), _SUM_WEIGHT)])
    try:
        shares = np.asarray(nnls(equations, np.append(g, _SUM_WEIGHT))[0])
    except RuntimeError:  # too many steps: on some rows only, so the answer must not fail with it
        shares = np.zeros(len(means))
    total = shares.sum()
    return shares / total if total > 0 else np.full(len(means), 1 / len(means))


__all__ = [
    "answer_bids",
    "answer_embeddings",
    "answer_near",
    "answer_participation",
    "answer_points",
    "answer_rows",
    "answer_sum",
    "denoise",
    "find_distinct",
]
