"""A small complete case of evaluation, generated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privada.methods.evaluation.estimator import PrivateEvaluator
from privada.methods.evaluation.method import Evaluation
from privada.methods.evaluation.questions import ErrorMoments, OutcomeCounts, even_edges
from privada.methods.example import Case, Example
from privada.methods.hypotheses.forms import Constant, linear
from privada.methods.method import Public
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.relation import Relation

SLOPE = linear([[6.0], [6.0]], [-5.5])


def example() -> Example:
    """Two features in the unit square, two classes, 200 rows; questions of every kind of guarantee."""
    rng = np.random.default_rng(13)
    X = rng.uniform(size=(200, 2))
    y = (X.sum(axis=1) + rng.normal(0, 0.2, size=200) > 1).astype(int)
    schema = Schema.of_numbers(
        bounds=(0.0, 1.0), width=2, size=200, label=Category(name="label", values=(0, 1))
    )
    method = Evaluation(model=SLOPE, bins=4)
    return Example(
        schema=schema,
        data={"data": X, "y": y},
        questions=_questions(),
        inquiry=lambda owner: method.prepare(
            Public(), {owner: schema}, PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE)
        ),
        estimator=lambda seed: PrivateEvaluator(
            SLOPE, classes=(0, 1), bounds=(0.0, 1.0), bins=4, epsilon=1.0, insecure_seed=seed
        ),
        further_cases=(_numbers(X, rng.normal(X.sum(axis=1), 0.2)),),
    )


def _numbers(X: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> Case:
    """The same rows with a number to predict, and questions about a regressor's errors."""
    guarantees = (
        PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE),
        PureDP(epsilon=1.0, relation=Relation.REPLACE_ONE),
        ZCDP(rho=0.1, relation=Relation.ADD_REMOVE),
        ApproxDP(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE),
    )
    return Case(
        schema=Schema.of_numbers(
            bounds=(0.0, 1.0), width=2, size=len(X), label=Number(name="label", low=0.0, high=2.0)
        ),
        data={"data": X, "y": y.clip(0.0, 2.0)},
        questions=tuple(
            ErrorMoments(hypothesis=linear([[1.0], [1.0]], [-0.1]), largest=1.0, guarantee=guarantee)
            for guarantee in guarantees
        ),
    )


def ask(guarantee: Guarantee) -> OutcomeCounts:
    """The question of the example, for some guarantee."""
    return OutcomeCounts(
        hypothesis=SLOPE, n_classes=2, edges=even_edges(4), link="softmax", guarantee=guarantee
    )


def _questions() -> tuple[OutcomeCounts, ...]:
    replaced = Relation.REPLACE_ONE
    return (
        ask(PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE)),
        ask(PureDP(epsilon=1.0, relation=replaced)),
        ask(ZCDP(rho=0.1, relation=Relation.ADD_REMOVE)),
        ask(ApproxDP(epsilon=1.0, delta=1e-5, relation=replaced)),
        OutcomeCounts(
            hypothesis=Constant(code=1),
            n_classes=2,
            guarantee=PureDP(epsilon=0.5, relation=Relation.ADD_REMOVE),
        ),
        OutcomeCounts(
            hypothesis=SLOPE,
            n_classes=2,
            link="softmax",
            guarantee=ApproxDP(epsilon=0.5, delta=1e-6, relation=Relation.ADD_REMOVE),
        ),
    )


__all__ = ["example"]
