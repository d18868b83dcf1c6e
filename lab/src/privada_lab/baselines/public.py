"""Models and scales of public rows alone: they cost no privacy, and whatever does should beat them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.scaling import PublicScale
from privada_lab.baselines.private._asking import class_list

PENALTIES = [0.01, 0.1, 1.0, 10.0]  # inverse ones, of the logistic regression
FLATTEST = 1e-3  # of the largest variance of standardised features: flatter directions count as that flat


@dataclass(frozen=True, eq=False)
class PublicRidge:
    """A ridge regression of public rows, in the features' own units, and its root mean squared residual."""

    coef: FloatArray
    intercept: float
    residual: float

    @classmethod
    def fit(cls, X: Any, y: Any) -> Self:
        """Standardise and choose the penalty, both by the public rows alone."""
        from sklearn.linear_model import RidgeCV

        rows, labels = _check.matrix(X=X), np.asarray(y, dtype=np.float64)
        scale = PublicScale.of(rows)
        model = RidgeCV(len(rows) * np.logspace(-6, 1, 15)).fit(scale.standardise(rows), labels)
        coef = np.asarray(model.coef_, dtype=np.float64) / scale.spread
        made = cls(coef, float(model.intercept_ - coef @ scale.mean), 0.0)
        left = math.sqrt(float(np.mean((labels - made.predict(rows)) ** 2)))
        return cls(made.coef, made.intercept, left)

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows."""
        return np.asarray(np.asarray(X) @ self.coef + self.intercept)


class PublicLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A logistic regression of public rows, its penalty cross-validated on them where they allow it.

    ``predict_proba`` has a column for each of the public ``classes``, 0 where the public rows lack one.

    >>> model = PublicLogistic(classes=("no", "yes", "other")).fit([[0.0], [1.0]] * 9, ["no", "yes"] * 9)
    >>> model.predict([[0.9]]).tolist(), model.shares_.tolist()
    (['yes'], [0.5, 0.5, 0.0])
    """

    def __init__(self, *, classes: Any = None) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Standardise, choose the penalty and fit, all on public rows."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV

        rows, labels = _check.matrix(X=X), np.asarray(y)
        self.scale_, self.classes_ = PublicScale.of(rows), np.asarray(class_list(self.classes))
        known, counts = np.unique(labels, return_counts=True)
        if not np.isin(known, self.classes_).all():
            raise InputError("Expected public labels from the list of classes, got others.")
        self.model_ = None
        if len(known) > 1:
            plain = LogisticRegression(max_iter=300)
            search = GridSearchCV(plain, {"C": PENALTIES}, cv=3, scoring="neg_log_loss")
            chosen = search if counts.min() >= 3 else plain
            self.model_ = chosen.fit(self.scale_.rows(rows), labels)
        at = np.searchsorted(np.sort(self.classes_), known)
        self.columns_ = np.argsort(self.classes_, kind="stable")[at]
        self.shares_ = np.zeros(len(self.classes_))
        self.shares_[self.columns_] = counts / counts.sum()
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of all public classes."""
        found = np.zeros((len(X), len(self.classes_)))
        found[:, self.columns_] = (
            1.0 if self.model_ is None else self.model_.predict_proba(self.scale_.rows(X))
        )
        return found

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class."""
        likely: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return likely


def whiten(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The public rows' mean, and a map to features of covariance 1/d, flat directions excepted.

    >>> mixed = [[1.0, 0.5, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 9.0]]
    >>> rows = np.random.default_rng(0).normal(size=(2000, 3)) @ mixed
    >>> centre, whitening = whiten(rows)
    >>> bool(np.allclose(np.cov((rows - centre) @ whitening, rowvar=False, bias=True), np.eye(3) / 3))
    True
    """
    scale = PublicScale.of(X)
    Z = scale.standardise(X)
    eigen, V = np.linalg.eigh(Z.T @ Z / len(Z))
    floored = np.maximum(eigen, FLATTEST * eigen.max()) if eigen.max() > 0 else np.ones_like(eigen)
    return scale.mean, V / np.sqrt(floored * X.shape[1]) / scale.spread[:, None]


__all__ = ["PublicLogistic", "PublicRidge", "PublicScale", "whiten"]
