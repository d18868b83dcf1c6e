"""The scikit-learn face of transport: both sides in one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags, TransformerTags
from sklearn.utils._set_output import _SetOutputMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.estimating import PrivateEstimator, check_owner
from privada.methods.forecast import Forecast
from privada.methods.linear.questions.descent import TransportDescent
from privada.methods.models.model_plot import Flattening, Map, Numbers, PublicRows, show_predictions
from privada.methods.models.onnx_graph import OnnxGraph
from privada.methods.pictures import Points
from privada.methods.transport.domains import Domains, split, target_only
from privada.methods.transport.learner.default import default_map, standardised_map
from privada.methods.transport.learner.forecast import FEWEST_COLUMNS, advise, forecast
from privada.methods.transport.learner.learn import (
    REG_CL,
    REG_E,
    TransportModel,
    learn,
    learn_descent,
    learn_rows,
)
from privada.methods.transport.learner.linear_head import ask_head
from privada.methods.transport.questions.features import FeatureMap
from privada.methods.transport.questions.rows import RowRelease
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.one_process.dataset import Dataset
from privada.parties.one_process.holding import Holding, hold_owner
from privada.parties.protocol import Inquiry
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import ApproxDP, Guarantee, make_guarantee
from privada.privacy.relation import ROW

LABEL_SHARE = 0.5  # of epsilon, for labels beside rows
RELEASES = ("auto", "descent", "statistics", "rows")


class _NamesComponents(ClassNamePrefixFeaturesOutMixin, _SetOutputMixin):  # type: ignore[misc]
    """`set_output` without `fit_transform`: what is moved is in components, what is fitted in features."""


class TransportClassifier(ClassifierMixin, _NamesComponents, PrivateEstimator):  # type: ignore[misc]
    """Classify a target by a labelled source that may not be seen.

    Parameters
    ----------
    epsilon, delta, rho : float
        The guarantee for each source: epsilon with delta, or rho.
    classes : sequence
        Public list of the labels.
    bounds : (low, high)
        Public limits of the features; rows beyond them are clipped.
    relation : str
        "replace-one" (sizes are public) protects a whole row; "add/remove" its presence too.
    release : "auto", "descent", "statistics" or "rows", default="auto"
        A noisy logistic regression of the source in the target's standardised columns; class statistics in
        few components, which transport and the target's clusters refine; or noisy rows with randomised
        labels (DPDA made sound). "auto" is the first where it can be asked: under replace-one, without a
        map, rescaling or a random projection, and without target labels; else class statistics.
    rescale : "none", "unit" or "root", default="none"
        What is done to each row before statistics or rows are asked for: nothing (columns are standardised by
        the target), its norm made 1, or the norm of its signed roots made 1, for histograms and activations.
    projection : "target" or "random", default="target"
        Fitted on the target, which the owner then sees something of, or target-independent.
    n_components : int, optional
        Of the projection; by default 20, or 60 at random; of a descent all columns, or 300.
    norm_bound : float, optional
        Public radius for a random projection of rows that are not rescaled.
    features : FeatureMap, optional
        A public map of your own.
    reg_e, reg_cl : float
        Entropic and group regularisation of a coupling of rows.
    random_state : int
        For the public projection only.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values; its limits
        are the default of ``bounds``.

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
    model_: TransportModel

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        classes: Any = None,
        bounds: Any = None,
        relation: str = "replace-one",
        release: str = "auto",
        rescale: str = "none",
        projection: str = "target",
        n_components: int | None = None,
        norm_bound: float | None = None,
        features: FeatureMap | None = None,
        reg_e: float = REG_E,
        reg_cl: float = REG_CL,
        random_state: int = 0,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.classes = classes
        self.bounds = bounds
        self.relation = relation
        self.release = release
        self.rescale = rescale
        self.projection = projection
        self.n_components = n_components
        self.norm_bound = norm_bound
        self.features = features
        self.reg_e = reg_e
        self.reg_cl = reg_cl
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
        check_owner(owner, X=X, y=y, sample_domain=sample_domain)
        people = self._read_person(person, X, owner)
        Xt, X = self._read_frames(Xt=Xt, X=X)
        if self.classes is None or self._bounds() is None:
            raise InputError("Expected classes and bounds, both public; none are taken from the rows.")
        classes = tuple(self.classes)
        given = _by_name(owner)
        domains = (
            target_only(Xt, yt, classes)
            if given
            else split(X, y, Xt, yt, sample_domain, classes=classes, person=people)
        )
        kind = self._kind(labelled=domains.labels is not None)
        features = self._features(domains.target, kind)
        schemas = {name: each.schema for name, each in given.items()} or self._schemas(domains)
        questions = {name: self._question(kind, features, schema) for name, schema in schemas.items()}
        held = {name: hold_owner(each, questions[name].guarantee) for name, each in given.items()}
        if not given:
            held = self._hold_sources(domains, schemas, questions)
        self.forecast_ = self._forecast(kind, domains.target, list(schemas.values()))
        return self._keep(self._learner(kind, domains, features, questions), domains, questions, held)

    def _schemas(self, domains: Domains) -> dict[str, Schema]:
        """What is public of each source."""
        width = domains.target.shape[1]
        return {
            f"source {place}": self._schema(self._public_size(rows, people), width)
            for place, ((rows, _), people) in enumerate(
                zip(domains.sources, domains.persons, strict=True), start=1
            )
        }

    def _hold_sources(
        self, domains: Domains, schemas: dict[str, Schema], questions: dict[str, Any]
    ) -> dict[str, Holding]:
        datasets = self._dataset().names(len(schemas))
        held = {}
        for turn, (name, (rows, labels)) in enumerate(zip(schemas, domains.sources, strict=True)):
            held[name] = self._hold(
                rows,
                [questions[name]],
                y=labels,
                person=domains.persons[turn],
                schema=schemas[name],
                budget=questions[name].guarantee,
                name=name,
                dataset=datasets[turn],
                turn=turn,
            )
        return held

    def _kind(self, *, labelled: bool) -> str:
        """What is asked for; "auto" looks at settings and at whether target labels are known, all public."""
        if _check.one_of(RELEASES, release=self.release) == "descent" and labelled:
            raise InputError('Expected no target labels beside release="descent", which has no use for them.')
        if self.release != "auto":
            return self.release
        plain = self.features is None and self.rescale == "none" and self.projection == "target"
        return "descent" if plain and not labelled and self.relation == "replace-one" else "statistics"

    def _forecast(self, kind: str, target: FloatArray, schemas: list[Schema]) -> Forecast | None:
        """Of all sources together, for what it was calibrated on: descents in a table's own columns."""
        sizes = [schema.size for schema in schemas if schema.size is not None]
        if kind != "descent" or self.features is not None or not sizes:
            return None
        found = forecast(
            target, size=sum(sizes), n_classes=len(self.classes), mu=self._guarantee().gaussian_mu()
        )
        if target.shape[1] >= FEWEST_COLUMNS:  # of fewer it knows too little to advise
            advise(found)
        return found

    def _learner(
        self, kind: str, domains: Domains, features: FeatureMap, questions: dict[str, Any]
    ) -> Inquiry[TransportModel]:
        names = tuple(self.classes)
        if kind == "descent":
            return learn_descent(questions, domains.target, classes=names, features=features)
        if kind == "statistics":
            return learn(questions, domains.target, classes=names, labels=domains.labels)
        return learn_rows(
            questions,
            domains.target,
            classes=names,
            labels=domains.labels,
            reg_e=self.reg_e,
            reg_cl=self.reg_cl,
        )

    def _keep(
        self,
        learner: Inquiry[TransportModel],
        domains: Domains,
        questions: dict[str, Any],
        held: dict[str, Holding],
    ) -> Self:
        keep_model(self, self._ask(learner, held), classes=tuple(self.classes))
        self.question_ = next(iter(questions.values()))
        self.n_features_in_ = domains.target.shape[1]
        return self

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        from privada.methods.transport.onnx import add_classifier

        return add_classifier(self, graph)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of rows of the target's domain."""
        check_is_fitted(self)
        return self.model_.predict_proba(self._matrix(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
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

    def _schema(self, size: int, width: int) -> Schema:
        """The public schema; the caller of `fit` declares the size by the rows it passes."""
        label = Category(name="label", values=tuple(self.classes))
        announced = size if self.relation != "add/remove" else None
        return Schema.of_numbers(bounds=self._bounds(), width=width, size=announced, label=label)

    def _features(self, target: FloatArray, kind: str) -> FeatureMap:
        if self.features is not None:
            return self.features
        if kind == "descent":
            return standardised_map(target, components=self.n_components)
        return default_map(
            target,
            projection=self.projection,
            components=self.n_components,
            rescale=self.rescale,
            norm_bound=self.norm_bound,
            seed=self.random_state,
        )

    def _guarantee(self) -> Guarantee:
        return make_guarantee(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation, unit=self._unit()
        )

    def _question(
        self, kind: str, features: FeatureMap, schema: Schema
    ) -> TransportDescent | ClassStatistics | RowRelease:
        n_classes, guarantee = len(schema.classes), self._guarantee()
        if kind == "statistics":
            return ClassStatistics(features=features, n_classes=n_classes, guarantee=guarantee)
        if kind == "descent":
            if schema.size is None:
                raise InputError("Expected replace-one: a descent divides by the public number of rows.")
            return ask_head(features, size=schema.size, n_classes=n_classes, guarantee=guarantee)
        if guarantee.unit != ROW:
            raise InputError(
                'Expected no max_rows beside release="rows": how many rows persons have is private.'
            )
        if not isinstance(guarantee, ApproxDP) or schema.size is None:
            raise InputError(
                "Expected epsilon and delta under replace-one: rows carry labels at a pure share of it."
            )
        return RowRelease(
            features=features,
            size=schema.size,
            n_classes=n_classes,
            label_epsilon=LABEL_SHARE * guarantee.epsilon,
            guarantee=guarantee,
        )


def _by_name(owner: Any) -> dict[str, Any]:
    """Owners by name: none, one, or several."""
    if owner is None:
        return {}
    return dict(owner) if isinstance(owner, Mapping) else {"source 1": owner}


def keep_model(model: TransportClassifier, found: TransportModel, *, classes: tuple[Any, ...]) -> None:
    """Give a classifier what was learnt: here, or in a study."""
    model.model_, model.classes_ = found, np.asarray(classes)
    model.transduction_ = model.classes_[found.probabilities.argmax(axis=1)]
    model.coupling_, model.mapped_ = found.coupling, found.mapped
    model.releases_, model.release_ = found.releases, found.release
    model.guarantee_ = found.release.guarantee


__all__ = ["TransportClassifier", "keep_model"]
