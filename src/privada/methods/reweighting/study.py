"""Reweighting in a declarative study: the ``[method]`` table becomes a learner.

::

    [method]
    name = "reweighting"
    owner = "clinic"
    source = "source.csv"      # public rows: features in the owner's units and order, the label last
    base = "auto"              # optional; "linear" keeps to linear public models
    standardize = true         # optional
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privada._toml import Section
from privada.methods import _study
from privada.methods.reweighting.learner.ladder import AdaptedModel, plan
from privada.parties.protocol import Learner
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import Guarantee


def learner(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: Any = 0
) -> Learner[AdaptedModel]:
    """Make the learner that a study's ``[method]`` describes."""
    owner = _study.asked(section, schemas)
    schema = schemas[owner]
    if schema.label is None or schema.size is None:
        section.fail("owner", "its schema needs a label and a declared size.")
    X, labels = _source(section, home, schema)
    base = section.string("base", "auto")
    standardize = section.flag("standardize", True)
    section.done()
    numeric = isinstance(schema.label, Number)
    with section.blaming("source"):
        made = plan(
            X,
            labels.astype(np.float64) if numeric else schema.classes.encode(labels),
            size=schema.size,
            guarantee=guarantee,
            n_classes=0 if numeric else len(schema.classes),
            label_bounds=(schema.label.low, schema.label.high) if isinstance(schema.label, Number) else None,
            base=base,
            standardize=standardize,
            random_state=0,
            salt=str(seed),
        )
    return made.learner(owner)


def _source(section: Section, home: Path, schema: Schema) -> tuple[Any, Any]:
    """Features and labels of a file of numbers separated by commas, the label last."""
    table = _study.public_text(section, "source", home)
    X, labels = _study.finite(section, "source", table[:, :-1]), table[:, -1]
    if X.shape[1] != schema.width:
        section.fail("source", f"expected {schema.width} features and a label, got {X.shape[1]} features.")
    if not isinstance(schema.label, Category):
        return X, _study.finite(section, "source", labels)
    known = {str(value): value for value in schema.label.values}
    if strange := sorted(set(labels) - set(known)):
        section.fail("source", f"{strange[0]} is not one of the classes {', '.join(known)}.")
    return X, np.array([known[text] for text in labels])


__all__ = ["learner"]
