"""What people would use instead of learning through marginals, without privacy: same estimator face.

Private ones are `DPLogisticRegression`, `PATE` and `PrivateWeighting`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada.methods.scaling import PublicScale


class TargetTrained(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier trained on the exact target: an upper limit of what a private method can reach.

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
        self.scale_ = PublicScale.of(base)
        standard = self.scale_.standardise(rows).astype(np.float32)
        self.model_ = clone(_model(self.classifier)).fit(standard, np.asarray(y))
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row."""
        check_is_fitted(self)
        rows = _check.matrix(X=X, width=len(self.scale_.mean))
        return self.model_.predict(self.scale_.standardise(rows))


class Majority(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The most frequent class, from exact counts.

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


def _model(classifier: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression() if classifier is None else classifier


__all__ = ["Majority", "TargetTrained"]
