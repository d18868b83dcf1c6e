"""The scikit-learn faces of supervised adaptation to a private target: both sides in one process."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada.methods.linear.questions import losses
from privada.methods.reweighting.domains import Domains, label_number, split
from privada.methods.reweighting.learner.default import DescentPlan, plan
from privada.methods.reweighting.learner.learn import AdaptedModel
from privada.parties.owner import Owner
from privada.parties.protocol import run
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import Approximate, Guarantee, request

FloatArray = npt.NDArray[np.float64]


class _Reweighted(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: domains, public bounds, an owner in memory."""

    def _guarantee(self) -> Guarantee:
        return request(epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation="replace-one")

    def _schema(self, domains: Domains, label: Number | Category) -> Schema:
        bounds = self.bounds
        if bounds is None:  # of the public source, and its width more on both sides
            low, high = domains.Xs.min(axis=0), domains.Xs.max(axis=0)
            room = np.where(high > low, high - low, 1.0)
            bounds = (low - room, high + room)
        width = domains.Xs.shape[1]
        return Schema.of_numbers(bounds=bounds, width=width, label=label, size=len(domains.Xt))

    def _adapt(self, domains: Domains, made: DescentPlan, schema: Schema) -> AdaptedModel:
        guarantee, chooses = made.guarantee, made.selection == "private"
        owner = Owner(
            domains.Xt,
            y=domains.yt,
            schema=schema,
            dataset="target",
            budget=guarantee,
            accounting="gaussian" if isinstance(guarantee, Approximate) and not chooses else None,
            rehearsal=self.rehearsal,
        )
        model = run(made.learner("owner"), {"owner": owner})
        self.model_ = model
        self.alpha_ = model.alpha
        self.step_ = model.step
        self.discrepancy_ = model.discrepancy
        self.forecast_ = made.forecast
        self.release_ = model.releases[-1]
        self.releases_ = model.releases
        self.guarantee_ = model.guarantee
        self.n_features_in_ = schema.width
        return model

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self.model_.scores(_check.matrix(X=X, width=self.n_features_in_))


class ReweightedRegressor(RegressorMixin, _Reweighted):  # type: ignore[misc]
    """Fit a linear regressor for a private target with the help of a public, labelled source.

    Parameters
    ----------
    epsilon, delta, rho : float
        The guarantee for the target; epsilon and rho exclude each other, and epsilon needs a delta.
    bounds : (low, high), optional
        Public limits of the features; by default the public source's range, and its width more on both sides.
    label_bounds : (low, high), optional
        Public limits of the label; by default the public source's range, widened likewise. Private labels
        are clipped to them, and so are predictions: a linear model goes astray on rows unlike all others.
    alpha : float, optional
        Weight of the public data; by default chosen from public data and the released discrepancy.
    standardize : bool
        Scale each feature by the source; False keeps their ratios (text, features of one scale).
    selection : "public" or "private"
        Choose by public data alone; or spend a tenth of the budget to choose, on the private rows, between
        the public model, half of the correction and all of it.
    random_state : int, optional
        For public randomness only.
    rehearsal : int, optional
        Seed for reproducible noise: not private.

    Attributes
    ----------
    coef_, intercept_
        The model, in the features' own units.
    label_bounds_ : (float, float)
        Limits of the predictions.
    alpha_, discrepancy_, step_
        What was chosen, the discrepancy if it was asked for, and how much of the correction was taken.
    forecast_ : float
        Loss after adaptation over the public model's, as rehearsed on public data.
    release_, releases_, guarantee_
        What left the owner, and its price. No weight of a private row is among it.

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proofs: `Descent`, `Discrepancy`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(900, 3)), rng.normal(size=(2000, 3))
    >>> ys = Xs @ [1.0, 0.0, 1.0] + 0.3 * rng.normal(size=900)
    >>> yt = Xt @ [1.0, 1.0, 1.0] + 0.3 * rng.normal(size=2000)
    >>> model = ReweightedRegressor(epsilon=2, delta=1e-6, random_state=0)
    >>> model.fit(Xs, ys, Xt, yt).score(Xt, yt) > 0.9
    True
    >>> print(model.guarantee_)
    (ε = 2, δ = 1e-06), replace-one row
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        bounds: Any = None,
        label_bounds: Any = None,
        alpha: float | None = None,
        standardize: bool = True,
        selection: str = "public",
        random_state: int | None = None,
        rehearsal: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.alpha = alpha
        self.standardize = standardize
        self.selection = selection
        self.random_state = random_state
        self.rehearsal = rehearsal

    def fit(
        self,
        X: Any,
        y: Any,
        Xt: Any = None,
        yt: Any = None,
        *,
        Xs: Any = None,
        ys: Any = None,
        sample_domain: Any = None,
        groups: Any = None,
    ) -> Self:
        """Adapt.

        Give source and target as ``fit(Xs, ys, Xt, yt)`` (POT's form); or the private target as ``X, y``
        and the public source as ``Xs=, ys=``; or both in ``X, y`` with ``sample_domain``, positive for
        source and negative for target (skada's form). ``groups`` names the domain of each public row.
        """
        domains = split(X, y, Xt, yt, Xs, ys, sample_domain, groups)
        label = label_number(self.label_bounds, domains.ys)
        made = plan(
            domains.Xs,
            domains.ys,
            loss="squared",
            size=len(domains.Xt),
            guarantee=self._guarantee(),
            groups=domains.groups,
            alpha=self.alpha,
            standardize=self.standardize,
            selection=self.selection,
            random_state=self.random_state,
        )
        model = self._adapt(domains, made, self._schema(domains, label))
        self.coef_, self.intercept_ = model.coef[:, 0], float(model.intercept[0])
        self.label_bounds_ = (label.low, label.high)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows, within the label's public limits."""
        return np.clip(self._scores(X)[:, 0], *self.label_bounds_)


class ReweightedClassifier(ClassifierMixin, _Reweighted):  # type: ignore[misc]
    """Fit a logistic or softmax classifier for a private target with the help of a public, labelled source.

    Parameters
    ----------
    classes : sequence, optional
        Public list of the labels; by default those of the public source.
    epsilon, delta, rho, bounds, alpha, standardize, selection, random_state, rehearsal
        As in `ReweightedRegressor`.

    Attributes
    ----------
    classes_, coef_, intercept_, alpha_, forecast_, release_, releases_, guarantee_

    Notes
    -----
    A tenth of the budget asks for one gradient, which says how far the public model is to be believed, and
    with that where the descent starts. Of few rows, where noise is loud, it gets the whole budget and no
    descent follows: then ``alpha_`` is 0 and ``forecast_`` is 1.

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proof: `Descent`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(900, 3)), rng.normal(size=(2000, 3))
    >>> ys = (Xs @ [1.0, 0.0, 1.0] + rng.normal(size=900) > 0).astype(int)
    >>> yt = (Xt @ [1.0, 1.0, 1.0] + rng.normal(size=2000) > 0).astype(int)
    >>> model = ReweightedClassifier(epsilon=2, delta=1e-6, random_state=0)
    >>> model.fit(Xs, ys, Xt, yt).score(Xt, yt) > 0.8
    True
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        classes: Any = None,
        bounds: Any = None,
        alpha: float | None = None,
        standardize: bool = True,
        selection: str = "public",
        random_state: int | None = None,
        rehearsal: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.classes = classes
        self.bounds = bounds
        self.alpha = alpha
        self.standardize = standardize
        self.selection = selection
        self.random_state = random_state
        self.rehearsal = rehearsal

    def fit(
        self,
        X: Any,
        y: Any,
        Xt: Any = None,
        yt: Any = None,
        *,
        Xs: Any = None,
        ys: Any = None,
        sample_domain: Any = None,
        groups: Any = None,
    ) -> Self:
        """Adapt; the forms are those of `ReweightedRegressor.fit`."""
        domains = split(X, y, Xt, yt, Xs, ys, sample_domain, groups)
        names = np.unique(domains.ys).tolist() if self.classes is None else list(self.classes)
        label = Category(name="label", values=tuple(names))
        schema = self._schema(domains, label)
        loss = "logistic" if len(names) == 2 else "softmax"
        made = plan(
            domains.Xs,
            schema.classes.encode(domains.ys),
            loss=loss,
            size=len(domains.Xt),
            guarantee=self._guarantee(),
            n_outputs=losses.outputs(loss, len(names)),
            groups=domains.groups,
            alpha=self.alpha,
            standardize=self.standardize,
            selection=self.selection,
            random_state=self.random_state,
        )
        model = self._adapt(domains, made, schema)
        self.classes_ = np.asarray(names)
        self.coef_, self.intercept_ = model.coef, model.intercept
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of rows."""
        scores = self._scores(X)
        if scores.shape[1] > 1:
            return losses.probabilities("softmax", scores)
        second = losses.probabilities("logistic", scores)[:, 0]
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of rows."""
        found: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return found


__all__ = ["ReweightedClassifier", "ReweightedRegressor"]
