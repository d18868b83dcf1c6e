"""Evaluation: the method and its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privada import _check
from privada.exceptions import InputError, WireError
from privada.methods.method import Method, Public, StudyPlace, setting
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from privada.methods.evaluation.learner.results import Evaluation as Result
    from privada.methods.evaluation.questions import ErrorMoments, OutcomeCounts
    from privada.methods.forecast import Forecast
    from privada.parties.schema import Schema

MODEL_FILE = ".privada"  # what the name of a file ends with that an estimator was saved to


def read_model(place: StudyPlace, key: str) -> Path:
    """The path of a study's model."""
    return place.home / place.section.string(key)


def read_class(place: StudyPlace, key: str) -> str | int | None:
    """A class by its name, which may be a word or a whole number."""
    return place.section.one(key, (str, int), "a class") if key in place.section else None


@dataclass(frozen=True, kw_only=True, eq=False)
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
    renamed: ClassVar[Mapping[str, str]] = {"largest": "max_squared_error"}

    model: Any = setting(
        None,
        "What is evaluated: a file of ONNX, of JSON (one of privada's forms), or of a saved estimator; in "
        "Python also one of the forms itself, or a fitted estimator of privada or scikit-learn.",
        kind="Hypothesis, bytes, path, or fitted model",
        example='"model.onnx"',
        read=read_model,
    )
    bins: int = setting(
        10,
        "Bins of scores between 0 and 1, for ROC and calibration; 1 asks for predictions alone, with less "
        "noise.",
    )
    positive: Any = setting(
        None,
        "Of more than two classes, the one whose score is binned; by default the predicted one.",
        kind="class",
        example='"ill"',
        read=read_class,
    )
    max_squared_error: float | None = setting(
        None,
        "Squared errors of a regressor are clipped to this; by default to the square of the label's range.",
        example="25.0",
    )
    confidence: float = setting(0.95, "Of every interval, which includes noise and sampling.")

    def prepare(
        self,
        public: Public,  # noqa: ARG002 - there are no public rows
        parties: Mapping[str, Schema],
        guarantee: Guarantee,
        *,
        seed: int = 0,  # noqa: ARG002 - nothing is drawn
    ) -> Inquiry[Result]:
        """Ask one question about the model."""
        from privada.methods.evaluation.learner.results import learn

        ((owner, schema),) = parties.items()
        if schema.label is None:
            raise InputError("Expected an owner whose schema has a label.")
        _check.probability(confidence=self.confidence)
        question, names = self.make_question(schema, guarantee), schema.class_names
        return learn(owner, question, classes=names, size=schema.size, confidence=self.confidence)

    def forecast(self, inquiry: Inquiry[Any], parties: Mapping[str, Schema]) -> Forecast:
        """How wide the interval will be."""
        from privada.methods.evaluation.learner.results import forecast_interval

        (ask,), (schema,) = inquiry.asks, parties.values()
        question: Any = ask.question
        return forecast_interval(question, size=schema.size, confidence=self.confidence)

    def make_question(self, schema: Schema, guarantee: Guarantee) -> OutcomeCounts | ErrorMoments:
        """The question about the model that fits a public schema; nothing is charged if it is refused."""
        from privada.methods.evaluation.learner.models import as_hypothesis, link_of
        from privada.methods.evaluation.questions import ErrorMoments, OutcomeCounts, even_edges

        model = self.model
        if isinstance(model, (str, os.PathLike)) and Path(model).suffix == MODEL_FILE:
            from privada.methods.models.model_file import load

            try:
                model = load(model)
            except WireError as error:
                raise InputError(f"Cannot read the model {Path(self.model).name}: {error}") from None
        question: OutcomeCounts | ErrorMoments
        if schema.label_bounds is not None:
            low, high = schema.label_bounds
            bound = (high - low) ** 2 if self.max_squared_error is None else self.max_squared_error
            question = ErrorMoments(
                hypothesis=as_hypothesis(model, width=schema.width),
                largest=_check.positive(max_squared_error=bound),
                guarantee=guarantee,
            )
        else:
            names = schema.classes.names
            hypothesis = as_hypothesis(model, width=schema.width, classes=names)
            scored = hypothesis.outputs and _check.count(bins=self.bins) > 1
            question = OutcomeCounts(
                hypothesis=hypothesis,
                n_classes=len(names),
                edges=even_edges(self.bins) if scored else np.zeros(0),
                link=link_of(hypothesis),
                positive=None if self.positive is None else _find_class(self.positive, names),
                guarantee=guarantee,
            )
        question.fits(schema)
        return question


def _find_class(positive: Any, names: tuple[Any, ...]) -> int:
    words = [str(name) for name in names]
    # A command line has words only, also where classes are numbers.
    for candidates, value in ((list(names), positive), (words, str(positive))):
        if value in candidates:
            return candidates.index(value)
    raise InputError(f"Expected positive to be one of {words}, got {positive!r:.80}.")


__all__ = ["Evaluation"]
