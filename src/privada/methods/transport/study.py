"""Transport in a declarative study: the ``[method]`` table becomes an inquiry.

::

    [method]
    name = "transport"
    owners = ["clinic", "hospital"]   # one or several; all of the study's by default
    target = "target.csv"             # public target rows: CSV or Parquet with the owners' columns
    projection = "target"             # or "random": "target" shows the owners something of the target
    rescale = "none"                  # or "unit", "root": for histograms and activations
    n_components = 20                 # optional; directions of the target that are kept
    norm_bound = 1.0                  # with "random", unless rows are rescaled

Under replace-one, and unless ``projection`` or ``rescale`` say otherwise, every owner is asked for a noisy
descent; else for class statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from privada._toml import Section
from privada.exceptions import InputError
from privada.methods import _study
from privada.methods.linear.questions.descent import TransportDescent
from privada.methods.transport.estimator import TransportClassifier, keep_model
from privada.methods.transport.learner.default import default_map, standardised_map
from privada.methods.transport.learner.forecast import forecast
from privada.methods.transport.learner.learn import TransportModel, learn, learn_descent
from privada.methods.transport.learner.linear_head import ask_head
from privada.methods.transport.questions.features import FeatureMap
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.relation import Relation
from privada.privacy.release import Question


def inquire(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Inquiry[TransportModel]:
    """Make the inquiry that a study's ``[method]`` describes."""
    owners = section.array("owners") if "owners" in section else list(schemas)
    if not owners:
        section.fail("owners", "expected at least one owner.")
    for owner in owners:
        _study.known(section, "owners", owner, schemas)
    if any(schemas[owner].columns != schemas[owners[0]].columns for owner in owners):
        section.fail("owners", "their cards have different columns; expected the same of all.")
    target = _study.public_rows(section, "target", home, schemas[owners[0]])
    projection, rescale = section.string("projection", "target"), section.string("rescale", "none")
    components, radius = section.whole("n_components", None), section.number("norm_bound", None)
    section.done()
    classes = schemas[owners[0]].classes
    with section.blaming("target"):
        if (projection, rescale) == ("target", "none") and guarantee.relation is Relation.REPLACE_ONE:
            features = standardised_map(target, components=components)
            descents = {name: _descent(features, schemas[name], guarantee) for name in owners}
            made = learn_descent(descents, target, classes=classes.names, features=features)
            size, mu = sum(each.size for each in descents.values()), guarantee.gaussian_mu()
            expected = forecast(target, size=size, n_classes=len(classes), mu=mu)
            return replace(made, forecast=expected)
        features = default_map(
            target,
            projection=projection,
            rescale=rescale,
            components=components,
            norm_bound=radius,
            seed=seed,
        )
        question = ClassStatistics(features=features, n_classes=len(classes), guarantee=guarantee)
        for owner in owners:
            question.fits(schemas[owner])
    return learn(dict.fromkeys(owners, question), target, classes=classes.names)


def _descent(features: FeatureMap, schema: Schema, guarantee: Guarantee) -> TransportDescent:
    """The question to one owner, who has declared its size."""
    if schema.size is None:
        raise InputError("Expected every owner to declare its size: a descent divides by it.")
    question = ask_head(features, size=schema.size, n_classes=len(schema.classes), guarantee=guarantee)
    question.fits(schema)
    return question


def model_maker(
    questions: Sequence[Question], *, schema: Schema, guarantee: Guarantee
) -> Callable[[TransportModel], TransportClassifier]:
    """The classifier of the target's domain."""

    def make(found: TransportModel) -> TransportClassifier:
        names = schema.classes.names
        model = TransportClassifier(classes=names, **_study.model_settings(schema, guarantee))
        _study.name_columns(model, schema)
        model.question_ = questions[0]
        keep_model(model, found, classes=names)
        return model

    return make


__all__ = ["inquire", "model_maker"]
