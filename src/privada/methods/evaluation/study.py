"""Evaluation in a declarative study: the ``[method]`` table becomes an inquiry.

::

    [method]
    name = "evaluation"
    owner = "clinic"
    model = "model.onnx"             # ONNX, or JSON of one of our own forms
    bins = 10                        # of scores between 0 and 1; 1 asks for predictions alone
    positive = "ill"                 # of more than two classes: the one whose score is binned
    largest = 25.0                   # of a regressor: squared errors are held to this
    confidence = 0.95
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from privada import _check
from privada._toml import Section
from privada.methods import _study
from privada.methods.evaluation.estimator import BINS, ask_about
from privada.methods.evaluation.learner.intervals import CONFIDENCE
from privada.methods.evaluation.learner.results import Evaluation, forecast_interval, learn
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee

KEYS = ("bins", "positive", "largest")


def inquire(
    section: Section,
    *,
    schemas: Mapping[str, Schema],
    guarantee: Guarantee,
    home: Path,
    seed: int = 0,  # noqa: ARG001 - draws nothing
) -> Inquiry[Evaluation]:
    """Make the inquiry that a study's ``[method]`` describes."""
    owner = _study.asked(section, schemas)
    schema = schemas[owner]
    with section.blaming("model", "owner", *(key for key in KEYS if key in section)):
        if schema.label is None:
            section.fail("owner", "expected an owner whose schema has a label.")
        question = ask_about(
            home / section.string("model"),
            schema,
            guarantee=guarantee,
            bins=section.whole("bins", BINS),
            positive=_positive(section),
            largest=section.number("largest", None),
        )
    with section.blaming("confidence"):
        confidence = _check.probability(confidence=section.number("confidence", CONFIDENCE))
    section.done()
    names = schema.class_names
    made = learn(owner, question, classes=names, size=schema.size, confidence=confidence)
    return replace(made, forecast=forecast_interval(question, size=schema.size, confidence=confidence))


def _positive(section: Section) -> str | int | None:
    """A class by its name, which may be a word or a whole number."""
    if "positive" not in section:
        return None
    return section.one("positive", (str, int), "a class")


__all__ = ["inquire"]
