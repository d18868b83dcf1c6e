"""A small complete case of learning through marginals, generated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from privada.methods.cells.questions.partition import Bins, GridCells, NearestCells, Projected
from privada.methods.example import Case, Example
from privada.methods.hypotheses.forms import Constant, linear
from privada.methods.linear.questions.descent import MarginalsDescent
from privada.methods.marginals.estimator import MarginalClassifier
from privada.methods.marginals.learner.asking import CellCounts
from privada.methods.marginals.learner.learn import Public, default_cells, learn_cells
from privada.methods.marginals.questions import HypothesisChoice, LabelHistogram, OutcomeTables, SquaredErrors
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.relation import Relation
from privada.privacy.release import Question

TABLES = tuple(Bins(feature=j, edges=np.array([0.3, 0.6])) for j in range(2))
SLOPE = linear([[1.0], [1.0]], [-0.9])
CANDIDATES = (Constant(code=0), *(linear([[1.0], [1.0]], [-1.0 - i / 100]) for i in range(15)))


def example() -> Example:
    """Two features in the unit square, two classes, 200 rows; questions of every kind of guarantee."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(11)
    X = rng.uniform(size=(200, 2))
    y = (X.sum(axis=1) > 1).astype(int)
    source = rng.uniform(size=(120, 2))
    schema = Schema.of_numbers(
        bounds=(0.0, 1.0), width=2, size=200, label=Category(name="label", values=(0, 1))
    )
    public = Public(source=source, classes=(0, 1), classifier=LogisticRegression())
    pure = PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE)
    question = default_cells(source, guarantee=pure, size=200, n_classes=2, seed=0, cells=12)
    return Example(
        schema=schema,
        data={"data": X, "y": y},
        questions=_questions(),
        inquiry=lambda owner: learn_cells(owner, question, public),
        estimator=lambda seed: MarginalClassifier(
            classes=(0, 1),
            bounds=(0.0, 1.0),
            epsilon=1.0,
            size=200,
            algorithm=CellCounts(cells=12),
            classifier=LogisticRegression(),
            insecure_seed=seed,
        ),
        fit_more={"source": source},
        further_cases=(_numbers(X),),
    )


def _questions() -> tuple[Question, ...]:
    pure = PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE)
    replaced = PureDP(epsilon=1.0, relation=Relation.REPLACE_ONE)
    some = PureDP(epsilon=0.2, relation=Relation.REPLACE_ONE)
    rho = ZCDP(rho=0.1, relation=Relation.ADD_REMOVE)
    approximate = ApproxDP(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE)
    cells = Projected(matrix=np.eye(2), inner=NearestCells(centers=np.array([[0.2, 0.2], [0.8, 0.8]])))
    return (
        OutcomeTables(tables=TABLES, hypothesis=SLOPE, rounds=2, round=1, guarantee=pure),
        OutcomeTables(tables=TABLES, hypothesis=SLOPE, count="signed", guarantee=replaced),
        OutcomeTables(tables=(GridCells(factors=TABLES),), hypothesis=SLOPE, count="classes", guarantee=rho),
        OutcomeTables(tables=TABLES, hypothesis=SLOPE, count="signed", guarantee=approximate),
        OutcomeTables(tables=(cells,), count="labels", guarantee=pure),
        HypothesisChoice(candidates=CANDIDATES, guarantee=some),
        HypothesisChoice(candidates=CANDIDATES, guarantee=ZCDP(rho=0.01, relation=Relation.ADD_REMOVE)),
        _descent(rho),
        _descent(approximate),
        OutcomeTables(tables=TABLES, count="rows", guarantee=replaced),
    )


def _numbers(X: npt.NDArray[np.float64]) -> Case:
    """The same rows with a number to predict, and the questions of a regressor."""
    pure = PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE)
    replaced = PureDP(epsilon=1.0, relation=Relation.REPLACE_ONE)
    rho = ZCDP(rho=0.1, relation=Relation.ADD_REMOVE)
    approximate = ApproxDP(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE)
    return Case(
        schema=Schema.of_numbers(
            bounds=(0.0, 1.0), width=2, size=len(X), label=Number(name="label", low=0.0, high=2.0)
        ),
        data={"data": X, "y": X.sum(axis=1)},
        questions=(
            *(
                SquaredErrors(tables=TABLES, hypothesis=SLOPE, largest=1.0, guarantee=guarantee)
                for guarantee in (pure, replaced, rho, approximate)
            ),
            LabelHistogram(low=0.0, high=2.0, bins=5, guarantee=rho),
            LabelHistogram(low=0.0, high=2.0, bins=5, guarantee=approximate),
            replace(_descent(rho), loss="squared", outputs=1, intercepts=np.ones(1), unit=0.5),
        ),
    )


def _descent(guarantee: Guarantee) -> MarginalsDescent:
    return MarginalsDescent(
        size=200,
        loss="softmax",
        outputs=2,
        centre=np.full(2, 0.5),
        spread=np.full(2, 0.6),
        limit=1.5,
        constant=1.0,
        bound=0.5,
        steps=3,
        step_size=0.01,
        guarantee=guarantee,
    )


__all__ = ["example"]
