"""Marginals in a declarative study: the ``[method]`` table becomes an inquiry.

::

    [method]
    name = "marginals"
    owner = "clinic"
    source = "source.csv"            # public rows: CSV or Parquet with the owner's columns
    question = "auto"                # or "descent", "cells", "marginals"
    size = 1000                      # announced number of rows; by default the schema's
    rounds = 2                       # of "marginals", as are bins and stop
    bins = 4
    stop = 0.01                      # ask no further round once a smaller share of labels changed in one
    cells = 100                      # of "cells"
    reweight = false                 # of both, if the domains are known to agree: no weights are estimated

"auto" is a descent where the guarantee has delta or is rho, and cells where it is pure; ``cells`` alone, or
``rounds``, ``bins`` or ``stop``, say which kind is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privada import _check
from privada._toml import Section
from privada.exceptions import InputError
from privada.methods import _study
from privada.methods.marginals._one_process import keep_fit
from privada.methods.marginals.estimator import MarginalClassifier
from privada.methods.marginals.learner.asking import (
    KINDS,
    CellCounts,
    ErrorTables,
    forecast_error,
    make_inquiry,
)
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.methods.marginals.learner.learn import Public
from privada.methods.marginals.learner.public import missing_marks
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Question

KEYS = ("size", "cells", "rounds", "bins", "stop", "reweight", "question")


def inquire(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Inquiry[MarginalFit]:
    """Make the inquiry that a study's ``[method]`` describes."""
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
    with section.blaming("source", *named):
        question = _question(section)
        section.done()
        made = make_inquiry(question, owner, public, guarantee=guarantee, size=size)
    expected = forecast_error(public, guarantee=guarantee, size=size)
    return replace(made, forecast=expected)


def _question(section: Section) -> str | CellCounts | ErrorTables:
    """The kind that is asked for, with the settings that are given."""
    kind = _check.one_of(KINDS, question=section.string("question", "auto"))
    cells = {name: section.whole(name, None) for name in ("cells",) if name in section}
    tables: dict[str, Any] = {
        name: section.whole(name, None) for name in ("rounds", "bins") if name in section
    }
    tables |= {"stop": section.number("stop", 0.0)} if "stop" in section else {}
    shared = {"reweight": section.flag("reweight", True)} if "reweight" in section else {}
    if kind == "auto" and (cells or tables or shared):
        kind = "marginals" if tables else "cells"
    wrong = {"descent": cells | tables | shared, "cells": tables, "marginals": cells}.get(kind, {})
    if wrong:
        name, value = next(iter(wrong.items()))
        raise InputError(f'Expected {name} only for another kind, got {value!r} for question="{kind}".')
    if kind == "cells":
        return CellCounts(**cells, **shared)
    return ErrorTables(**tables, **shared) if kind == "marginals" else kind


def _source(
    section: Section, schema: Schema, home: Path
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rows = _study.public_rows(section, "source", home, schema)
    if rows.shape[1] != schema.width:
        section.fail("source", f"expected rows of {schema.width} features, got {rows.shape[1]}.")
    return schema.box.clip(rows)


def model_maker(
    questions: Sequence[Question],  # noqa: ARG001 - all of them make a model
    *,
    schema: Schema,
    guarantee: Guarantee,
) -> Callable[[MarginalFit], MarginalClassifier]:
    """The classifier that was fitted to the synthetic target."""

    def make(found: MarginalFit) -> MarginalClassifier:
        names, settings = schema.classes.names, _study.model_settings(schema, guarantee)
        model = MarginalClassifier(classes=names, size=schema.size, **settings)
        _study.name_columns(model, schema)
        model.classes_ = np.asarray(names)
        keep_fit(model, found, guarantee=guarantee)
        return model

    return make


__all__ = ["inquire", "model_maker"]
