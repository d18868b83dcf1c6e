"""The scikit-learn faces of supervised adaptation to a private target: both sides in one process."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada._arrays import FloatArray
from privada._progress import showing
from privada.exceptions import InputError
from privada.methods.domains import private_persons
from privada.methods.estimating import PrivateEstimator
from privada.methods.models.model_plot import Map, Numbers, PublicRows
from privada.methods.reweighting.domains import Domains, label_number, split
from privada.methods.reweighting.learner.ladder import AdaptedModel, Ladder, plan
from privada.parties.one_process.dataset import Dataset
from privada.parties.owner import Owner
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import Guarantee, make_guarantee


class _Reweighted(PrivateEstimator):
    """What both estimators share: domains, public bounds, an owner in memory."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    model_: AdaptedModel
    predicts_target_labels = True  # skada leaves the labels of the target to those who learn from them

    def _guarantee(self) -> Guarantee:
        return make_guarantee(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation="replace-one", unit=self._unit()
        )

    def _with_persons(self, domains: Domains, person: Any) -> Domains:
        """The domains, with the persons of the target and the number of rows that is public then."""
        if person is None:
            return domains
        return domains._replace(person=person, public_size=self._public_size(domains.Xt, person))

    def _schema(self, domains: Domains, label: Number | Category) -> Schema:
        if domains.owner is not None:
            return _known_size(domains.owner)
        bounds = self._bounds()
        if bounds is None:  # of the public source, and its width more on both sides
            low, high = domains.Xs.min(axis=0), domains.Xs.max(axis=0)
            room = np.where(high > low, high - low, 1.0)
            bounds = (low - room, high + room)
        width = domains.Xs.shape[1]
        return Schema.of_numbers(bounds=bounds, width=width, label=label, size=domains.size)

    def _plan(self, Xs: FloatArray, ys: npt.NDArray[Any], **settings: Any) -> Ladder:
        """Fit the public models; nothing is asked yet."""
        with showing(f"{type(self).__name__}: models of the public source"):
            return plan(Xs, ys, **settings)

    def _adapt(self, domains: Domains, made: Ladder, schema: Schema) -> None:
        guarantee = made.guarantee
        self.forecast_ = made.forecast
        held = self._hold(
            domains.Xt,
            [],
            y=domains.yt,
            person=domains.person,
            schema=schema,
            name="target",
            budget=guarantee,
            owner=domains.owner,
        )
        model = self._ask(made.inquiry("owner"), {"owner": held})
        self.n_features_in_ = schema.width
        keep_adapted(self, model, schema)

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """The weight of each standardised feature and of each public model; what a network predicts."""
        model = getattr(self, "model_", None)
        if model is None:
            return super()._panels(rows)
        own = getattr(self, "feature_names_in_", None)
        width = model.features.columns
        names = [f"feature {i}" for i in range(width)] if own is None or len(own) != width else list(own)
        names += [f"public model {i + 1}" for i in range(len(model.coef) - width)]
        outputs = getattr(self, "classes_", ["label"])[-model.coef.shape[1] :]
        title = "weight of each feature and public model"
        return [Numbers(title=title, names=names, values=model.coef, series=[str(name) for name in outputs])]

    def _inside(self, X: Any) -> FloatArray:
        """Rows within the public bounds, as the private ones were."""
        check_is_fitted(self)
        return np.clip(self._matrix(X), *self.bounds_)


class ReweightedRegressor(RegressorMixin, _Reweighted):  # type: ignore[misc]
    """Fit a regressor for a private target with the help of a public, labelled source.

    Models of the public source are mixed, and then corrected along the features, as far as noisy releases
    speak for it (`privada.methods.reweighting.learner.ladder`).

    Parameters
    ----------
    epsilon, delta, rho : float, default=None
        The guarantee for the target; epsilon and rho exclude each other, and epsilon needs a delta.
    bounds : (low, high), default=None
        Public limits of the features; by default the public source's range, and its width more on both sides.
    label_bounds : (low, high), default=None
        Public limits of the label; by default the public source's range, widened likewise. Private labels
        are clipped to them, and so are predictions.
    base : "auto" or "linear", default="auto"
        Public models that take part: a linear one, boosted trees, a forest and a kernel machine; or the
        linear one alone, for a model with ``coef_`` and ``intercept_``.
    standardize : bool, default=True
        Scale each feature by the source; False keeps their ratios (text, features of one scale).
    random_state : int, default=None
        For public randomness only.
    insecure_seed : int, default=None
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values; its limits
        are the default of ``bounds``.

    Attributes
    ----------
    model_ : AdaptedModel
    coef_, intercept_
        The model in the features' own units, with ``base="linear"`` only.
    label_bounds_ : (float, float)
        Limits of the predictions.
    forecast_ : Forecast
        What was expected before anything was spent: the error over that of the public linear model.
    release_, releases_, guarantee_, spent_
        What left the owner, its price, and what all uses of the target cost together. No weight of a private
        row is among it.

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proofs: `MixtureMoments`,
    `ReweightingDescent`.

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
        base: str = "auto",
        standardize: bool = True,
        random_state: int | None = None,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.base = base
        self.standardize = standardize
        self.random_state = random_state
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

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
        people = self._read_person(person, X if Xt is None else Xt, owner)
        Xs, X, Xt = self._read_frames(Xs=Xs, X=X, Xt=Xt)
        domains = split(X, y, Xt, yt, Xs, ys, sample_domain, None, owner)
        domains = self._with_persons(domains, private_persons(people, sample_domain, sign=-1))
        label = label_number(self.label_bounds, domains.ys)
        made = self._plan(
            domains.Xs,
            domains.ys,
            size=domains.size,
            guarantee=self._guarantee(),
            label_bounds=(label.low, label.high),
            base=self.base,
            standardize=self.standardize,
            random_state=self.random_state,
        )
        self.label_bounds_ = (label.low, label.high)
        self._adapt(domains, made, self._schema(domains, label))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows, within the label's public limits."""
        rows = self._inside(X)
        return np.clip(self.model_.scores(rows)[:, 0], *self.label_bounds_)


class ReweightedClassifier(ClassifierMixin, _Reweighted):  # type: ignore[misc]
    """Fit a classifier for a private target with the help of a public, labelled source.

    Parameters
    ----------
    classes : sequence, default=None
        Public list of the labels; by default those of the public source.
    epsilon, delta, rho, bounds, base, standardize, random_state, insecure_seed, dataset, schema
        As in `ReweightedRegressor`; no forest takes part, and no model has ``coef_``.

    Attributes
    ----------
    model_, classes_, forecast_, release_, releases_, guarantee_, spent_

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proofs: `MixtureMoments`,
    `CorrectionMoments`.

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
        base: str = "auto",
        standardize: bool = True,
        random_state: int | None = None,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.classes = classes
        self.bounds = bounds
        self.base = base
        self.standardize = standardize
        self.random_state = random_state
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

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
        """Adapt; the forms are those of `ReweightedRegressor.fit`."""
        people = self._read_person(person, X if Xt is None else Xt, owner)
        Xs, X, Xt = self._read_frames(Xs=Xs, X=X, Xt=Xt)
        domains = split(X, y, Xt, yt, Xs, ys, sample_domain, None, owner)
        domains = self._with_persons(domains, private_persons(people, sample_domain, sign=-1))
        names = np.unique(domains.ys).tolist() if self.classes is None else list(self.classes)
        label = Category(name="label", values=tuple(names))
        schema = self._schema(domains, label)
        made = self._plan(
            domains.Xs,
            schema.classes.encode(domains.ys),
            size=domains.size,
            guarantee=self._guarantee(),
            n_classes=len(names),
            base=self.base,
            standardize=self.standardize,
            random_state=self.random_state,
        )
        self.classes_ = np.asarray(names)
        self._adapt(domains, made, schema)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of rows."""
        rows = self._inside(X)
        return self.model_.probabilities(rows)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of rows."""
        likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likely]


def _known_size(owner: Owner) -> Schema:
    if owner.schema.size is None:
        raise InputError("Expected the owner's schema to announce its size, which is public here.")
    return owner.schema


def keep_adapted(
    model: ReweightedClassifier | ReweightedRegressor, found: AdaptedModel, schema: Schema
) -> None:
    """Give an estimator what was learnt: here, or in a study."""
    model.model_, model.guarantee_ = found, found.guarantee
    model.releases_, model.release_ = found.releases, found.releases[-1]
    model.bounds_ = (schema.box.low, schema.box.high)
    linear = found.linear_form() if isinstance(model, ReweightedRegressor) else None
    if linear is not None:
        model.coef_, model.intercept_ = linear[0][:, 0], float(linear[1][0])


__all__ = ["ReweightedClassifier", "ReweightedRegressor", "keep_adapted"]
