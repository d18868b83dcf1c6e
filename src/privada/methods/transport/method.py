"""Transport: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privada.exceptions import InputError
from privada.methods.method import Method, Public, StudyPlace, setting
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import ApproxDP, Guarantee
from privada.privacy.relation import ROW, Relation

if TYPE_CHECKING:
    from privada.methods.transport.learner.learn import TransportModel
    from privada.methods.transport.questions.features import FeatureMap
    from privada.parties.schema import Schema

LABEL_SHARE = 0.5  # of epsilon, for labels beside rows


def read_features(place: StudyPlace, key: str) -> FeatureMap | None:
    """The public map in a study's file of arrays."""
    from privada.methods.transport.questions.features import FeatureMap

    name = place.section.string(key, None)
    if name is None:
        return None
    try:
        with np.load(place.home / name, allow_pickle=False) as arrays:
            return FeatureMap(
                projection=arrays["projection"],
                centre=arrays["centre"],
                radius=float(arrays["radius"]),
                rescale=str(arrays["rescale"]) if "rescale" in arrays else "none",
            )
    except (OSError, ValueError, KeyError) as error:
        place.section.fail(key, f"cannot read a map from {name}: {type(error).__name__}.")


@dataclass(frozen=True, kw_only=True)
class Transport(Method):
    """A classifier for a target domain from a labelled source that may not be seen."""

    name = "transport"
    title = "Classify a target by a labelled source that may not be seen"
    paper = "LeTien, Habrard and Sebban 2019, Differentially private optimal transport (002)"
    situation = Situation(
        want="model",
        private="source",
        because="the owner answers with a noisy model; everything else happens on your rows.",
    )
    question_paths = (
        "privada.methods.linear.questions.descent:TransportDescent",
        "privada.methods.transport.questions.statistics:ClassStatistics",
        "privada.methods.transport.questions.rows:RowRelease",
    )
    retired_paths = ("privada.methods.linear.questions.retired:RetiredTransportDescent",)
    model_parts = (
        "privada.methods.transport.learner.learn:TransportModel",
        "privada.methods.transport.learner.linear_head:LinearHead",
        "privada.methods.transport.learner.adaptation:Adapted",
        "privada.methods.transport.learner.graph:NeighbourGraph",
        "privada.methods.transport.questions.features:FeatureMap",
    )
    private_side = "source"
    asks_several = True
    estimators: ClassVar[Mapping[str, str]] = {
        "class": "privada.methods.transport.estimator:TransportClassifier"
    }

    algorithm: str = setting(
        "auto",
        'What the sources are asked for: "descent", a noisy logistic regression in the columns as the target '
        'standardises them; "statistics", class statistics in few components, which transport and clusters '
        'of the target refine; or "rows", noisy rows with randomised labels and their coupling (DPDA made '
        'sound). "auto" is the first where it can be asked: under replace-one, without a map, rescaling or a '
        "random projection, and without target labels; else class statistics.",
        options=("auto", "descent", "statistics", "rows"),
    )
    rescale: str = setting(
        "none",
        "What is done to each row before statistics or rows are asked for: nothing (columns are standardised "
        "by the target), its norm made 1, or the norm of its signed roots made 1, for histograms and "
        "activations.",
        options=("none", "unit", "root"),
    )
    projection: str = setting(
        "target",
        "Fitted on the target, which the owner then sees something of, or independent of the target.",
        options=("target", "random"),
    )
    n_components: int | None = setting(
        None, "Of the projection; by default 20, or 60 at random; of a descent all columns, or 300."
    )
    norm_bound: float | None = setting(
        None, "Public radius for a random projection of rows that are not rescaled."
    )
    features: FeatureMap | None = setting(
        None,
        "A public map of your own; in a study an .npz file with projection, centre, radius and rescale.",
        kind="FeatureMap",
        read=read_features,
    )
    reg_e: float = setting(0.1, "Entropic regularisation of a coupling of rows.")
    reg_cl: float = setting(0.1, "Group regularisation of a coupling of rows.")

    def prepare(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Inquiry[TransportModel]:
        """Choose a public map, and one question for every source."""
        from privada.methods.transport.learner.default import default_map, standardised_map
        from privada.methods.transport.learner.forecast import forecast
        from privada.methods.transport.learner.learn import learn, learn_descent, learn_rows

        schema, labels = next(iter(parties.values())), public.y
        names = schema.classes.names
        algorithm = self._choose_algorithm(guarantee, labelled=labels is not None)
        features = self.features
        if features is None and algorithm == "descent":
            features = standardised_map(public.X, components=self.n_components)
        elif features is None:
            features = default_map(
                public.X,
                projection=self.projection,
                components=self.n_components,
                rescale=self.rescale,
                norm_bound=self.norm_bound,
                seed=seed,
            )
        questions = {
            name: self._question(algorithm, features, schema, guarantee) for name, schema in parties.items()
        }
        for name, question in questions.items():
            question.fits(parties[name])
        if algorithm == "statistics":
            return learn(questions, public.X, classes=names, labels=labels)
        if algorithm == "rows":
            return learn_rows(
                questions, public.X, classes=names, labels=labels, reg_e=self.reg_e, reg_cl=self.reg_cl
            )
        inquiry = learn_descent(questions, public.X, classes=names, features=features)
        if self.features is not None:
            return inquiry
        size, mu = sum(schema.size or 0 for schema in parties.values()), guarantee.gaussian_mu()
        return replace(inquiry, forecast=forecast(public.X, size=size, n_classes=len(names), mu=mu))

    def _choose_algorithm(self, guarantee: Guarantee, *, labelled: bool) -> str:
        """What "auto" means: it looks at settings and at whether target labels are known, all public."""
        if self.algorithm == "descent" and labelled:
            raise InputError('Expected no target labels beside algorithm="descent", which uses none.')
        if self.algorithm != "auto":
            return self.algorithm
        plain = self.features is None and self.rescale == "none" and self.projection == "target"
        replaces = guarantee.relation is Relation.REPLACE_ONE
        return "descent" if plain and not labelled and replaces else "statistics"

    def _question(self, algorithm: str, features: FeatureMap, schema: Schema, guarantee: Guarantee) -> Any:
        """The question to one source."""
        from privada.methods.transport.learner.linear_head import ask_head
        from privada.methods.transport.questions.rows import RowRelease
        from privada.methods.transport.questions.statistics import ClassStatistics

        n_classes = len(schema.classes)
        if algorithm == "statistics":
            return ClassStatistics(features=features, n_classes=n_classes, guarantee=guarantee)
        if algorithm == "descent":
            if schema.size is None or guarantee.relation is not Relation.REPLACE_ONE:
                raise InputError("Expected replace-one and a declared size: a descent divides by it.")
            return ask_head(features, size=schema.size, n_classes=n_classes, guarantee=guarantee)
        if guarantee.unit != ROW:
            raise InputError(
                'Expected no max_rows beside algorithm="rows": how many rows persons have is private.'
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


__all__ = ["Transport"]
