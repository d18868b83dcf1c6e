"""Remove from a noisy mean what the rows at hand cannot express: post-processing at the owner's.

The noise on g~ has a part in every one of d directions, while the mean of a validation set
that is like some of the rows is a mixture of a few groups of them. Rows are grouped at
several finenesses; for each grouping, the mixture of group means nearest to g~ is found, and the
mixtures are averaged with exponential weights in their estimated risk. Mixtures are not negative
and sum to 1, so groups that the validation set lacks drop out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray

GROUPS = (4, 8, 16, 32, 64)
REPEATS = 3
MOST_FITTED = 4000  # rows that groups are fitted on; all rows are assigned
_SUM_WEIGHT = 30.0  # of the equation "the shares sum to 1" beside equations of size 1/sqrt(d)


def denoise(
    features: npt.ArrayLike, noisy: npt.ArrayLike, variance: float, *, random_state: int = 0
) -> tuple[FloatArray, FloatArray]:
    """The mean that the rows can express and that a noisy mean makes plausible.

    Parameters
    ----------
    features : array of shape (n, d)
        Embedded rows.
    noisy : array of shape (d,)
        Their target, with independent noise on each coordinate.
    variance : float
        Of that noise; known, because it is part of the release.
    random_state : int
        Of the grouping.

    Returns
    -------
    target : array of shape (d,)
        The denoised mean.
    weights : array of shape (n,)
        What share each row has in it; they sum to 1.

    Notes
    -----
    The risk of a mixture with a active groups is estimated by Mallows' criterion
    ``|t - g~|² + 2 σ² (a - 1)``; weights ``exp(-risk / 4σ²)`` are those of Leung and Barron (2006), whose
    bound says that the average is nearly as good as the best grouping. No constant is tuned.
    """
    H, g = np.asarray(features, dtype=np.float64), np.asarray(noisy, dtype=np.float64)
    if _check.non_negative(variance=variance) == 0.0 or len(H) < GROUPS[0]:
        return g, np.full(len(H), 1 / max(len(H), 1))
    risks, mixtures = [], []
    for labels in _groupings(H, random_state):
        sizes = np.bincount(labels)
        means = _group_means(H, labels, sizes)
        shares = _nearest_mixture(means, g)
        gap = means.T @ shares - g
        risks.append(gap @ gap + 2 * variance * (np.count_nonzero(shares) - 1))
        mixtures.append((shares / sizes)[labels])
    trust = np.exp(-(np.array(risks) - min(risks)) / (4 * variance))
    weights = (trust / trust.sum()) @ np.array(mixtures)
    return H.T @ weights, weights


def _groupings(H: FloatArray, random_state: int) -> Iterator[IntArray]:
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


def _group_means(H: FloatArray, labels: IntArray, sizes: IntArray) -> FloatArray:
    from scipy.sparse import csr_array

    members = csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(len(sizes), len(H)))
    return np.asarray(members @ H) / sizes[:, None]


def _nearest_mixture(means: FloatArray, g: FloatArray) -> FloatArray:
    """Shares, not negative and summing to 1, of the mixture of means that is nearest to g."""
    from scipy.optimize import nnls

    equations = np.vstack([means.T, np.full(len(means), _SUM_WEIGHT)])
    try:
        shares = np.asarray(nnls(equations, np.append(g, _SUM_WEIGHT))[0])
    except RuntimeError:  # too many steps: on some rows only, so the answer must not fail with it
        shares = np.zeros(len(means))
    total = shares.sum()
    return shares / total if total > 0 else np.full(len(means), 1 / len(means))


__all__ = ["denoise"]
