"""Reweighting: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from privada._progress import showing
from privada.exceptions import InputError
from privada.methods.method import Method, Public, setting
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from privada.methods.reweighting.learner.ladder import AdaptedModel
    from privada.parties.schema import Schema


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
        "privada.methods.reweighting.questions.selection:Selection",
        "privada.methods.reweighting.questions.module:ModuleAdaptation",
    )
    retired_paths = ("privada.methods.linear.questions.retired:RetiredReweightingDescent",)
    private_side = "target"
    learns_public_labels = True
    model_parts = ("privada.methods.reweighting.learner.ladder:AdaptedModel",)
    estimators: ClassVar[Mapping[str, str]] = {
        "class": "privada.methods.reweighting.estimator:ReweightedClassifier",
        "number": "privada.methods.reweighting.estimator:ReweightedRegressor",
    }

    base: str = setting(
        "auto",
        "Public models that take part: a linear one, boosted trees, a forest (for numbers) and a kernel "
        "machine; or the linear one alone, for a model with ``coef_`` and ``intercept_``.",
        options=("auto", "linear"),
    )
    standardize: bool = setting(
        True, "Scale each feature by the source; False keeps their ratios (text, features of one scale)."
    )

    def prepare(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Inquiry[AdaptedModel]:
        """Fit the public models, and prepare the steps of the ladder."""
        from privada.methods.reweighting.learner.ladder import plan

        ((owner, schema),) = parties.items()
        if schema.label is None or schema.size is None:
            raise InputError("Expected the owner's schema to have a label and a declared size.")
        assert public.y is not None
        number = schema.label if schema.label_bounds else None
        with showing("reweighting: models of the public source"):
            ladder = plan(
                public.X,
                public.y,
                size=schema.size,
                guarantee=guarantee,
                n_classes=0 if number else len(schema.classes),
                label_bounds=(number.low, number.high) if number else None,
                base=self.base,
                standardize=self.standardize,
                random_state=seed,
                salt="0",  # as in studies of 0.2: the answers that they paid for are still theirs
            )
        return ladder.inquiry(owner)


__all__ = ["Reweighting"]
