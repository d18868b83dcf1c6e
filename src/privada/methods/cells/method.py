"""Cells: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from privada.methods.method import Method
from privada.methods.situation import Situation


@dataclass(frozen=True, kw_only=True)
class Cells(Method):
    """Private counts, sums and histograms over public cells."""

    name = "cells"
    title = "Private counts, sums and histograms over public cells"
    paper = "what papers 000 and 001 share, made sound"
    situation = Situation(
        want="counts",
        because="one noisy release counts rows, by class if you like, in cells that you declare.",
    )
    question_paths = ("privada.methods.cells.questions.statistics:CellStatistics",)
    study_path = "privada.methods.cells.study:inquire"
    model_path = "privada.methods.cells.study:model_maker"
    estimators: ClassVar[Mapping[str, str]] = {
        "class": "privada.methods.cells.estimator:CellClassifier",
        "means": "privada.methods.cells.estimator:CellMeans",
    }


__all__ = ["Cells"]
