"""Rows that are made of an owner card alone, so that a learner can develop before it asks.

>>> from privada.parties import Category, Number, Schema
>>> schema = Schema(columns=[Number(name="age", low=0, high=120)],
...                 label=Category(name="ill", values=("no", "yes")))
>>> make_dummy_rows(schema, rows=3).column_names
['age', 'ill']
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.parties import tables
from privada.parties.columns import Column
from privada.parties.schema import Schema

MISSING = 0.1  # share of a column's values, where some may be missing


def make_dummy_rows(schema: Schema, *, rows: int = 100, random_state: int = 0) -> Any:
    """Rows with the columns, bounds, classes and persons that a schema states, each drawn evenly.

    Parameters
    ----------
    schema : Schema
        The public description.
    rows : int, default=100
        How many rows.
    random_state : int, default=0
        Seed of the public generator; the same seed gives the same rows.

    Returns
    -------
    pyarrow.Table

    Privacy
    -------
    No private row is read, so nothing is charged. The rows say nothing about the owner's: columns are
    drawn independently and evenly, whatever their true distribution and relation is.
    """
    count = _check.count(rows=rows)
    if count > 10_000_000:
        raise InputError(f"Expected rows of at most 10,000,000, got {count}.")
    random = np.random.default_rng(_check.count(least=0, random_state=random_state))
    made = {column.name: _draw(column, count, random) for column in schema.columns}
    if schema.label is not None:  # which is never missing
        made[schema.label.name] = _draw(replace(schema.label, missing=False), count, random)
    if schema.person_id is not None and schema.max_rows is not None:
        made[schema.person_id] = _persons(count, most=min(schema.max_rows, 3))
    return tables.make_arrow(made)


def _draw(column: Column, rows: int, random: np.random.Generator) -> npt.NDArray[Any]:
    """Values of one column: features drawn evenly between their limits, decoded."""
    low, high = np.array(column.limits()).T
    features = random.uniform(low, high, size=(rows, len(low)))
    if column.missing:  # the last feature marks what is missing
        features[:, -1] = random.random(rows) < MISSING
    return column.decode(features)


def _persons(rows: int, *, most: int) -> npt.NDArray[Any]:
    """Names of persons, none of whom has too many rows."""
    return np.array([f"person {row // most}" for row in range(rows)], dtype=object)


__all__ = ["MISSING", "make_dummy_rows"]
