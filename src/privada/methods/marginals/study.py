"""Marginals in a declarative study: the ``[method]`` table becomes a learner.

::

    [method]
    name = "marginals"
    owner = "clinic"
    source = "source.csv"            # public rows, a column for each feature of the schema, no header
    question = "auto"                # or "cells", "marginals", "pairs", "embedding"
    size = 1000                      # announced number of rows; by default the schema's
    rounds = 2                       # of "marginals"
    bins = 4
    cells = 100
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from privada._toml import Section
from privada.methods import _study
from privada.methods.marginals.asking import askings
from privada.methods.marginals.fitted import MarginalFit
from privada.methods.marginals.learner import Public
from privada.parties.protocol import Learner
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee


def learner(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Learner[MarginalFit]:
    """Make the learner that a study's ``[method]`` describes; another seed is another asking."""
    owner = _study.asked(section, schemas)
    schema = schemas[owner]
    with section.blaming("owner"):
        classes = schema.classes.names
    source = _source(section, schema, home)
    public = Public(source=source, classes=classes, seed=seed)
    size = section.whole("size", schema.size)
    if size is None:
        section.fail("size", "expected the announced number of rows, here or in the schema.")
    asked = section.string("question", "auto")
    cells, rounds, bins = (section.whole(name, None) for name in ("cells", "rounds", "bins"))
    section.done()
    with section.blaming("question"):
        found = askings(asked, public, guarantee=guarantee, size=size, cells=cells, rounds=rounds, bins=bins)
    return next(iter(found.values())).learner(owner, public)


def _source(
    section: Section, schema: Schema, home: Path
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rows = _study.public_rows(section, "source", home)
    if rows.shape[1] != schema.width:
        section.fail("source", f"expected rows of {schema.width} features, got {rows.shape[1]}.")
    return schema.box.clip(rows)


__all__ = ["learner"]
