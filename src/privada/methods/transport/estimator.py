"""Transport with scikit-learn's API: both sides in one process."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags, TransformerTags
from sklearn.utils._set_output import _SetOutputMixin
from sklearn.utils.validation import check_is_fitted

from privada._arrays import AnyArray, FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.method import Public
from privada.methods.method_estimator import MethodEstimator
from privada.methods.models.model_plot import Flattening, Map, Numbers, PublicRows, show_predictions
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.pictures import Points
from privada.methods.transport.learner.forecast import FEWEST_COLUMNS
from privada.methods.transport.learner.learn import TransportModel
from privada.methods.transport.method import Transport
from privada.parties.schema import Category, Schema, is_missing
from privada.privacy.bounds import Classes


class _NamesComponents(ClassNamePrefixFeaturesOutMixin, _SetOutputMixin):  # type: ignore[misc]
    """`set_output` without `fit_transform`: what is moved is in components, what is fitted in features."""


class TransportClassifier(ClassifierMixin, _NamesComponents, MethodEstimator):  # type: ignore[misc]
    """Classify a target by a labelled source that may not be seen.

    Attributes
    ----------
    transduction_ : array
        Labels of the target points.
    coupling_ : array of shape (sources, targets)
    mapped_ : array
        Barycentric images of prototypes or rows in the target's domain.
    forecast_ : Forecast or None
        Expected error over that of always predicting the source's most frequent class, with an 80 % band; of
        public facts, before anything is spent. None unless a descent is asked for in the table's own columns.
    release_, releases_, guarantee_, spent_, question_
        What left the owners, what was promised, what all uses of the sources cost together (that of the one
        that lost most), and what was asked.

    Privacy
    -------
    Unit: one source row. The target stays with the learner, but for the map that is asked with. Proofs: the
    questions' docstrings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat(["left", "right"], 200); yt = np.repeat(["left", "right"], 50)
    >>> Xs = rng.normal(0, 0.1, (400, 2)) + np.where(ys == "left", -0.5, 0.5)[:, None]
    >>> Xt = rng.normal(0, 0.1, (100, 2)) + np.where(yt == "left", -0.3, 0.6)[:, None]
    >>> model = TransportClassifier(epsilon=1, delta=1e-4, classes=("left", "right"), bounds=(-1, 1))
    >>> float((model.fit(Xs, ys, Xt).predict(Xt) == yt).mean())
    1.0
    >>> print(model.guarantee_)
    (ε = 1, δ = 0.0001), replace-one row
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    method_type = Transport
    shared = (
        *("epsilon", "delta", "rho", "classes", "bounds", "relation"),
        *("random_state", "insecure_seed", "dataset", "schema"),
    )
    defaults: ClassVar[dict[str, Any]] = {"relation": "replace-one", "random_state": 0}
    positional = ("epsilon", "delta")
    party = "source 1"
    model_: TransportModel

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        Xt: Any = None,
        yt: Any = None,
        *,
        sample_domain: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Adapt to the target.

        Give the private source as ``X``, ``y`` and the target as ``Xt`` and, where some labels are known,
        ``yt`` (POT's form); or everything in ``X``, ``y`` with ``sample_domain``, positive for sources, one
        number each, and negative for the target (skada's form). Unknown target labels are -1, None or NaN.
        An `Owner`, or several by name, may be given as ``owner`` in the place of ``X, y``. ``person`` has the
        person of each row of ``X``, or names a column of that frame, beside a `Dataset` with ``max_rows``.
        """
        return self._fit(X, y, Xt=Xt, yt=yt, sample_domain=sample_domain, person=person, owner=owner)

    def _names(self, parties: int) -> list[str]:
        return [f"source {place}" for place in range(1, parties + 1)]

    def _label(self, public: Public) -> Category:  # noqa: ARG002 - the target's labels are not all known
        classes = self._class_names()
        if classes is None:
            raise InputError("Expected classes, the public list of labels; none are taken from y.")
        return Category(name="label", values=tuple(classes))

    def _encode_public(self, public: Public, schema: Schema) -> Public:
        return Public(public.X, _encode_known(public.y, schema.classes.names))

    def _can_advise(self, public: Public) -> bool:
        return bool(public.X.shape[1] >= FEWEST_COLUMNS)  # of fewer it knows too little

    def _keep(self, model: TransportModel, schema: Schema) -> None:
        self.model_, self.classes_ = model, np.asarray(schema.classes.names)
        self.transduction_ = self.classes_[model.probabilities.argmax(axis=1)]
        self.coupling_, self.mapped_ = model.coupling, model.mapped
        self.releases_, self.release_ = model.releases, model.release
        self.guarantee_ = model.release.guarantee

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        from privada.methods.transport.onnx import add_classifier

        return add_classifier(self, graph)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of rows of the target's domain."""
        check_is_fitted(self)
        return self.model_.predict_proba(self._matrix(X))

    def predict(self, X: Any) -> AnyArray:
        """Most likely class of each row."""
        likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likely]

    def __sklearn_tags__(self) -> Tags:
        """It also moves further sources."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags

    def transform(self, X: Any) -> FloatArray:
        """Move further sources, in components, with their nearest coupled one; a frame after `set_output`."""
        check_is_fitted(self)
        return self.model_.transform(X)

    @property
    def _n_features_out(self) -> int:
        """Columns of `transform`, which `get_feature_names_out` names."""
        return self.model_.features.components

    def _panels(self, rows: PublicRows | None) -> list[Map | Numbers]:
        """Where each class is in the target, and how what was released of the sources moved."""
        plane = self._flattening(self.mapped_ if rows is None else rows.at)
        layers = [Points(name="what was moved there", at=plane.apply(self.mapped_), role="result")]
        if len(self.mapped_) == len(self.classes_):
            names = [str(name) for name in self.classes_]
            layers = [Points(name="classes", at=plane.apply(self.mapped_), names=names)]
        groups = [] if rows is None else show_predictions(rows, plane, self.classes_)
        target = Map(title="target, as it is classified", layers=layers, groups=groups, axes=plane.names)
        return [target, *self._moves()]

    def _moves(self) -> list[Map]:
        """Before and after transport, in components; a descent moves nothing."""
        before, after = self.model_.sources, self.model_.features.spread(self.mapped_)
        if np.allclose(before, after):
            return []
        plane = Flattening(after)
        layers = [
            Points(name="before: as released", at=plane.apply(before), role="limit"),
            Points(name="after transport", at=plane.apply(after), role="result"),
        ]
        return [Map(title="sources before and after, in components", layers=layers, axes=plane.names)]


def _encode_known(labels: AnyArray | None, classes: tuple[Any, ...]) -> IntArray | None:
    """Codes of known labels; -1 where masked by -1 (unless that is a class), None or NaN."""
    if labels is None:
        return None
    masked = is_missing(labels)
    if -1 not in classes:
        masked = masked | np.array([value == -1 for value in labels.tolist()])
    codes = np.full(len(labels), -1, dtype=np.int64)
    visible = labels[~masked]
    if visible.dtype.kind == "f" and all(isinstance(name, (int, np.integer)) for name in classes):
        visible = visible.astype(np.int64)
    codes[~masked] = Classes(classes).encode(visible)
    return codes if (codes >= 0).any() else None


__all__ = ["TransportClassifier"]
