"""Reweighting in a declarative study: the ``[method]`` table becomes a learner.

::

    [method]
    name = "reweighting"
    owner = "clinic"
    source = "source.csv"      # public rows: features in the owner's units and order, the label last
    groups = "months.csv"      # optional: the domain of each public row, one a line
    alpha = 0.3                # optional; by default chosen from public data
    standardize = true         # optional
    selection = "public"       # optional; "private" spends a tenth of the budget on a choice by private rows
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privada._toml import Section
from privada.methods import _study
from privada.methods.linear.questions import losses
from privada.methods.reweighting.learner.default import plan
from privada.methods.reweighting.learner.learn import AdaptedModel
from privada.parties.protocol import Learner
from privada.parties.schema import Category, Schema
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
    groups = _study.public_text(section, "groups", home)[:, 0] if "groups" in section else None
    alpha = section.number("alpha", None)
    standardize = section.flag("standardize", True)
    selection = section.string("selection", "public")
    section.done()
    n_classes = len(schema.classes) if isinstance(schema.label, Category) else 0
    loss = {0: "squared", 2: "logistic"}.get(n_classes, "softmax")
    with section.blaming("source"):
        made = plan(
            X,
            schema.classes.encode(labels) if n_classes else labels.astype(np.float64),
            loss=loss,
            size=schema.size,
            guarantee=guarantee,
            n_outputs=losses.outputs(loss, n_classes),
            groups=groups,
            alpha=alpha,
            standardize=standardize,
            selection=selection,
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
