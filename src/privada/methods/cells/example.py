"""A small complete case of cells, generated."""

from __future__ import annotations

from typing import Any

import numpy as np

from privada.methods.cells.estimator import CellClassifier
from privada.methods.cells.method import Cells
from privada.methods.cells.questions.partition import Bins, GridCells, NearestCells
from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.example import Example
from privada.methods.method import Public
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import ZCDP, ApproxDP, PureDP
from privada.privacy.relation import Relation

PURE = PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE)
CENTERS = np.array([[0.25, 0.25], [0.75, 0.25], [0.5, 0.8]])


def example() -> Example:
    """Two features in the unit square, two classes, 200 rows; questions of every kind of guarantee."""
    public = np.random.default_rng(7)
    X = public.uniform(size=(200, 2))
    y = (X.sum(axis=1) > 1).astype(int)
    schema = Schema.of_numbers(
        bounds=(0.0, 1.0), width=2, size=200, label=Category(name="label", values=(0, 1))
    )
    method = Cells(centers=CENTERS, by_label=True)
    return Example(
        schema=schema,
        data={"data": X, "y": y},
        questions=_questions(),
        inquiry=lambda owner: method.prepare(Public(), {owner: schema}, PURE),
        estimator=lambda seed: CellClassifier(
            CENTERS, classes=(0, 1), bounds=(0.0, 1.0), epsilon=1.0, insecure_seed=seed
        ),
    )


def _questions() -> tuple[CellStatistics, ...]:
    nearest = NearestCells(centers=CENTERS)
    bins = tuple(Bins(feature=j, edges=np.array([0.3, 0.6])) for j in range(2))
    sums: dict[str, Any] = {"radius": 0.6, "recentred": True, "width": 2}
    return (
        CellStatistics(tables=(nearest,), n_classes=2, guarantee=PURE),
        CellStatistics(tables=bins, guarantee=PureDP(epsilon=2.0, relation=Relation.REPLACE_ONE)),
        CellStatistics(
            tables=(GridCells(factors=bins),),
            guarantee=ZCDP(rho=0.1, relation=Relation.ADD_REMOVE),
            n_classes=2,
        ),
        CellStatistics(tables=(nearest,), guarantee=PURE, **sums),
        CellStatistics(
            tables=(nearest,),
            guarantee=ApproxDP(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE),
            **sums,
        ),
        CellStatistics(
            tables=(nearest, *bins[:1]),
            n_classes=2,
            radius=0.9,
            width=2,
            guarantee=ApproxDP(epsilon=1.0, delta=1e-5, relation=Relation.ADD_REMOVE),
        ),
    )


__all__ = ["example"]
