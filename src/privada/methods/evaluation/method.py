"""Evaluation: the method and its settings."""

from __future__ import annotations

from dataclasses import dataclass

from privada.methods.method import Method
from privada.methods.situation import Situation


@dataclass(frozen=True, kw_only=True)
class Evaluation(Method):
    """How well a model does on rows that never leave their owner."""

    name = "evaluation"
    title = "Tell how well a model does on rows that stay at their owner"
    paper = "Dwork, McSherry, Nissim and Smith 2006 (histograms); Clopper and Pearson 1934 (intervals)"
    situation = Situation(want="score", because="one noisy table says how well your model does there.")
    question_paths = (
        "privada.methods.evaluation.questions:OutcomeCounts",
        "privada.methods.evaluation.questions:ErrorMoments",
    )
    study_path = "privada.methods.evaluation.study:inquire"


__all__ = ["Evaluation"]
