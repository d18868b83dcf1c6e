"""Clustering: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from privada.methods.method import Method
from privada.methods.situation import Situation


@dataclass(frozen=True, kw_only=True)
class Clustering(Method):
    """Choose k public target points beside a private source (paper 000)."""

    name = "clustering"
    title = "Choose target points beside a private source"
    paper = "000, Differentially Private Source-Target Clustering"
    situation = Situation(
        want="points",
        because="it chooses public points where private ones do not help already, from one noisy release.",
    )
    question_paths = (
        "privada.methods.clustering.questions.means:NearestMeans",
        "privada.methods.clustering.questions.multiscale:LocalMeans",
        "privada.methods.clustering.questions.means:NeighbourAverages",
        "privada.methods.clustering.questions.means:SourceRadius",
        "privada.methods.clustering.questions.multiscale:GridPyramid",
    )
    study_path = "privada.methods.clustering.study:inquire"
    model_path = "privada.methods.clustering.study:model_maker"
    model_parts = ("privada.methods.clustering.learner.bounds:LowerBound",)
    estimators: ClassVar[Mapping[str, str]] = {
        "any": "privada.methods.clustering.estimator:SourceTargetMedoids"
    }


__all__ = ["Clustering"]
