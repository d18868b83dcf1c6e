"""Transport: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from privada.methods.method import Method
from privada.methods.situation import Situation


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
    study_path = "privada.methods.transport.study:inquire"
    model_path = "privada.methods.transport.study:model_maker"
    model_parts = (
        "privada.methods.transport.learner.learn:TransportModel",
        "privada.methods.transport.learner.linear_head:LinearHead",
        "privada.methods.transport.learner.adaptation:Adapted",
        "privada.methods.transport.learner.graph:NeighbourGraph",
        "privada.methods.transport.questions.features:FeatureMap",
    )
    estimators: ClassVar[Mapping[str, str]] = {
        "class": "privada.methods.transport.estimator:TransportClassifier"
    }


__all__ = ["Transport"]
