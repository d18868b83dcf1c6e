"""Cells in a declarative study: the ``[method]`` table becomes an inquiry.

::

    [method]
    name = "cells"
    owner = "clinic"
    centers = "centers.csv"          # public centres: CSV or Parquet with the owner's columns; or
    bins = { age = [40, 60] }        # public edges of features: one table each
    by_label = true
    radius = 1.0                     # ask for sums too, of rows clipped to this norm
    recentred = false                # sums relative to each cell's centre
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from privada._toml import Section
from privada.exceptions import InputError, RelationError
from privada.methods import _study
from privada.methods.cells.estimator import CellClassifier, keep_counts
from privada.methods.cells.learner import CellEstimates, forecast_counts, learn
from privada.methods.cells.questions.partition import Bins, NearestCells, Partition
from privada.methods.cells.questions.statistics import CellStatistics
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Question


def inquire(
    section: Section,
    *,
    schemas: Mapping[str, Schema],
    guarantee: Guarantee,
    home: Path,
    seed: int = 0,  # noqa: ARG001 - draws nothing
) -> Inquiry[CellEstimates]:
    """Make the inquiry that a study's ``[method]`` describes."""
    owner = _study.asked(section, schemas)
    schema = schemas[owner]
    radius = section.number("radius", None)
    by_label = section.flag("by_label", False)
    tables = _tables(section, schema, home)
    recentred = section.flag("recentred", False)
    section.done()
    try:
        question = CellStatistics(
            tables=tables,
            n_classes=len(schema.classes) if by_label else None,
            radius=radius,
            recentred=recentred,
            width=None if radius is None else schema.width,
            guarantee=guarantee,
        )
        question.fits(schema)
    except (InputError, RelationError) as error:
        section.fail("", str(error))
    made = learn(owner, question, classes=schema.classes.names if by_label else None)
    return replace(made, forecast=forecast_counts(question, size=schema.size))


def _tables(section: Section, schema: Schema, home: Path) -> tuple[Partition, ...]:
    if "centers" in section:
        return (NearestCells(centers=_study.public_rows(section, "centers", home, schema)),)
    if "bins" not in section:
        section.fail("", "expected centers or bins.")
    bins = section.section("bins")
    made = [_bins(bins, name, schema) for name in schema.features if name in bins]
    bins.done()
    return tuple(made)


def _bins(section: Section, name: str, schema: Schema) -> Bins:
    missing = f"{name} is missing"
    mark = schema.features.index(missing) if missing in schema.features else None
    edges = section.array(name)
    try:
        return Bins(feature=schema.features.index(name), edges=np.asarray(edges), missing=mark)
    except (InputError, TypeError, ValueError) as error:
        section.fail(name, str(error))


def model_maker(
    questions: Sequence[Question], *, schema: Schema, guarantee: Guarantee
) -> Callable[[CellEstimates], CellClassifier]:
    """Class counts by the nearest centre are a classifier; other tables are none."""
    (question,) = questions
    assert isinstance(question, CellStatistics)
    cells = question.tables[0]
    if question.n_classes is None or not isinstance(cells, NearestCells):
        raise InputError("Expected centers and by_label = true: only class counts near centres make a model.")
    model = CellClassifier(
        cells.centers,
        classes=schema.classes.names,
        size=schema.size,
        **_study.model_settings(schema, guarantee),
    )

    def make(found: CellEstimates) -> CellClassifier:
        _study.name_columns(model, schema)
        keep_counts(model, found, classes=schema.classes.names)
        return model

    return make


__all__ = ["inquire", "model_maker"]
