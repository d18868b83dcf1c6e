"""Summarization: the method and its settings."""

from __future__ import annotations

from dataclasses import dataclass

from privada.methods.method import Method
from privada.methods.situation import Situation


@dataclass(frozen=True, kw_only=True)
class Summarization(Method):
    """P training points from K private owners that match a private validation set (paper 004)."""

    name = "summarization"
    title = "A training summary from many owners that matches a private validation set"
    paper = "004, Differentially Private Distributed Data Summarization under Covariate Shift"
    situation = Situation(
        want="rows",
        because="noisy sums say whose rows look like those of a private validation set.",
    )
    question_paths = (
        "privada.methods.summarization.questions.matching:EmbeddingSum",
        "privada.methods.summarization.questions.matching:NearCount",
        "privada.methods.summarization.questions.rounds:Participation",
        "privada.methods.summarization.questions.rounds:RoundBids",
        "privada.methods.summarization.questions.rounds:RoundPoints",
        "privada.methods.summarization.questions.matching:SummaryRows",
        "privada.methods.summarization.questions.matching:EmbeddedRows",
    )
    study_path = "privada.methods.summarization.study:inquire"


__all__ = ["Summarization"]
