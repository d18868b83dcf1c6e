"""Smooth class probabilities over a graph of public points (local and global consistency).

Points are joined to their nearest neighbours; the smoothed table F solves ``(I - α S) F = (1 - α) P``
with ``S = D^(-1/2) W D^(-1/2)``, so that near points have near probabilities. It is a sparse,
positive definite system, solved directly: the same input gives the same output.

Reference: D. Zhou et al., *Learning with local and global consistency*, NeurIPS 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError


def propagate(
    points: npt.ArrayLike, probabilities: npt.ArrayLike, *, n_neighbors: int = 10, alpha: float = 0.9
) -> FloatArray:
    """Smooth ``probabilities``, one row a point, over the graph of ``points``.

    Parameters
    ----------
    points : array of shape (n, features)
    probabilities : array of shape (n, classes)
        Not negative. A row of zeros is a point of which nothing is known.
    n_neighbors : int
        Each point is joined to so many others; all, if there are fewer.
    alpha : float
        Between 0 (nothing is smoothed) and 1.

    Returns
    -------
    array of shape (n, classes)
        Rows sum to 1; uniform where nothing arrives.

    Privacy
    -------
    Post-processing where points are public and probabilities come from a release.

    Examples
    --------
    >>> known = [[1, 0], [0, 0], [0, 1], [0, 0]]
    >>> propagate([[0.0], [0.1], [5.0], [5.1]], known, n_neighbors=1).round(2).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """
    return Propagation.of(points, n_neighbors=n_neighbors, alpha=alpha).smooth(probabilities)


@dataclass(frozen=True, eq=False)
class Propagation:
    """The graph of some points, its system factored once, for smoothing many tables.

    >>> graph = Propagation.of([[0.0], [0.1], [5.0], [5.1]], n_neighbors=1)
    >>> graph.smooth([[1, 0], [0, 0], [0, 1], [0, 0]]).round(2).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """

    size: int
    alpha: float
    factors: Any

    @classmethod
    def of(cls, points: npt.ArrayLike, *, n_neighbors: int = 10, alpha: float = 0.9) -> Self:
        """Build and factor; parameters as of `propagate`."""
        X = _check.matrix(points=points)
        _check.count(n_neighbors=n_neighbors)
        if not 0 <= _check.finite(alpha=alpha) < 1:
            raise InputError(f"Expected 0 <= alpha < 1, got {alpha!r}.")
        if len(X) == 1 or alpha == 0:
            return cls(len(X), 0.0, None)
        return cls(len(X), alpha, _factored(_similarity(X, min(n_neighbors, len(X) - 1)), alpha))

    def smooth(self, probabilities: npt.ArrayLike) -> FloatArray:
        """Smooth one table; rows sum to 1."""
        P = _check.matrix(probabilities=probabilities)
        if len(P) != self.size or (P < 0).any():
            raise InputError(
                f"Expected one row of probabilities, none negative, for each of {self.size} points."
            )
        if self.factors is None:
            return _normalised(P)
        return _normalised(np.maximum(self.factors.solve((1 - self.alpha) * P), 0.0))


def _similarity(X: FloatArray, n_neighbors: int) -> Any:
    """``D^(-1/2) W D^(-1/2)``: Gaussian weights, each pair's width from its points' farthest neighbours."""
    from scipy import sparse
    from sklearn.neighbors import NearestNeighbors

    distances, near = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    width = np.maximum(distances[:, -1], np.finfo(np.float64).tiny)
    weights = np.exp(-((distances / width[:, None]) * (distances / width[near])))
    at = np.repeat(np.arange(len(X)), n_neighbors)
    W = sparse.csr_array((weights.ravel(), (at, near.ravel())), shape=(len(X), len(X)))
    W = W.maximum(W.T)
    root = sparse.diags_array(1 / np.sqrt(np.maximum(W.sum(axis=1), np.finfo(np.float64).tiny)))
    return root @ W @ root


def _factored(similarity: Any, alpha: float) -> Any:
    from scipy import sparse
    from scipy.sparse.linalg import splu

    return splu(sparse.eye_array(similarity.shape[0], format="csc") - alpha * similarity.tocsc())


def _normalised(F: FloatArray) -> FloatArray:
    total = F.sum(axis=1, keepdims=True)
    return np.where(total > 0, F / np.where(total > 0, total, 1.0), 1 / F.shape[1])


class LabelPropagation(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """`propagate` with the face of a classifier that knows the points it will be asked about.

    Parameters
    ----------
    n_neighbors, alpha
        As in `propagate`.
    classes : sequence
        What the columns of the probabilities stand for.

    Attributes
    ----------
    probabilities_ : array of shape (n, classes)
        Smoothed, for the points that were fitted.

    Privacy
    -------
    None needed: points are public, probabilities come from a release.

    Examples
    --------
    >>> model = LabelPropagation(classes=("left", "right"), n_neighbors=1)
    >>> model = model.fit([[0.0], [0.1], [5.0], [5.1]], [[1, 0], [0.4, 0.6], [0, 1], [0, 1]])
    >>> model.predict([[0.12]]).tolist()
    ['left']
    """

    def __init__(self, *, classes: Any = None, n_neighbors: int = 10, alpha: float = 0.9) -> None:
        self.classes = classes
        self.n_neighbors = n_neighbors
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> Self:
        """Smooth the probabilities ``y``, one row for each public point of ``X``."""
        P = _check.matrix(y=y)
        names = tuple(range(P.shape[1])) if self.classes is None else tuple(self.classes)
        if len(names) != P.shape[1]:
            raise InputError(f"Expected {len(names)} columns of probabilities, got {P.shape[1]}.")
        self.points_ = _check.matrix(X=X)
        self.probabilities_ = propagate(self.points_, P, n_neighbors=self.n_neighbors, alpha=self.alpha)
        self.classes_ = np.asarray(names)
        self.n_features_in_ = self.points_.shape[1]
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the nearest fitted point."""
        check_is_fitted(self)
        from scipy.spatial import KDTree

        _, nearest = KDTree(self.points_).query(_check.matrix(X=X, width=self.n_features_in_))
        return self.probabilities_[nearest]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of the nearest fitted point."""
        likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likely]


__all__ = ["LabelPropagation", "Propagation", "propagate"]
