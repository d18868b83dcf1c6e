"""Marginals in a declarative study: the ``[method]`` table becomes a learner.

::

    [method]
    name = "marginals"
    owner = "clinic"
    source = "source.csv"            # public rows, a column for each feature of the schema, no header
    question = "auto"                # or "cells", "marginals", "pairs", "embedding"
    size = 1000                      # announced number of rows; by default the schema's
    rounds = 2                       # of "marginals" and "pairs", as are bins and stop
    bins = 4
    stop = 0.01                      # ask no further round once a smaller share of labels changed in one
    cells = 100                      # of "cells"
    reweight = false                 # if the domains are known to agree: nothing is spent on weights
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from privada._toml import Section
from privada.methods import _study
from privada.methods.marginals.learner.asking import askings
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.methods.marginals.learner.learn import Public
from privada.methods.marginals.learner.public import missing_marks
from privada.parties.protocol import Learner
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee

KEYS = ("size", "cells", "rounds", "bins", "stop", "reweight", "question")


def learner(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Learner[MarginalFit]:
    """Make the learner that a study's ``[method]`` describes; another seed is another asking."""
    owner = _study.asked(section, schemas)
    schema = schemas[owner]
    with section.blaming("owner"):
        classes = schema.classes.names
    source = _source(section, schema, home)
    public = Public(source=source, classes=classes, seed=seed, missing=missing_marks(schema))
    named = [name for name in KEYS if name in section]
    size = section.whole("size", schema.size)
    if size is None:
        section.fail("size", "expected the announced number of rows, here or in the schema.")
    asked = section.string("question", "auto")
    settings = {name: section.whole(name, None) for name in ("cells", "rounds", "bins")}
    settings |= {"stop": section.number("stop", 0.0), "reweight": section.flag("reweight", True)}
    section.done()
    with section.blaming("source", *named):
        found = askings(asked, public, guarantee=guarantee, size=size, **settings)
    return next(iter(found.values())).learner(owner, public)


def _source(
    section: Section, schema: Schema, home: Path
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rows = _study.public_rows(section, "source", home)
    if rows.shape[1] != schema.width:
        section.fail("source", f"expected rows of {schema.width} features, got {rows.shape[1]}.")
    return schema.box.clip(rows)


__all__ = ["learner"]
