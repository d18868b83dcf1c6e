"""Adaptation without privacy: source only, target only, and optimal transport, one target model for all.

`source_only` trains where the labels are; `target_only` on a few labelled target rows; `OTDA` moves the
source to the target by POT's group-sparse transport (Courty et al. 2017) and trains there. Probabilities can
be smoothed over the target's graph by `privada_lab.baselines.propagate`. None of them protects anything.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.methods.transport.learner.coupling import require_pot

FORBIDDEN = 1.0  # added to costs of at most 1 between different labels: never infeasible
STRENGTH = 10.0  # inverse regularisation of the target model, on rows of norm 1


def target_model() -> Any:
    """The classifier that every baseline trains: logistic regression."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=STRENGTH, max_iter=1000)


def source_only(X: npt.ArrayLike, y: npt.ArrayLike) -> Any:
    """A model trained on the exact source, without adaptation."""
    return target_model().fit(_check.matrix(X=X), np.asarray(y))


def target_only(X: npt.ArrayLike, y: npt.ArrayLike) -> Any:
    """Train on labelled target rows."""
    return target_model().fit(_check.matrix(X=X), np.asarray(y))


class OTDA(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Optimal-transport domain adaptation, not private (Courty et al. 2017), by POT.

    Parameters
    ----------
    reg_e, reg_cl : float
        Entropic and group regularisation of costs scaled to a largest value of 1.

    Attributes
    ----------
    coupling_, mapped_
        Plan, and the source in the target's domain.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 30)
    >>> X = rng.normal(0, 0.1, (60, 2)) + y[:, None]
    >>> float((OTDA(reg_e=0.05).fit(X, y, X + 0.8).predict(X + 0.8) == y).mean())
    1.0
    """

    def __init__(self, *, reg_e: float = 0.01, reg_cl: float = 0.1) -> None:
        self.reg_e = reg_e
        self.reg_cl = reg_cl

    def fit(self, X: Any, y: Any, Xt: Any, yt: Any = None) -> Self:
        """Move the source to the target and train there; ``yt`` is -1 where a target label is unknown.

        Known labels forbid mass from other classes and are trained on too.
        """
        require_pot()
        import ot

        source, target = _check.matrix(X=X), _check.matrix(Xt=Xt)
        codes = np.unique(np.asarray(y), return_inverse=True)[1]
        cost = ot.dist(source, target)
        cost /= cost.max()
        known = np.zeros(0, dtype=np.int64) if yt is None else np.flatnonzero(np.asarray(yt) != -1)
        for at in known:
            cost[np.asarray(y) != np.asarray(yt)[at], at] += FORBIDDEN
        rows, columns = (np.full(n, 1 / n) for n in cost.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it stopped at its limit of iterations
            self.coupling_ = ot.da.sinkhorn_lpl1_mm(rows, codes, columns, cost, self.reg_e, eta=self.reg_cl)
        mass = np.maximum(self.coupling_.sum(axis=1, keepdims=True), 1e-300)
        self.mapped_ = self.coupling_ @ target / mass
        labels = np.asarray(y) if yt is None else np.concatenate([np.asarray(y), np.asarray(yt)[known]])
        self.model_ = target_model().fit(np.concatenate([self.mapped_, target[known]]), labels)
        self.classes_ = self.model_.classes_
        self.n_features_in_ = target.shape[1]
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities."""
        check_is_fitted(self)
        return self.model_.predict_proba(_check.matrix(X=X, width=self.n_features_in_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


__all__ = ["OTDA", "source_only", "target_model", "target_only"]
