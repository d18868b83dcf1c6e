"""Reweighting in a declarative study: the ``[method]`` table becomes a learner.

::

    [method]
    name = "reweighting"
    owner = "clinic"
    source = "source.csv"      # public rows: CSV or Parquet with the owner's columns and the label
    base = "auto"              # optional; "linear" keeps to linear public models
    standardize = true         # optional
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privada._toml import Section
from privada.methods import _study
from privada.methods.reweighting.learner.ladder import AdaptedModel, plan
from privada.parties.protocol import Learner
from privada.parties.schema import Number, Schema
from privada.privacy.guarantee import Guarantee


def learner(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: Any = 0
) -> Learner[AdaptedModel]:
    """Make the learner that a study's ``[method]`` describes."""
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
            random_state=0,
            salt=str(seed),
        )
    return made.learner(owner)


__all__ = ["learner"]
