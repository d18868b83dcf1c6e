"""Learning from hidden targets with scikit-learn's API: both sides in one process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from privada._arrays import AnyArray, FloatArray
from privada.exceptions import InputError
from privada.methods.frames import refuse_sparse
from privada.methods.marginals.learner.fitted import MarginalFit, RegressionFit
from privada.methods.marginals.method import Marginals
from privada.methods.method import Public
from privada.methods.method_estimator import MethodEstimator
from privada.methods.models.model_plot import Map, Numbers, PublicRows, group_points, name_thirds
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.pictures import Points
from privada.methods.sides import PrivateRows
from privada.parties.schema import Category, Number, Schema


class _HiddenTarget(MethodEstimator):
    """What both estimators share: a public source that the releases label."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    predicts_target_labels = True  # skada leaves the labels of the target to those who learn from them
    needed: ClassVar[tuple[str, ...]]  # public settings, which nobody takes from private rows
    fit_: MarginalFit | RegressionFit

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        source: Any = None,
        sample_domain: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Learn from private target rows ``X, y`` and public, unlabelled ``source`` rows.

        Or give both in ``X, y`` with ``sample_domain``, positive for source, whose labels are ignored, and
        negative for target (skada's form); or the target's `Owner` as ``owner`` in the place of ``X, y``.
        ``person`` has the person of each row of ``X``, or names a column of that frame,
        beside a `Dataset` with ``max_rows``.
        """
        refuse_sparse(X, name="X")
        from_schema = {
            "bounds": self._bounds(),
            "classes": self._class_names(),
            "label_bounds": self._label_limits(),
        }
        for name in self.needed:
            if from_schema.get(name, getattr(self, name)) is None:
                raise InputError(f"Expected {name}, which is public; none is taken from private rows.")
        if sample_domain is not None and source is not None:
            raise InputError("Expected the source in X with sample_domain, or as source; not both.")
        if sample_domain is None and source is None:
            raise InputError("Expected source, the public unlabelled rows.")
        return self._fit(X, y, Xs=source, sample_domain=sample_domain, person=person, owner=owner)

    def _announced_size(self, rows: PrivateRows) -> int | None:  # noqa: ARG002 - no number is taken from rows
        return self.size

    def _limits(self, public: Public) -> Any:
        """The given limits, if they are limits of the source's columns."""
        width = public.X.shape[1]
        try:
            low, high = (np.asarray(side, dtype=np.float64) for side in self._bounds())
            np.broadcast_to(low, (width,)), np.broadcast_to(high, (width,))
        except (TypeError, ValueError):
            raise InputError(
                f"Expected bounds to be (low, high), each a number or one for each of {width} features, "
                f"got {self.bounds!r}."
            ) from None
        return self._bounds()

    def _keep(self, model: Any, schema: Schema) -> None:  # noqa: ARG002 - a classifier keeps its classes
        self.fit_, self.model_, self.synthetic_target_ = model, model.model, model.synthetic
        self.releases_, self.release_ = model.releases, model.releases[-1]
        self.guarantee_ = self._guarantee()

    def _name_groups(self) -> tuple[AnyArray, list[Any]]:
        """What the rows of the source are labelled with, in words, and all such words."""
        raise NotImplementedError

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """The public source as it was labelled."""
        target = self.synthetic_target_
        plane, (labels, names) = self._flattening(target.X), self._name_groups()
        layers = [] if rows is None else [Points(name="rows (public)", at=plane.apply(rows.at), role="limit")]
        groups = group_points(plane.apply(target.X), labels, names)
        title = "public source, as the releases label it"
        return [Map(title=title, layers=layers, groups=groups, axes=plane.names)]

    def _clipped(self, X: Any) -> FloatArray:
        rows = self._matrix(X)
        return np.asarray(np.clip(rows, *self._bounds()))


class MarginalClassifier(ClassifierMixin, _HiddenTarget):  # type: ignore[misc]
    """Classify for a private labelled target with an unlabelled public source.

    Features may be of any units: they are standardised by the source.

    Attributes
    ----------
    synthetic_target_ : SyntheticTarget
        The source, weighted and labelled to stand for the target, with its guarantee.
    forecast_ : Forecast
        Expected error over that of the noisy majority class, with a band, as it was known before anything was
        spent; a `PrivadaWarning` says so where no gain is expected.
    releases_, release_, guarantee_
        What left the owner, the last of it, and what all of it cost; at most, if it stopped early.
    spent_
        What everything that these rows were used for cost together.
    classes_, model_

    Privacy
    -------
    Unit: one row of the target. It adds a vector of bounded norm to each sum of a descent, or touches one
    entry of each table; proofs are in ``docs/methods/marginals.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.uniform(size=(400, 2)), rng.uniform(size=(400, 2))
    >>> labels = (target[:, 0] > 0.5).astype(int)
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = MarginalClassifier(classes=(0, 1), bounds=(0, 1), epsilon=1, size=400,
    ...                           classifier=LogisticRegression())
    >>> learner.fit(target, labels, source=source).predict([[0.1, 0.5], [0.9, 0.5]]).tolist()
    [0, 1]
    >>> print(learner.guarantee_)
    ε = 1 (pure), add/remove one row
    """

    method_type = Marginals
    hidden = ("cells", "regressor")
    shared = (
        *("epsilon", "delta", "rho", "classes", "bounds", "relation"),
        *("random_state", "insecure_seed", "dataset", "schema"),
    )
    defaults: ClassVar[dict[str, Any]] = {"random_state": 0}
    needed = ("classes", "bounds", "size")
    fit_: MarginalFit

    def _label(self, public: Public) -> Category:  # noqa: ARG002 - the source has no labels
        classes = self._class_names()
        if isinstance(classes, str) or not isinstance(classes, Iterable):
            raise InputError(f"Expected classes to be a list of labels, got {classes!r}.")
        return Category(name="label", values=tuple(classes))

    def _keep(self, model: Any, schema: Schema) -> None:
        super()._keep(model, schema)
        self.classes_ = np.asarray(schema.classes.names)

    def _name_groups(self) -> tuple[AnyArray, list[Any]]:
        return self.classes_[self.synthetic_target_.codes], list(self.classes_)

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        from privada.methods.marginals.onnx import add_classifier

        return add_classifier(self, graph)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of each row."""
        rows = self._clipped(X)
        return self.fit_.probabilities(rows)

    def predict(self, X: Any) -> AnyArray:
        """Class of each row."""
        rows = self._clipped(X)
        return self.classes_[self.fit_.codes(rows)]


class MarginalRegressor(RegressorMixin, _HiddenTarget):  # type: ignore[misc]
    """Predict a number for a private labelled target with an unlabelled public source.

    With delta, or rho, a fifth of the guarantee asks where labels lie, and the rest for a linear model by a
    noisy descent. A pure one is split evenly over squared errors of two constants over cells of the source.

    Attributes
    ----------
    synthetic_target_ : SyntheticNumbers
        The source, weighted and labelled to stand for the target, with its guarantees.
    forecast_ : Forecast
        Expected squared error over that of the noisy mean, with a band, as it was known before anything was
        spent; a `PrivadaWarning` says so where no gain is expected.
    releases_, release_, guarantee_, spent_
        What left the owner, the last of it, what all of it cost, and what all uses of these rows cost.
    model_

    Privacy
    -------
    Unit: one row of the target. It touches one count and adds a vector of bounded norm to each sum of a
    descent, or touches one count and one clipped squared error of each of two rounds; proofs are in
    ``docs/methods/marginals.md``.

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

    method_type = Marginals
    hidden = ("algorithm", "classifier")
    shared = (
        *("epsilon", "delta", "rho", "bounds", "label_bounds", "relation"),
        *("random_state", "insecure_seed", "dataset", "schema"),
    )
    defaults: ClassVar[dict[str, Any]] = {"random_state": 0}
    needed = ("bounds", "label_bounds", "size")
    fit_: RegressionFit

    def _label(self, public: Public) -> Number:  # noqa: ARG002 - the source has no labels
        bounds = self._label_limits()
        if np.shape(bounds) != (2,):
            raise InputError(f"Expected label_bounds to be (low, high), got {bounds!r}.")
        low, high = bounds
        return Number(name="label", low=float(low), high=float(high))

    def _name_groups(self) -> tuple[AnyArray, list[Any]]:
        """Thirds of the labels."""
        return name_thirds(self.synthetic_target_.labels)

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        from privada.methods.marginals.onnx import add_regressor

        return add_regressor(self, graph)

    def predict(self, X: Any) -> FloatArray:
        """Number for each row."""
        rows = self._clipped(X)
        return np.clip(self.fit_.predict(rows), *self._label_limits())


__all__ = ["MarginalClassifier", "MarginalRegressor"]
