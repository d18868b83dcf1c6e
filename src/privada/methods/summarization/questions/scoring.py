"""Scores, their order, and owners' ranks: computed alike by owners and curator.

Both lemmas of the round protocol need scores that depend on one point alone, and a total order of points
(`privada.methods.summarization.questions.round_plan`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privada._arrays import FloatArray, IntArray


def ranks(
    bids: Mapping[str, FloatArray], pooled: Mapping[str, FloatArray], *, batch: int = 1
) -> dict[str, int]:
    """Rank of each owner that has an unsent point; at rank 1 its point may be among the best.

    Parameters
    ----------
    bids : mapping of owner to array
        Scores of its best unsent points, at most ``batch``, falling.
    pooled : mapping of owner to array
        Scores of its points that were sent and are not in the summary.
    batch : int
        How many points the round takes.

    Notes
    -----
    ``1 + max(0, b - (batch - 1))`` with b the number of other owners' points that are better than the owner's
    best unsent one, counting at most ``batch`` of each owner. At rank above 1, batch others are better: none
    of its unsent points is among the best. b moves by at most one when one point of one other owner changes.
    """
    best = {}
    for name in {*bids, *pooled}:
        joint = np.concatenate([bids.get(name, np.zeros(0)), pooled.get(name, np.zeros(0))])
        best[name] = np.sort(joint)[::-1][:batch]
    found = {}
    for name, scores in bids.items():
        if len(scores):
            better = sum(int(np.sum(best[other] > scores[0])) for other in best if other != name)
            found[name] = 1 + max(0, better - (batch - 1))
    return found


def score_points(features: FloatArray, slope: FloatArray) -> FloatArray:
    """Score of each point, a function of that point alone: the same in any company, on either side."""
    from privada.methods.summarization.questions import kernels

    scores = np.empty(len(features))
    kernels.score(np.ascontiguousarray(features), np.ascontiguousarray(slope), scores)
    return scores


def order_points(scores: FloatArray, X: FloatArray, *, most: int) -> IntArray:
    """Indices of the best points, at most ``most``, falling; equal scores by the rows' values.

    Different rows have different places whatever rows stand before or between them.

    >>> order_points(np.array([1.0, 2.0, 2.0]), np.array([[0.0], [5.0], [4.0]]), most=2).tolist()
    [2, 1]
    """
    if len(scores) > most:
        least = np.partition(scores, -most)[-most]
        kept = np.flatnonzero(scores >= least)
    else:
        kept = np.arange(len(scores))
    order = np.lexsort((*X[kept].T[::-1], -scores[kept]))[:most]
    return kept[order]


__all__ = ["order_points", "ranks", "score_points"]
