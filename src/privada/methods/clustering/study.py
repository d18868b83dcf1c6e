"""Clustering in a declarative study: the ``[method]`` table becomes an inquiry.

::

    [method]
    name = "clustering"
    owner = "clinic"
    target = "target.csv"      # public target points: CSV or Parquet with the owner's columns
    n_centers = 20
    radius = 1.0               # public ball around 0 that holds source and target
    bound_share = 0.1          # optional: share of the budget for Δᵗ(S), which sharpens the cost's bound
    bound_neighbours = 10      # optional: its t
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privada._toml import Section
from privada.methods import _study
from privada.methods.clustering.estimator import SourceTargetMedoids, keep_choice
from privada.methods.clustering.learner.learn import (
    GUESSED_SIZE,
    Choice,
    default_question,
    forecast_gain,
    learn,
)
from privada.methods.clustering.questions.means import SourceRadius
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee, split_alike
from privada.privacy.release import Question

SALT = "0"  # as in studies of 0.2, whose answers stay theirs


def inquire(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Inquiry[Choice]:
    """Make the inquiry that a study's ``[method]`` describes."""
    owner = _study.asked(section, schemas)
    target = _study.public_rows(section, "target", home, schemas[owner])
    n_centers, radius = section.whole("n_centers"), section.number("radius")
    about, guarantee = _radius(section, target, radius, guarantee)
    section.done()
    with section.blaming("n_centers"):
        question = default_question(
            target,
            n_centers=n_centers,
            guarantee=guarantee,
            radius=radius,
            source_size=schemas[owner].size,
            salt=SALT,
        )
        question.fits(schemas[owner])
        made = learn(owner, target, question, n_centers=n_centers, radius=about, random_state=seed)
    size = schemas[owner].size or max(len(target), GUESSED_SIZE)
    expected = forecast_gain(question, width=target.shape[1], size=size)
    return replace(made, forecast=expected)


def _radius(
    section: Section, target: Any, radius: float, guarantee: Guarantee
) -> tuple[SourceRadius | None, Guarantee]:
    """The question of Δᵗ(S), if a share is set aside for it, and what is left."""
    share = section.number("bound_share", 0.0)
    t = section.whole("bound_neighbours", 10)
    if not share:
        return None, guarantee
    with section.blaming("bound_share"):
        bounding, asking = split_alike(guarantee, share)
        about = SourceRadius(targets=target, t=t, radius=radius, guarantee=bounding, salt=SALT)
        return about, asking


def model_maker(
    questions: Sequence[Question], *, schema: Schema, guarantee: Guarantee
) -> Callable[[Choice], SourceTargetMedoids]:
    """The chosen points, which predict the nearest of them."""

    def make(choice: Choice) -> SourceTargetMedoids:
        settings = _study.model_settings(schema, guarantee)
        model = SourceTargetMedoids(len(choice.indices), source_size=schema.size, **settings)
        _study.name_columns(model, schema)
        model.question_, model.guarantee_ = questions[0], guarantee
        keep_choice(model, choice)
        return model

    return make


__all__ = ["inquire", "model_maker"]
