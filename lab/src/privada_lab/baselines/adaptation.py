"""Adaptation of a labelled source to an unlabelled target by weights, without privacy: KMM and DM.

Both choose weights of the source rows that do not look at labels, then fit a weighted ridge regression.
*KMM* (Huang et al. 2006) matches the means of the two samples in a Gaussian kernel's feature space; *DM*
(Cortes and Mohri 2014) minimises the discrepancy for squared loss, the largest absolute eigenvalue of the
difference of second moments. `weights_for_moments` takes the target's second moments only, so a noisy
release of them makes it private (Bassily, Mohri and Suresh 2022): see
`privada_lab.baselines.private.linear.PrivateDM`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError

PENALTIES = tuple(10.0 ** np.arange(-7.0, 0.1, 0.5))


def ridge(X: FloatArray, y: FloatArray, penalty: float, weights: FloatArray | None = None) -> FloatArray:
    """Weighted ridge regression without intercept; weights sum to 1."""
    q = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    weighted = X * q[:, None]
    return np.asarray(np.linalg.solve(weighted.T @ X + penalty * np.eye(X.shape[1]), weighted.T @ y))


class _Weighted(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A weighted ridge regression on the source."""

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows."""
        check_is_fitted(self)
        return np.asarray(_check.matrix(X=X, width=len(self.coef_)) @ self.coef_)

    def _finish(self, X: FloatArray, y: Any, weights: FloatArray) -> Self:
        self.sample_weight_ = weights
        self.coef_ = ridge(X, np.asarray(y, dtype=np.float64), self.penalty, weights)
        return self


class KMM(_Weighted):
    """Kernel mean matching: not private.

    Parameters
    ----------
    penalty : float
        Of the ridge regression.
    bandwidth : float, optional
        Of the Gaussian kernel; by default the median distance of the source.
    bound : float
        Largest weight, times the mean weight.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.uniform(-1, 1, size=(200, 1)), rng.uniform(0.5, 1, size=(100, 1))
    >>> model = KMM(penalty=1e-4).fit(Xs, Xs[:, 0] ** 2, Xt)
    >>> bool(model.sample_weight_[Xs[:, 0] > 0.5].sum() > 0.8)
    True
    """

    def __init__(self, *, penalty: float = 1e-3, bandwidth: float | None = None, bound: float = 20.0) -> None:
        self.penalty = penalty
        self.bandwidth = bandwidth
        self.bound = bound

    def fit(self, X: Any, y: Any, Xt: Any) -> Self:
        """Weigh the source rows ``X`` like ``Xt``, and regress."""
        S, T = _pair(X, Xt)
        width = _median_distance(S) if self.bandwidth is None else self.bandwidth
        K, pull = _gram(S, S, width), _gram(S, T, width).mean(axis=1)
        q = np.full(len(S), 1 / len(S))
        step = 1 / max(float(np.linalg.norm(K, 2)) if len(S) <= 500 else float(K.sum(axis=1).max()), 1e-12)
        before, momentum = q, q
        for t in range(300):
            q = _capped_simplex(momentum - step * (K @ momentum - pull), self.bound / len(S))
            momentum = q + t / (t + 3) * (q - before)
            before = q
        return self._finish(S, y, q)


class DM(_Weighted):
    """Discrepancy minimisation for squared loss: not private.

    Parameters
    ----------
    penalty : float
        Of the ridge regression.
    rounds : int
        Of the Frank-Wolfe method on the smoothed largest eigenvalue.
    """

    def __init__(self, *, penalty: float = 1e-3, rounds: int = 300) -> None:
        self.penalty = penalty
        self.rounds = rounds

    def fit(self, X: Any, y: Any, Xt: Any) -> Self:
        """Weigh the source rows ``X`` so that their second moments are those of ``Xt``, and regress."""
        S, T = _pair(X, Xt)
        return self._finish(S, y, weights_for_moments(S, T.T @ T / len(T), rounds=self.rounds))


def weights_for_moments(S: FloatArray, moments: FloatArray, *, rounds: int = 300) -> FloatArray:
    """Weights of rows whose second moments come nearest to given ones, in the largest absolute eigenvalue.

    Frank-Wolfe from uniform weights; the gradient at weights q is ``x'Vx`` with V the softmax-weighted
    eigenprojections of the difference.
    """
    q = np.full(len(S), 1 / len(S))
    best, least, count = q, np.inf, max(1, len(S) // 100)
    found = S.T @ S / len(S)
    for t in range(rounds):
        eigen, V = np.linalg.eigh(found - moments)
        top = float(np.abs(eigen).max())
        if top < least:
            best, least = q, top
        heat = np.exp((np.abs(eigen) - top) / max(0.05 * top, 1e-300)) * np.sign(eigen)
        hot = np.abs(heat) > 1e-9  # the other directions pull with less than rounding
        slope = ((S @ V[:, hot]) ** 2) @ (heat[hot] / max(np.abs(heat).sum(), 1e-300))
        few = np.argsort(slope, kind="stable")[:count]
        step = 2 / (t + 20)
        q, found = q * (1 - step), found * (1 - step) + step / count * S[few].T @ S[few]
        q[few] += step / count
    return best


def _pair(X: Any, Xt: Any) -> tuple[FloatArray, FloatArray]:
    S = _check.matrix(X=X)
    T = _check.matrix(Xt=Xt)
    if S.shape[1] != T.shape[1]:
        raise InputError(f"Expected source and target of one width, got {S.shape[1]} and {T.shape[1]}.")
    return S, T


def _gram(A: FloatArray, B: FloatArray, width: float) -> FloatArray:
    squared = (A**2).sum(1)[:, None] + (B**2).sum(1)[None] - 2 * A @ B.T
    return np.asarray(np.exp(-np.maximum(squared, 0) / (2 * width**2)))


def _median_distance(X: FloatArray) -> float:
    few = X[:: max(1, len(X) // 300)]
    squared = (few**2).sum(1)[:, None] + (few**2).sum(1)[None] - 2 * few @ few.T
    return max(float(np.sqrt(np.median(np.maximum(squared, 0)))), 1e-9)


def _capped_simplex(v: FloatArray, cap: float) -> FloatArray:
    """The nearest point with entries in [0, cap] and sum 1."""
    low, high = float(v.min()) - 1, float(v.max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(v - middle, 0, cap).sum() > 1 else (low, middle)
    return np.asarray(np.clip(v - (low + high) / 2, 0, cap))


__all__ = ["DM", "KMM", "PENALTIES", "ridge", "weights_for_moments"]
