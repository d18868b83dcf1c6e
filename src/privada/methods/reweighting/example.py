"""A small complete case of reweighting, generated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np

from privada._arrays import FloatArray
from privada.methods.example import Case, Example
from privada.methods.linear.questions.descent import ReweightingDescent
from privada.methods.linear.questions.features import PublicFeatures
from privada.methods.method import Public
from privada.methods.reweighting.estimator import ReweightedRegressor
from privada.methods.reweighting.learner.ladder import AdaptedModel, Ladder, plan
from privada.methods.reweighting.learner.public_models import fit_source
from privada.methods.reweighting.method import Reweighting
from privada.methods.reweighting.questions.adaptation import ConvexAdaptation, NonconvexAdaptation
from privada.methods.reweighting.questions.discrepancy import Discrepancy, FiniteDiscrepancy
from privada.methods.reweighting.questions.module import ModuleAdaptation
from privada.methods.reweighting.questions.problem import Penalties
from privada.methods.reweighting.questions.supremum import moments
from privada.parties.protocol import Inquiry
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.relation import Relation
from privada.privacy.release import Question

SIZE, ALPHA = 80, 0.3
APPROXIMATE = ApproxDP(epsilon=2.0, delta=1e-5, relation=Relation.REPLACE_ONE)


def domains() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """A public source and a private target of two features in [-1, 1]."""
    public = np.random.default_rng(13)
    source, target = public.uniform(-1, 1, size=(120, 2)), public.uniform(-1, 1, size=(SIZE, 2))
    return source, source @ [0.5, 0.1], target, target @ [0.5, -0.4]


def example() -> Example:
    """All questions, under every guarantee that they keep; classes are in further cases."""
    source, labels, target, answers = domains()
    return Example(
        schema=_schema(),
        data={"data": target, "y": answers},
        questions=tuple(_questions(source, labels)),
        inquiry=_inquiry,
        estimator=lambda seed: ReweightedRegressor(
            epsilon=APPROXIMATE.epsilon,
            delta=APPROXIMATE.delta,
            bounds=(-1.0, 1.0),
            label_bounds=(-1.0, 1.0),
            random_state=0,
            insecure_seed=seed,
        ),
        fit_more={"Xs": source, "ys": labels},
        further_cases=(_classes(2), _classes(3)),
    )


def _classes(n_classes: int) -> Case:
    """The same rows with a class to predict: two have logistic loss, more have softmax loss."""
    source, labels, target, answers = domains()
    inner = np.linspace(-1, 1, n_classes + 1)[1:-1]
    codes = np.searchsorted(inner, labels)
    outputs = 1 if n_classes == 2 else n_classes
    return Case(
        schema=Schema.of_numbers(
            bounds=(-1.0, 1.0),
            width=2,
            size=SIZE,
            label=Category(name="label", values=tuple(range(n_classes))),
        ),
        data={"data": target, "y": np.searchsorted(inner, answers)},
        questions=(
            *(
                NonconvexAdaptation(
                    size=SIZE,
                    source=source,
                    source_labels=codes.astype(np.float64),
                    penalties=Penalties(alpha=ALPHA, kappa2=0.1),
                    A=1.0,
                    r=1.0,
                    steps=3,
                    n_classes=n_classes,
                    guarantee=guarantee,
                )
                for guarantee in (APPROXIMATE, ZCDP(rho=0.3, relation=Relation.REPLACE_ONE))
            ),
            ReweightingDescent(
                size=SIZE,
                loss="logistic" if n_classes == 2 else "softmax",
                outputs=outputs,
                centre=np.zeros(2),
                spread=np.ones(2),
                limit=0.9,
                constant=0.5,
                models=_log_odds(n_classes),
                model_weights=0.8 * np.eye(outputs),
                threshold=0.5,
                bound=0.4,
                steps=3,
                step_size=0.5,
                momentum=0.5,
                guarantee=ZCDP(rho=0.3, relation=Relation.ADD_REMOVE),
            ),
        ),
    )


@cache
def _log_odds(n_classes: int) -> PublicFeatures:
    """Log-odds of public models of the source."""
    source, labels, _, _ = domains()
    codes = np.searchsorted(np.linspace(-1, 1, n_classes + 1)[1:-1], labels)
    models = fit_source(source, codes, n_classes=n_classes, limits=None, base="linear").features
    return replace(models, link="log-odds")


@cache  # fits several models of the public source, and is frozen
def _inquiry(owner: str) -> Inquiry[AdaptedModel]:
    source, labels, _, _ = domains()
    return Reweighting().prepare(Public(source, labels), {owner: _schema()}, APPROXIMATE)


def _schema() -> Schema:
    return Schema.of_numbers(
        bounds=(-1.0, 1.0), width=2, size=SIZE, label=Number(name="label", low=-1.0, high=1.0)
    )


@cache  # fits several models of the public source, and is frozen
def _ladder(guarantee: Guarantee) -> Ladder:
    source, labels, _, _ = domains()
    return plan(
        source,
        labels,
        size=SIZE,
        guarantee=guarantee,
        label_bounds=(-1.0, 1.0),
        base="auto",
        random_state=0,
        salt="0",
    )


def _questions(source: FloatArray, labels: FloatArray) -> Iterator[Question]:
    rho, pure = (
        ZCDP(rho=0.3, relation=Relation.REPLACE_ONE),
        PureDP(epsilon=2.0, relation=Relation.REPLACE_ONE),
    )
    yield _descent(APPROXIMATE)
    yield _descent(rho)
    for guarantee, labelled in ((pure, True), (rho, False), (APPROXIMATE, True)):
        yield Discrepancy(
            size=SIZE,
            weights=np.zeros(2),
            transform=np.eye(2),
            shift=np.zeros(2),
            source_moments=moments(source, labels),
            radius=1.0,
            hypothesis_radius=1.0,
            labelled=labelled,
            guarantee=guarantee,
        )
    yield FiniteDiscrepancy(
        size=SIZE,
        weights=np.eye(2),
        intercepts=np.zeros(2),
        source_losses=np.array([0.2, 0.3]),
        loss="squared",
        largest_loss=4.0,
        guarantee=pure,
    )
    for guarantee in (APPROXIMATE, rho):
        yield ConvexAdaptation(
            size=SIZE,
            source=source,
            source_labels=labels,
            penalties=Penalties(alpha=ALPHA, kappa2=0.1),
            A=1.0,
            r=1.0,
            steps=3,
            guarantee=guarantee,
        )
    for guarantee in (APPROXIMATE, rho):
        ladder = _ladder(guarantee)
        yield ladder.mixture()
        yield ladder.correction(ladder.start(), guarantee)
        yield replace(ladder.descent(ladder.start(), guarantee), steps=2)
    if find_spec("torch") is not None:
        layers = [
            {"layer": "Linear", "in_features": 2, "out_features": 2, "bias": True},
            {"layer": "Tanh"},
            {"layer": "Linear", "in_features": 2, "out_features": 1, "bias": False},
        ]
        yield ModuleAdaptation(
            size=SIZE,
            network={"layers": layers},
            start=np.array([0.5, -0.5, 0.5, 0.5, 0.0, 0.0, 1.0, -1.0]),
            source=source,
            source_labels=labels,
            mean=np.zeros(2),
            scale=np.ones(2),
            penalties=Penalties(alpha=ALPHA, kappa2=0.1),
            loss="squared",
            clip=0.5,
            A=2.0,
            steps=3,
            guarantee=APPROXIMATE,
        )


def _descent(guarantee: Guarantee) -> ReweightingDescent:
    return ReweightingDescent(
        size=SIZE,
        loss="squared",
        centre=np.zeros(2),
        spread=np.ones(2),
        limit=1.0,
        constant=1.0,
        transform=np.array([[0.3, 0.1], [1.5, 0.0], [0.0, 1.5]]),
        intercepts=np.array([0.1]),
        bound=0.75,
        steps=4,
        step_size=0.07,
        decay=0.4,
        guarantee=guarantee,
    )


__all__ = ["domains", "example"]
