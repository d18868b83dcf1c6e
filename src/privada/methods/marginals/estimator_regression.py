"""The scikit-learn face of learning a number through squared errors: both sides in one process."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada.exceptions import InputError
from privada.methods.marginals.learner import Public
from privada.methods.marginals.regression import default_regression, learn_regression
from privada.parties.owner import Owner
from privada.parties.protocol import run
from privada.parties.schema import Number, Schema
from privada.privacy.guarantee import request

FloatArray = npt.NDArray[np.float64]


class MarginalRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predict a number for a private labelled target with an unlabelled public source.

    Parameters
    ----------
    bounds : (low, high)
        Public limits of the features; rows beyond them are clipped.
    label_bounds : (low, high)
        Public limits of the label; labels and predictions beyond them are clipped.
    epsilon, rho : float
        The guarantee: one of the two. It is split evenly over two rounds.
    relation : str
        Neighbouring relation.
    size : int
        Announced number of target rows: it plans the cells. Under "replace-one" it must be
        the true one.
    cells : int, optional
        Over how many cells of the source is asked; by default chosen from public quantities.
    regressor : scikit-learn regressor with ``sample_weight``, optional
        By default ridge regression.
    random_state : int
        Of public randomness only (cells).
    rehearsal : int, optional
        Seed for reproducible noise: not private.

    Attributes
    ----------
    synthetic_target_ : SyntheticNumbers
        The source, weighted and labelled to stand for the target, with its guarantees.
    forecast_ : Forecast
        Noise against signal on a cell's sum of labels, scaled to [-1, 1], as it was known before
        anything was spent.
    releases_, release_, guarantee_
        What left the owner, the last of it, and what all of it cost.
    model_

    Privacy
    -------
    Unit: one row of the target. It touches one count and one clipped squared error of each of two rounds;
    proofs are in ``docs/methods/marginals.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.uniform(size=(500, 2)), rng.uniform(size=(2000, 2))
    >>> labels = 20 * target[:, 0] + rng.normal(size=2000)
    >>> model = MarginalRegressor(bounds=(0, 1), label_bounds=(0, 20), epsilon=2, size=2000)
    >>> model.fit(target, labels, source=source).score(target, labels) > 0.9
    True
    >>> print(model.guarantee_)
    ε = 2 (pure), add/remove one row
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        label_bounds: Any = None,
        epsilon: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        size: int | None = None,
        cells: int | None = None,
        regressor: Any = None,
        random_state: int = 0,
        rehearsal: int | None = None,
    ) -> None:
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.epsilon = epsilon
        self.rho = rho
        self.relation = relation
        self.size = size
        self.cells = cells
        self.regressor = regressor
        self.random_state = random_state
        self.rehearsal = rehearsal

    def fit(self, X: Any, y: Any, *, source: Any = None) -> Self:
        """Learn from private target rows ``X, y`` and public, unlabelled ``source`` rows."""
        if source is None:
            raise InputError("Expected source, the public unlabelled rows.")
        rows = _check.matrix(source=source)
        guarantee = request(epsilon=self.epsilon, rho=self.rho, relation=self.relation)
        schema, label = self._schema(rows.shape[1]), self._label()
        public = Public(
            source=schema.box.clip(rows),
            classes=(),
            classifier=self.regressor,
            seed=_check.count(least=0, random_state=self.random_state),
        )
        assert self.size is not None
        plan = default_regression(
            public.source, guarantee=guarantee, size=self.size, seed=public.seed, cells=self.cells
        )
        learner = learn_regression(
            "owner", plan.cells, public, bounds=(label.low, label.high), guarantees=plan.guarantees
        )
        owner = Owner(
            np.asarray(X),
            y=np.asarray(y),
            schema=schema,
            dataset="fit",
            budget=guarantee,
            rehearsal=self.rehearsal,
        )
        self.fit_ = run(learner, {"owner": owner})
        self.forecast_, self.guarantee_ = plan.forecast, guarantee
        self.releases_ = self.fit_.releases
        self.release_ = self.releases_[-1]
        self.model_, self.synthetic_target_ = self.fit_.model, self.fit_.synthetic
        self.n_features_in_ = schema.width
        return self

    def predict(self, X: Any) -> FloatArray:
        """Number for each row."""
        check_is_fitted(self, "fit_")
        rows = _check.matrix(X=X, width=self.n_features_in_)
        label = self._label()
        found = self.fit_.predict(self._schema(self.n_features_in_).box.clip(rows))
        return np.clip(found, label.low, label.high)

    def _label(self) -> Number:
        if np.shape(self.label_bounds) != (2,):
            raise InputError(f"Expected label_bounds to be (low, high), got {self.label_bounds!r}.")
        low, high = self.label_bounds
        return Number(name="label", low=float(low), high=float(high))

    def _schema(self, width: int) -> Schema:
        for name in ("bounds", "label_bounds", "size"):
            if getattr(self, name) is None:
                raise InputError(f"Expected {name}, which is public; none is taken from private rows.")
        return Schema.of_numbers(bounds=self.bounds, width=width, size=self.size, label=self._label())


__all__ = ["MarginalRegressor"]
