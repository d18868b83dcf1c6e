"""Reweighting: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privada import _check
from privada._progress import showing
from privada.exceptions import InputError
from privada.methods.method import Method, Public, StudyPlace, setting
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from privada.methods.reweighting.learner.adaptation import AdaptedPredictor
    from privada.methods.reweighting.learner.ladder import AdaptedModel
    from privada.parties.schema import Schema

# Options of the paper's algorithms. All but the last are the lab's, and do not depend on the data: steps of
# line 4 are made for the worst case, so they are lengthened. For classes 2 is about the step 1/β of
# Algorithm 2 with rows of norm 1 and little noise; the lab computes it for each question.
OPTIONS = {
    "pcnvxadap": {"radius": 5.0, "kappa1": 1.0, "kappa2": 0.0, "step_scale": 10.0},
    "pncnvxadap": {"radius": 20.0, "kappa1": 1.0, "kappa2": 0.0, "step_scale": 2.0},
}


def read_options(place: StudyPlace, key: str) -> dict[str, float] | None:
    """The table of rarely used settings in a study."""
    if key not in place.section:
        return None
    table = place.section.section(key)
    options = {name: table.number(name) for name in OPTIONS["pcnvxadap"] if name in table}
    table.done()
    return options


@dataclass(frozen=True, kw_only=True)
class Reweighting(Method):
    """Train on a public labelled source and a private labelled target (paper 003)."""

    name = "reweighting"
    title = "Train for a private target with the help of a public source"
    paper = "003, Supervised adaptation from a public source to a private target (PCnvxAdap, PNCnvxAdap)"
    situation = Situation(
        want="model",
        private="target",
        yours="labelled",
        because="your rows make a public model; a few noisy numbers correct it for the private rows.",
    )
    question_paths = (
        "privada.methods.linear.questions.descent:ReweightingDescent",
        "privada.methods.reweighting.questions.discrepancy:Discrepancy",
        "privada.methods.reweighting.questions.discrepancy:FiniteDiscrepancy",
        "privada.methods.reweighting.questions.adaptation:ConvexAdaptation",
        "privada.methods.reweighting.questions.adaptation:NonconvexAdaptation",
        "privada.methods.reweighting.questions.moments:MixtureMoments",
        "privada.methods.reweighting.questions.moments:CorrectionMoments",
        "privada.methods.reweighting.questions.module:ModuleAdaptation",
    )
    retired_paths = (
        "privada.methods.linear.questions.retired:RetiredReweightingDescent",
        "privada.methods.linear.questions.retired:RetiredSelection",
    )
    private_side = "target"
    learns_public_labels = True
    model_parts = (
        "privada.methods.reweighting.learner.ladder:AdaptedModel",
        "privada.methods.reweighting.learner.adaptation:AdaptedPredictor",
    )
    estimators: ClassVar[Mapping[str, str]] = {
        "class": "privada.methods.reweighting.estimator:ReweightedClassifier",
        "number": "privada.methods.reweighting.estimator:ReweightedRegressor",
    }

    algorithm: str = setting(
        "ladder",
        'How the target is learned: "ladder", public models that noisy releases mix and correct; or the '
        'paper\'s own algorithms in their sound form, "pcnvxadap" for numbers from -1 to 1 and "pncnvxadap" '
        "for classes: a noisy discrepancy, then a noisy descent on weighted rows of both sides, to a linear "
        "model without intercept.",
        options=("ladder", "pcnvxadap", "pncnvxadap"),
    )
    base: str = setting(
        "auto",
        "Public models that take part in the ladder: a linear one, boosted trees, a forest (for numbers) and "
        "a kernel machine; or the linear one alone, for a model with ``coef_`` and ``intercept_``.",
        options=("auto", "linear"),
    )
    standardize: bool = setting(
        True,
        "Scale each feature by the source; False keeps their ratios (text, features of one scale). The "
        "paper's algorithms take features as they are.",
    )
    alpha: float = setting(0.1, "Weight of the public rows in the paper's algorithms, above 0 and below 1.")
    steps: int = setting(100, "Steps of the paper's algorithms.")
    norm_bound: float | None = setting(
        None,
        "Public bound on the norm of a row, to which the paper's algorithms clip; by default the largest of "
        "a public row.",
    )
    options: Mapping[str, float] | None = setting(
        None,
        "Rarely used settings of the paper's algorithms: ``radius`` of the predictors, penalties ``kappa1`` "
        "and ``kappa2`` of the weights, ``step_scale``.",
        kind="mapping",
        read=read_options,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [name for name in self.options or {} if name not in OPTIONS["pcnvxadap"]]
        if unknown:
            raise InputError(
                f"Expected options out of {', '.join(OPTIONS['pcnvxadap'])}, got {unknown[0]!r}."
            )

    def prepare(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Inquiry[Any]:
        """Prepare the steps of the ladder, or the two questions of a paper's algorithm."""
        ((owner, schema),) = parties.items()
        if schema.label is None or schema.size is None:
            raise InputError("Expected the owner's schema to have a label and a declared size.")
        assert public.y is not None
        if self.algorithm == "ladder":
            return self._prepare_ladder(public, owner, schema, guarantee, seed)
        return self._prepare_descent(public, owner, schema, guarantee)

    def _prepare_ladder(
        self, public: Public, owner: str, schema: Schema, guarantee: Guarantee, seed: int
    ) -> Inquiry[AdaptedModel]:
        from privada.methods.reweighting.learner.ladder import plan

        with showing("reweighting: models of the public source"):
            ladder = plan(
                public.X,
                public.y,
                size=schema.size or 0,
                guarantee=guarantee,
                n_classes=0 if schema.label_bounds else len(schema.classes),
                label_bounds=schema.label_bounds,
                base=self.base,
                standardize=self.standardize,
                random_state=seed,
                salt="0",  # as in studies of 0.2: the answers that they paid for are still theirs
            )
        return ladder.inquiry(owner)

    def _prepare_descent(
        self, public: Public, owner: str, schema: Schema, guarantee: Guarantee
    ) -> Inquiry[AdaptedPredictor]:
        from privada.methods.reweighting.learner.adaptation import learn_convex, learn_nonconvex
        from privada.methods.reweighting.questions.adaptation import ConvexAdaptation, NonconvexAdaptation
        from privada.methods.reweighting.questions.problem import Penalties

        rows, labels = _check.matrix(Xs=public.X), np.asarray(public.y, dtype=np.float64)
        if (self.algorithm == "pcnvxadap") != (schema.label_bounds is not None):
            raise InputError(
                'Expected algorithm="pcnvxadap" for a label that is a number, and "pncnvxadap" for classes.'
            )
        if schema.label_bounds and max(*map(abs, schema.label_bounds), *np.abs(labels)) > 1:
            raise InputError(
                'Expected labels and label_bounds from -1 to 1, to which algorithm="pcnvxadap" clips; divide '
                "the labels of both sides by a public bound."
            )
        # Everything that follows is public: the owner is told the rows of the source themselves.
        options = OPTIONS[self.algorithm] | dict(self.options or {})
        largest = float(np.linalg.norm(rows, axis=1).max())
        norm_bound = _check.positive(norm_bound=largest if self.norm_bound is None else self.norm_bound)
        settings: dict[str, Any] = {
            "size": schema.size,
            "source": rows,
            "source_labels": labels,
            "penalties": Penalties(alpha=self.alpha, kappa1=options["kappa1"], kappa2=options["kappa2"]),
            "A": _check.positive(radius=options["radius"]),
            "r": norm_bound,
            "steps": self.steps,
            "step_scale": options["step_scale"],
            "guarantee": guarantee,
        }
        if self.algorithm == "pcnvxadap":
            return learn_convex(owner, ConvexAdaptation(**settings))
        return learn_nonconvex(owner, NonconvexAdaptation(n_classes=len(schema.classes), **settings))


__all__ = ["Reweighting"]
