"""What people would use instead of learning through marginals, without privacy: same estimator face.

Private ones are `DPLogisticRegression` and `PATE`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada.exceptions import InputError

FloatArray = npt.NDArray[np.float64]


class TargetTrained(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier trained on the target itself, in the clear: what no private method can pass.

    >>> from sklearn.linear_model import LogisticRegression
    >>> TargetTrained(LogisticRegression()).fit([[0.0], [1.0]] * 9, [0, 1] * 9).predict([[0.9]]).tolist()
    [1]
    """

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: Any, source: Any = None) -> Self:
        """Train; the source, if there is one, only standardises."""
        rows = _check.matrix(X=X)
        base = rows if source is None else _check.matrix(source=source, width=rows.shape[1])
        self.mean_, spread = base.mean(axis=0), base.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        self.model_ = clone(_model(self.classifier)).fit((rows - self.mean_) / self.scale_, np.asarray(y))
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row."""
        check_is_fitted(self)
        rows = _check.matrix(X=X, width=len(self.mean_))
        found: npt.NDArray[Any] = self.model_.predict((rows - self.mean_) / self.scale_)
        return found


class Majority(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The most frequent class, in the clear.

    >>> Majority().fit([[0.0]] * 3, ["no", "yes", "no"]).predict([[5.0]]).tolist()
    ['no']
    """

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Count."""
        self.classes_, counts = np.unique(np.asarray(y), return_counts=True)
        self.majority_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The same class for each row."""
        check_is_fitted(self)
        return np.full(len(X), self.majority_)


class PrivateWeighting(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Weights for a *labelled* public set so that it looks like the target, as Ji and Elkan 2013 do.

    A regularised logistic regression tells public rows from private ones; its noisy coefficients
    give each public row an importance weight, and a classifier is trained on the weighted
    public rows. It never uses the target's labels.

    Parameters
    ----------
    epsilon : float or None
        None for exact coefficients (no privacy). Otherwise output perturbation at this ε under
        replace-one of one private row, with rows clipped to ``norm_bound``.
    regularisation : float
        λ of the strongly convex objective; the coefficients move by at most R/(n λ), R the norm bound.
    rehearsal : int
        Seed; the noise is drawn in floating point, so results are "idealised arithmetic".

    References
    ----------
    Z. Ji and C. Elkan, *Differential privacy based on importance weighting*, Machine Learning 93, 2013.
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        epsilon: float | None = None,
        norm_bound: float = 1.0,
        regularisation: float = 0.01,
        rehearsal: int = 0,
    ) -> None:
        self.classifier = classifier
        self.epsilon = epsilon
        self.norm_bound = norm_bound
        self.regularisation = regularisation
        self.rehearsal = rehearsal

    def fit(self, X: Any, y: Any, *, target: Any = None) -> Self:
        """Train on labelled public rows, weighted toward the private ``target`` rows."""
        if target is None:
            raise InputError("Expected target, the private rows that the public ones should look like.")
        rows = _check.matrix(X=X)
        self.coef_ = self._coefficients(_clipped(rows, self.norm_bound), _clipped(target, self.norm_bound))
        score = _clipped(rows, self.norm_bound) @ self.coef_
        self.weights_ = np.exp(np.clip(score, -5, 5))
        self.weights_ /= self.weights_.mean()
        self.model_ = clone(_model(self.classifier)).fit(rows, np.asarray(y), sample_weight=self.weights_)
        self.classes_ = self.model_.classes_
        return self

    def _coefficients(self, public: FloatArray, private: FloatArray) -> FloatArray:
        from sklearn.linear_model import LogisticRegression

        both = np.vstack([public, private])
        side = np.repeat([0, 1], [len(public), len(private)])
        weights = np.repeat([0.5 / len(public), 0.5 / len(private)], [len(public), len(private)])
        strength = 1 / _check.positive(regularisation=self.regularisation)
        model = LogisticRegression(C=strength, fit_intercept=False)  # all of it strongly convex
        found = np.asarray(model.fit(both, side, sample_weight=weights).coef_[0], dtype=np.float64)
        if self.epsilon is None:
            return found
        reach = self.norm_bound / (len(private) * self.regularisation)  # 2 · ½ · R / (n λ)
        rng = np.random.default_rng(self.rehearsal)
        direction = rng.normal(size=len(found))
        radius = rng.gamma(len(found), reach / _check.positive(epsilon=self.epsilon))
        return found + radius * direction / np.linalg.norm(direction)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row."""
        check_is_fitted(self)
        found: npt.NDArray[Any] = self.model_.predict(_check.matrix(X=X))
        return found


def _clipped(rows: Any, radius: float) -> FloatArray:
    from privada.privacy.bounds import Ball

    return Ball(radius=radius).clip(_check.matrix(rows=rows))


def _model(classifier: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression() if classifier is None else classifier


__all__ = ["Majority", "PrivateWeighting", "TargetTrained"]
