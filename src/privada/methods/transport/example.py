"""A small complete case of transport, generated."""

from __future__ import annotations

import numpy as np

from privada.methods.example import Example
from privada.methods.linear.questions.descent import TransportDescent
from privada.methods.transport.estimator import TransportClassifier
from privada.methods.transport.learner.default import standardised_map
from privada.methods.transport.learner.learn import learn_descent
from privada.methods.transport.learner.linear_head import ask_head
from privada.methods.transport.questions.features import FeatureMap
from privada.methods.transport.questions.rows import RowRelease
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import ZCDP, ApproxDP
from privada.privacy.relation import Relation
from privada.privacy.release import Question

SIZE, BOUNDS, CLASSES = 120, (-2.0, 2.0), (0, 1, 2)
PLACES = np.array([[-1.0, 0.2, 0.0], [1.0, 0.0, 0.3], [0.0, -1.0, -0.5]])


def example() -> Example:
    """Three classes in three features; the target is moved. Questions of every kind and relation."""
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=SIZE)
    X = PLACES[y] + rng.normal(0, 0.3, size=(SIZE, 3))
    target = PLACES[rng.integers(3, size=60)] + rng.normal(0, 0.2, size=(60, 3)) + [0.3, 0.2, -0.1]
    features = standardised_map(target)
    questions = _questions(features)
    first = questions[0]
    assert isinstance(first, TransportDescent)
    return Example(
        schema=Schema.of_numbers(
            bounds=BOUNDS, width=3, size=SIZE, label=Category(name="label", values=CLASSES)
        ),
        data={"data": X, "y": y},
        questions=questions,
        inquiry=lambda owner: learn_descent({owner: first}, target, classes=CLASSES, features=features),
        estimator=lambda seed: TransportClassifier(
            epsilon=2.0, delta=1e-4, classes=CLASSES, bounds=BOUNDS, insecure_seed=seed
        ),
        fit_more={"Xt": target},
    )


def _questions(features: FeatureMap) -> tuple[Question, ...]:
    one = ApproxDP(epsilon=2.0, delta=1e-4, relation=Relation.REPLACE_ONE)
    public = FeatureMap.random(3, 2, seed=1, radius=1.5)
    return (
        ask_head(features, size=SIZE, n_classes=3, guarantee=one),
        ClassStatistics(features=features, n_classes=3, guarantee=one),
        ClassStatistics(features=public, n_classes=3, moments=True, guarantee=one),
        ClassStatistics(
            features=public,
            n_classes=3,
            moments=True,
            guarantee=ZCDP(rho=0.2, relation=Relation.ADD_REMOVE),
        ),
        RowRelease(features=public, size=SIZE, n_classes=3, label_epsilon=1.0, guarantee=one),
        RowRelease(
            features=public,
            size=SIZE,
            attribute_width=4.0,
            guarantee=ZCDP(rho=0.5, relation=Relation.ATTRIBUTE),
        ),
        RowRelease(features=public, size=SIZE, batch_size=30, batches=2, guarantee=one),
        RowRelease(
            features=public,
            size=SIZE,
            batch_size=30,
            batches=2,
            attribute_width=4.0,
            guarantee=ApproxDP(epsilon=2.0, delta=1e-4, relation=Relation.ATTRIBUTE),
        ),
    )


__all__ = ["example"]
