"""Reweighting in a declarative study: the ``[method]`` table becomes an inquiry.

::

    [method]
    name = "reweighting"
    owner = "clinic"
    source = "source.csv"      # public rows: CSV or Parquet with the owner's columns and the label
    base = "auto"              # optional; "linear" keeps to linear public models
    standardize = true         # optional
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from privada._toml import Section
from privada.methods import _study
from privada.methods.reweighting.estimator import (
    ReweightedClassifier,
    ReweightedRegressor,
    keep_adapted,
)
from privada.methods.reweighting.learner.ladder import AdaptedModel, plan
from privada.parties.protocol import Inquiry
from privada.parties.schema import Number, Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Question


def inquire(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Inquiry[AdaptedModel]:
    """Make the inquiry that a study's ``[method]`` describes."""
    owner = _study.asked(section, schemas)
    schema = schemas[owner]
    if schema.label is None or schema.size is None:
        section.fail("owner", "its schema needs a label and a declared size.")
    X, labels = _study.labelled_rows(section, "source", home, schema)
    base = section.string("base", "auto")
    standardize = section.flag("standardize", True)
    section.done()
    numeric = isinstance(schema.label, Number)
    with section.blaming("source"):
        made = plan(
            X,
            labels,
            size=schema.size,
            guarantee=guarantee,
            n_classes=0 if numeric else len(schema.classes),
            label_bounds=(schema.label.low, schema.label.high) if isinstance(schema.label, Number) else None,
            base=base,
            standardize=standardize,
            random_state=seed,
            salt="0",  # as in studies of 0.2, whose answers stay theirs
        )
    return made.inquiry(owner)


def model_maker(
    questions: Sequence[Question],  # noqa: ARG001 - all of them make a model
    *,
    schema: Schema,
    guarantee: Guarantee,
) -> Callable[[AdaptedModel], ReweightedClassifier | ReweightedRegressor]:
    """The adapted regressor or classifier."""

    def make(found: AdaptedModel) -> ReweightedClassifier | ReweightedRegressor:
        settings = _study.model_settings(schema, guarantee)
        del settings["relation"]  # always replace-one
        model: ReweightedClassifier | ReweightedRegressor
        if isinstance(schema.label, Number):
            model = ReweightedRegressor(**settings)
            model.label_bounds_ = (schema.label.low, schema.label.high)
        else:
            model = ReweightedClassifier(classes=schema.classes.names, **settings)
            model.classes_ = np.asarray(schema.classes.names)
        _study.name_columns(model, schema)
        keep_adapted(model, found, schema)
        return model

    return make


__all__ = ["inquire", "model_maker"]
