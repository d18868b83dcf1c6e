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
from typing import Any

import numpy as np

from privada._toml import Section
from privada.methods.marginals.default import (
    KINDS,
    default_cells,
    default_embedding,
    default_rounds,
    foreseen,
)
from privada.methods.marginals.fitted import MarginalFit
from privada.methods.marginals.learner import Public, learn_cells, learn_embedding
from privada.methods.marginals.rounds import learn_rounds
from privada.parties.protocol import Learner
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee


def learner(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Learner[MarginalFit]:
    """Make the learner that a study's ``[method]`` describes; another seed is another asking."""
    owner = section.string("owner", next(iter(schemas)))
    if owner not in schemas:
        section.fail("owner", f"no owner named {owner!r}; known: {', '.join(schemas)}.")
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
    if asked not in {"auto", *KINDS}:
        section.fail("question", f"expected one of auto, {', '.join(KINDS)}.")
    settings: dict[str, Any] = {"guarantee": guarantee, "size": size, "seed": seed}
    known = settings | {"n_classes": len(classes)}
    with section.blaming("question"):
        kind, rounds = _kind(asked, source, cells=cells, bins=bins, rounds=rounds, **known)
        if kind == "cells":
            question, _ = default_cells(source, cells=cells, **known)
            question.fits(schema)
            return learn_cells(owner, question, public, size=float(size))
        if kind == "embedding":
            return learn_embedding(owner, default_embedding(source, **known)[0], public)
        count = "errors" if len(classes) == 2 else "classes"
        plan, _ = default_rounds(
            source, rounds=rounds, bins=bins, pairs=kind == "pairs", count=count, **settings
        )
        return learn_rounds(owner, plan, public)


def _kind(
    asked: str, source: Any, *, cells: int | None, bins: int | None, rounds: int | None, **known: Any
) -> tuple[str, int]:
    """What is asked, and over how many rounds: as said, as the other settings imply, or as forecast."""
    if asked != "auto":
        return asked, rounds or 1
    if cells is not None:
        return "cells", 1
    if bins is not None or rounds is not None:
        return "marginals", rounds or 1
    return next(iter(foreseen(source, **known)))


def _source(
    section: Section, schema: Schema, home: Path
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    path = home / section.string("source")
    try:
        rows = np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError):
        section.fail("source", f"cannot read {path.name} as numbers separated by commas.")
    if rows.ndim != 2 or rows.shape[1] != schema.width or not len(rows) or not np.isfinite(rows).all():
        section.fail("source", f"expected finite rows of {schema.width} features.")
    return schema.box.clip(rows)


__all__ = ["learner"]
