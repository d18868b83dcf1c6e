"""What public data gives for free: a warm start, and coordinates in which gradients need little noise.

Features are centred (and, by default, scaled) by the source, a constant is appended, and the eigenvectors of
the source's second moments are stretched by ``1/√(λ_i + λ)``: in these coordinates the public squared loss
with penalty λ has curvature 1 in every direction, so one step size serves all of them and clipping to a ball
treats all of them alike. Everything here is a function of public rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.linear.questions import losses

FloatArray = npt.NDArray[np.float64]
MOST_DIRECTIONS = 256
CURVATURE = {"squared": 1.0, "logistic": 0.25, "softmax": 0.5}  # majorises the loss's second derivative
PENALTIES = tuple(10.0 ** np.arange(-6.0, 0.6, 0.5))
INSIDE = 0.9  # share of public rows that the ball of clipping holds


@dataclass(frozen=True, eq=False)
class Scaling:
    """Centre and scale of the source."""

    center: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, X: FloatArray, *, standardize: bool) -> Scaling:
        """Of public rows; a constant column keeps scale 1."""
        center = X.mean(axis=0)
        spread = X.std(axis=0) if standardize else np.full(X.shape[1], float(np.sqrt(X.var(axis=0).mean())))
        return cls(center, np.where(spread > 1e-12 * (1 + np.abs(center)), spread, 1.0))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scaled rows with a constant 1 at the end."""
        return np.column_stack([(X - self.center) / self.scale, np.ones(len(X))])

    def unscaled(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A linear map of scaled rows as weights and intercepts of the rows themselves."""
        weights = W[:-1] / self.scale[:, None]
        return weights, W[-1] - self.center @ weights


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues (falling) and eigenvectors of the second moments of scaled public rows."""

    eigen: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> Spectrum:
        """By the smaller of the two Gram matrices."""
        m, d = X.shape
        if d <= m:
            eigen, V = np.linalg.eigh(X.T @ X / m)
        else:
            eigen, U = np.linalg.eigh(X @ X.T / m)
            V = X.T @ U / np.sqrt(np.maximum(eigen, 1e-300) * m)
        keep = np.argsort(eigen)[::-1][:MOST_DIRECTIONS]
        keep = keep[eigen[keep] > 1e-10 * max(float(eigen.max()), 1e-300)]
        return cls(eigen[keep], V[:, keep])

    def map(self, relative: float) -> FloatArray:
        """The preconditioner for a penalty relative to the largest eigenvalue."""
        penalty = relative * float(self.eigen[0])
        return np.asarray(self.vectors / np.sqrt(self.eigen + penalty))


def clipped(Z: FloatArray, radius: float) -> FloatArray:
    """Rows scaled back into the ball."""
    norms = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.asarray(Z * np.minimum(1.0, radius / np.maximum(norms, 1e-300)))


def radius_of(Z: FloatArray) -> float:
    """The ball that holds most public rows."""
    return float(np.quantile(np.linalg.norm(Z, axis=1), INSIDE))


def fit_public(loss: str, X: FloatArray, y: npt.NDArray[Any], penalty: float, n_outputs: int) -> FloatArray:
    """Penalised linear model of scaled rows; the constant is not penalised."""
    if loss == "squared":
        return _ridge(X, np.asarray(y, dtype=np.float64), penalty)[:, None]
    return _logistic(X, y, penalty, n_outputs)


def _ridge(X: FloatArray, y: FloatArray, penalty: float) -> FloatArray:
    m, d = X.shape
    level = float(y.mean())
    rows, left = X[:, :-1] - X[:, :-1].mean(axis=0), y - level
    if d <= m:
        w = np.linalg.solve(rows.T @ rows / m + penalty * np.eye(d - 1), rows.T @ left / m)
    else:
        w = rows.T @ np.linalg.solve(rows @ rows.T / m + penalty * np.eye(m), left) / m
    return np.append(w, level - X[:, :-1].mean(axis=0) @ w)


def _logistic(X: FloatArray, y: npt.NDArray[Any], penalty: float, n_outputs: int) -> FloatArray:
    """Newton-like fit by scikit-learn; classes that the rows do not have keep a low score."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    present = np.unique(y)
    n_classes = max(n_outputs, 2)
    table = np.zeros((X.shape[1], n_classes))
    share = np.bincount(np.asarray(y, dtype=np.int64), minlength=n_classes) + 1.0
    if len(present) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            made = LogisticRegression(C=1 / (penalty * len(X)), max_iter=200).fit(X[:, :-1], y)
        coef = made.coef_ if len(present) > 2 else np.vstack([-made.coef_, made.coef_]) / 2
        level = made.intercept_ if len(present) > 2 else np.r_[-made.intercept_, made.intercept_] / 2
        table[:-1, present] = coef.T
        table[-1, present] = level
    absent = np.setdiff1d(np.arange(n_classes), present)
    table[-1, absent] = np.log(share[absent] / share.sum())
    if len(present) == 1 and not len(absent):
        table[-1, present] = 0.0
    return table[:, 1:] - table[:, :1] if n_outputs == 1 else table


def mean_loss(loss: str, scores: FloatArray, y: npt.NDArray[Any]) -> float:
    """Mean loss; squared or logarithmic."""
    return float(losses.values(loss, scores, y).mean())


__all__ = [
    "CURVATURE",
    "PENALTIES",
    "Scaling",
    "Spectrum",
    "clipped",
    "fit_public",
    "mean_loss",
    "radius_of",
]
