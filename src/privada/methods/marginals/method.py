"""Marginals: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from privada.methods.method import Method
from privada.methods.situation import Situation


@dataclass(frozen=True, kw_only=True)
class Marginals(Method):
    """Learn from a target that never leaves its owner, through noisy sums and tables."""

    name = "marginals"
    title = "Learn from a labelled target that stays at its owner, through noisy sums and tables"
    paper = "Lacombe, Jetley and Sebag 2021, EXtremely PRivate supervised Learning"
    situation = Situation(
        want="model",
        private="target",
        yours="unlabelled",
        because="the owner answers with noisy sums of labels over your own rows, which need no labels.",
    )
    question_paths = (
        "privada.methods.marginals.questions:OutcomeTables",
        "privada.methods.marginals.questions:HypothesisChoice",
        "privada.methods.linear.questions.descent:MarginalsDescent",
        "privada.methods.marginals.questions:LabelHistogram",
        "privada.methods.marginals.questions:SquaredErrors",
    )
    retired_paths = ("privada.methods.linear.questions.retired:RetiredMarginalsDescent",)
    study_path = "privada.methods.marginals.study:inquire"
    model_path = "privada.methods.marginals.study:model_maker"
    model_parts = (
        "privada.methods.linear.questions.features:PublicFeatures",
        "privada.methods.marginals.learner.descent:DescentModel",
        "privada.methods.marginals.learner.fitted:MarginalFit",
        "privada.methods.marginals.learner.fitted:SyntheticTarget",
        "privada.methods.marginals.learner.fitted:RegressionFit",
        "privada.methods.marginals.learner.fitted:SyntheticNumbers",
    )
    estimators: ClassVar[Mapping[str, str]] = {
        "class": "privada.methods.marginals.estimator:MarginalClassifier",
        "number": "privada.methods.marginals.estimator_regression:MarginalRegressor",
    }


__all__ = ["Marginals"]
