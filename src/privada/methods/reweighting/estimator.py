"""Reweighting with scikit-learn's API: both sides in one process."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada._arrays import AnyArray, FloatArray
from privada.exceptions import InputError
from privada.methods.method import Public
from privada.methods.method_estimator import MethodEstimator
from privada.methods.models.model_plot import Map, Numbers, PublicRows
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.reweighting.learner.adaptation import AdaptedPredictor
from privada.methods.reweighting.learner.ladder import AdaptedModel
from privada.methods.reweighting.method import Reweighting
from privada.parties.schema import Category, Number, Schema

BOUNDS = "Public limits of the features; by default the source's range, and its width more on both sides."


class Reweighted(MethodEstimator):
    """What all estimators share: how a fit is called, limits from the public source, and a picture."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    predicts_target_labels = True  # skada leaves the labels of the target to those who learn from them
    party = "target"
    model_: Any

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        Xt: Any = None,
        yt: Any = None,
        *,
        Xs: Any = None,
        ys: Any = None,
        sample_domain: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Adapt.

        Give source and target as ``fit(Xs, ys, Xt, yt)`` (POT's form); or the private target as ``X, y``
        and the public source as ``Xs=, ys=``; or both in ``X, y`` with ``sample_domain``, positive for
        source and negative for target (skada's form); or the public source as ``X, y`` and the target's
        `Owner` as ``owner``. ``person`` has the person of each row of the array that holds the target, or
        names a column of that frame, beside a `Dataset` with ``max_rows``; then the number of
        persons is public.
        """
        return self._fit(
            X, y, Xt=Xt, yt=yt, Xs=Xs, ys=ys, sample_domain=sample_domain, person=person, owner=owner
        )

    def _limits(self, public: Public) -> Any:
        """The given limits; else the public source's range, and its width more on both sides."""
        bounds = self._bounds()
        return _widen(public.X.min(axis=0), public.X.max(axis=0)) if bounds is None else bounds

    def _read_public(self, public: Public) -> Public:
        if public.y is None:
            raise InputError("Expected labels of source and target.")
        return public

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:  # noqa: ARG002 - weights need none
        """The weight of each standardised feature and of each public model."""
        columns, width = getattr(self, "feature_names_in_", None), self.n_features_in_
        coef = self.model_.coef.reshape(len(self.model_.coef), -1)
        names = (
            [f"feature {i}" for i in range(width)]
            if columns is None or len(columns) != width
            else list(columns)
        )
        names += [f"public model {i + 1}" for i in range(len(coef) - width)]
        outputs = getattr(self, "classes_", ["label"])[-coef.shape[1] :]
        return [
            Numbers(
                title="weight of each feature and public model",
                names=names,
                values=coef,
                series=[str(name) for name in outputs],
            )
        ]

    def _keep(self, model: Any, schema: Schema) -> None:
        super()._keep(model, schema)
        self.bounds_ = (schema.box.low, schema.box.high)

    def _inside(self, X: Any) -> FloatArray:
        """Rows within the public bounds, as the private ones were."""
        check_is_fitted(self)
        return np.clip(self._matrix(X), *self.bounds_)


class ReweightedNumbers(RegressorMixin, Reweighted):  # type: ignore[misc]
    """What regressors share: the label and its public limits."""

    shared = (
        *("epsilon", "delta", "rho", "bounds", "label_bounds"),
        *("random_state", "insecure_seed", "dataset", "schema"),
    )
    docs: ClassVar[dict[str, str]] = {
        "bounds": BOUNDS,
        "label_bounds": "Public limits of the label, to which private labels and predictions are clipped; by "
        "default the source's range, widened likewise.",
    }

    def _label(self, public: Public) -> Number:
        bounds = self._label_limits()
        if bounds is None:
            bounds = _widen(public.y.min(), public.y.max())
        if np.shape(bounds) != (2,):
            raise InputError(f"Expected label_bounds to be (low, high), got {bounds!r}.")
        return Number(name="label", low=float(bounds[0]), high=float(bounds[1]))

    def _read_public(self, public: Public) -> Public:
        public = super()._read_public(public)
        try:
            labels = np.asarray(public.y, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("Expected ys to be numbers; for classes use ReweightedClassifier.") from None
        if not np.isfinite(labels).all():
            raise InputError("Expected ys to be finite.")
        return Public(public.X, labels)

    def _keep(self, model: Any, schema: Schema) -> None:
        super()._keep(model, schema)
        assert schema.label_bounds is not None
        self.label_bounds_ = schema.label_bounds


class ReweightedClasses(ClassifierMixin, Reweighted):  # type: ignore[misc]
    """What classifiers share: the public list of classes."""

    shared = (
        *("epsilon", "delta", "rho", "classes", "bounds"),
        *("random_state", "insecure_seed", "dataset", "schema"),
    )
    docs: ClassVar[dict[str, str]] = {
        "classes": "The public list of the labels; by default those of the source.",
        "bounds": BOUNDS,
    }

    def _label(self, public: Public) -> Category:
        names = self._class_names()
        return Category(name="label", values=tuple(np.unique(public.y).tolist() if names is None else names))

    def _encode_public(self, public: Public, schema: Schema) -> Public:
        return Public(public.X, schema.classes.encode(public.y))

    def _keep(self, model: Any, schema: Schema) -> None:
        super()._keep(model, schema)
        self.classes_ = np.asarray(schema.classes.names)


class ReweightedRegressor(ReweightedNumbers):
    """Fit a regressor for a private target with the help of a public, labelled source.

    Models of the public source are mixed, and then corrected along the features, weighted by how precise the
    noisy releases are (`privada.methods.reweighting.learner.ladder`).

    Attributes
    ----------
    model_ : AdaptedModel or AdaptedPredictor
    coef_, intercept_
        The model in the features' own units, with ``base="linear"`` or ``algorithm="pcnvxadap"`` only.
    label_bounds_ : (float, float)
        Limits of the predictions.
    forecast_ : Forecast
        What was expected before anything was spent: the error over that of the public linear model. None for
        the paper's algorithms.
    release_, releases_, guarantee_, spent_
        What left the owner, its price, and what all uses of the target cost together. No weight of a private
        row is among it.

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proofs: `MixtureMoments`,
    `ReweightingDescent`, `Discrepancy`, `ConvexAdaptation`.

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

    method_type = Reweighting
    shared = ReweightedNumbers.shared
    docs: ClassVar[dict[str, str]] = ReweightedNumbers.docs

    def _label(self, public: Public) -> Number:
        if self._label_limits() is None and self.algorithm == "pcnvxadap":
            return Number(name="label", low=-1.0, high=1.0)  # to which it clips
        return super()._label(public)

    def _keep(self, model: AdaptedModel | AdaptedPredictor, schema: Schema) -> None:
        super()._keep(model, schema)
        linear_form = model.linear_form()
        if linear_form is not None:
            weights, intercepts = linear_form
            self.coef_, self.intercept_ = weights[:, 0], float(intercepts[0])

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        from privada.methods.reweighting.onnx import add_regressor

        return add_regressor(self, graph)

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows, within the label's public limits."""
        rows = self._inside(X)
        return np.clip(np.ravel(self.model_.scores(rows)), *self.label_bounds_)


class ReweightedClassifier(ReweightedClasses):
    """Fit a classifier for a private target with the help of a public, labelled source.

    Attributes
    ----------
    model_, classes_, forecast_, release_, releases_, guarantee_, spent_
        As of `ReweightedRegressor`; no model has ``coef_``.

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proofs: `MixtureMoments`,
    `CorrectionMoments`, `FiniteDiscrepancy`, `NonconvexAdaptation`.

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

    method_type = Reweighting
    shared = ReweightedClasses.shared
    docs: ClassVar[dict[str, str]] = ReweightedClasses.docs

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        from privada.methods.reweighting.onnx import add_classifier

        return add_classifier(self, graph)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of rows."""
        rows = self._inside(X)
        return self.model_.probabilities(rows)

    def predict(self, X: Any) -> AnyArray:
        """Most likely class of rows."""
        likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likely]


def _widen(low: Any, high: Any) -> tuple[Any, Any]:
    """A range, and its width more on both sides."""
    width = np.where(high > low, high - low, 1.0)
    return low - width, high + width


__all__ = ["ReweightedClassifier", "ReweightedRegressor"]
