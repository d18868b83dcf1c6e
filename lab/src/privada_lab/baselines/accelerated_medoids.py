"""Accelerated k-medoids of de Mathelin et al. 2022, the solver that paper 000 runs on a sanitised source.

Written anew from its description: centres are chosen greedily for a random part of the target; then, in
turns, points go to their nearest centre, unless the source is nearer, and each cluster takes the member
of least mean distance as its centre. The accelerated step is the latter: means over random members are raced,
and a candidate whose lower confidence limit (two standard errors) exceeds the best upper one is given up.

Distances to the source are exact here; the authors take them from a forest of random trees.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray

FIRST_BATCH = 3000  # target points among which, and for which, the first centres are chosen
BATCH = 100  # members by which candidates are compared at a time
MOST_TURNS = 10
TOLERANCE = 1e-4  # of the mean distance: less gained ends the turns
STANDARD_ERRORS = 2.0


def accelerated_medoids(
    target: npt.ArrayLike, k: int, *, caps: npt.ArrayLike | None = None, random_state: int | None = None
) -> IntArray:
    """Indices of k target points.

    Parameters
    ----------
    target : array of shape (n, d)
    k : int
        How many to choose, at most n.
    caps : array of shape (n,), optional
        Distance of each point to the source; none by default.
    random_state : int, optional

    Examples
    --------
    >>> target = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    >>> sorted(accelerated_medoids(target, 2, random_state=0).tolist())
    [1, 4]
    >>> accelerated_medoids(target, 1, caps=[1, 0, 1, 9, 9, 9], random_state=0).tolist()
    [4]
    """
    T, rng = _check.matrix(target=target), np.random.default_rng(random_state)
    n = len(T)
    served = np.full(n, np.inf) if caps is None else np.asarray(caps, dtype=np.float64).reshape(n)
    part = rng.choice(n, min(n, max(FIRST_BATCH, _check.count(k=k))), replace=False)
    centres = part[_greedy(T[part], k, served[part])]
    before, turns = np.inf, 0
    while turns < MOST_TURNS:
        distances = np.column_stack([served, _distances(T, T[centres])])
        label, cost = distances.argmin(axis=1), float(distances.min(axis=1).mean())
        if before - cost <= TOLERANCE:
            break
        before, turns = cost, turns + 1
        for place in range(k):
            members = np.flatnonzero(label == place + 1)
            if len(members):
                best = members[_race(T[members], rng)]
                now = distances[members, place + 1].mean()
                if _distances(T[members], T[[best]]).mean() < now:
                    centres[place] = best
    return centres


def _greedy(points: FloatArray, k: int, served: FloatArray) -> IntArray:
    """One centre after the other, each the one that saves most."""
    D, chosen = _distances(points, points), np.empty(k, dtype=np.int64)
    near = np.minimum(served, 2 * D.max())  # finite, so that savings can be compared
    for place in range(k):
        saved = np.maximum(near[:, None] - D, 0).sum(axis=0)
        saved[chosen[:place]] = -1
        chosen[place] = saved.argmax()
        near = np.minimum(near, D[:, chosen[place]])
    return chosen


def _race(members: FloatArray, rng: np.random.Generator) -> int:
    """The member of least mean distance to the others, as far as a race over random batches tells."""
    order, alive = rng.permutation(len(members)), np.arange(len(members))
    total, squares, seen = np.zeros(len(members)), np.zeros(len(members)), 0
    for start in range(0, len(members), BATCH):
        batch = order[start : start + BATCH] if len(alive) > BATCH else order[start:]
        D = _distances(members[alive], members[batch])
        total, squares = total + D.sum(axis=1), squares + np.square(D).sum(axis=1)
        seen += len(batch)
        mean = total / seen
        if seen == len(members):
            return int(alive[mean.argmin()])
        error = STANDARD_ERRORS * np.sqrt(np.maximum(squares / seen - mean**2, 0) / seen)
        kept = mean - error <= (mean + error)[mean.argmin()]
        alive, total, squares = alive[kept], total[kept], squares[kept]
    raise AssertionError("a race ends with the last batch")


def _distances(A: FloatArray, B: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(A, B), dtype=np.float64)


__all__ = ["accelerated_medoids"]
