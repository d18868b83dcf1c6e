"""The row of transport in ``privada demo``: digits of one hand read by labels of another."""

from __future__ import annotations

from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada.methods.example import DemoRow
from privada.methods.pictures import Picture, Plane, Points
from privada.methods.transport.learner.adaptation import Prototypes, adapt
from privada.methods.transport.learner.default import default_question
from privada.methods.transport.learner.learn import TransportModel, learn
from privada.methods.transport.questions.features import FeatureMap
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import ApproxDP
from privada.privacy.relation import Relation

DIGITS = tuple(range(10))
EPSILON = 1.0


def demo(seed: int) -> DemoRow:
    """Read faint, smeared digits by class statistics of plain ones that nobody may look at."""
    (X, y), (target, truth) = _domains(seed)
    guarantee = ApproxDP(epsilon=EPSILON, delta=1 / (10 * len(X)), relation=Relation.REPLACE_ONE)
    label = Category(name="digit", values=DIGITS)
    schema = Schema.of_numbers(bounds=(0.0, 16.0), width=X.shape[1], size=len(X), label=label)
    owner = Owner(X, y=y, schema=schema, dataset="digits", budget=guarantee, accounting="gaussian")
    question = default_question(target, rescale="root", n_classes=len(DIGITS), guarantee=guarantee)
    model = run(learn({"archive": question}, target, classes=DIGITS), {"archive": owner})
    return DemoRow(
        method="transport",
        title="read faint digits by an archive's plain ones",
        holders=(
            f"An archive holds {len(X)} digits with their labels; "
            f"the learner holds {len(target)} faint, smeared ones without."
        ),
        guarantee=model.release.guarantee,
        score="accuracy (%) on the learner's digits",
        without=100 / len(DIGITS),
        ours=float(100 * (model.probabilities.argmax(axis=1) == truth).mean()),
        clear=_in_the_clear(question.features, X, y, target, truth),
        ledger=owner.ledger.export(),
        stamps=model.release.stamps,
        surprise=(
            "Both start at class means of the archive's plain digits, exact or noisy, and then follow the "
            "learner's own faint ones. The exact means are of another domain, so they are not the best "
            "start; over five seeds the two differed by up to about three points, in both directions."
        ),
        picture=_before_and_after(model, target),
    )


def _before_and_after(model: TransportModel, target: FloatArray) -> Picture:
    points = model.features.spread(target)
    centre = points.mean(axis=0)
    axes = np.linalg.svd(points - centre, full_matrices=False)[2][:2].T
    names = [str(digit) for digit in model.classes]

    def plane(title: str, classes: FloatArray) -> Plane:
        layers = (
            Points(name="faint digits (the learner's)", at=(points - centre) @ axes),
            Points(name="classes of the archive", at=(classes - centre) @ axes, role="result", names=names),
        )
        return Plane(title=title, layers=layers)

    caption = (
        "The two directions in which the learner's digits differ most. The archive released one noisy mean "
        "for each class, and no digit; transport moves each to the faint digits that belong to it."
    )
    after = model.features.spread(model.mapped)
    return Picture(caption=caption, parts=(plane("Before", model.sources), plane("After transport", after)))


def _domains(seed: int) -> tuple[tuple[FloatArray, Any], tuple[FloatArray, Any]]:
    """Plain digits, and others smeared by half a pixel, at half the ink."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    source, target = order[:1000], order[1000:]
    images = X[target].reshape(-1, 8, 8)
    smeared = (images + np.roll(images, 1, axis=2)).reshape(-1, 64) / 4
    return (X[source], y[source]), (smeared, y[target])


def _in_the_clear(features: FeatureMap, X: FloatArray, y: Any, target: FloatArray, truth: Any) -> float:
    """The same adaptation by exact class means, on data that everyone has."""
    rows = features.apply(X)
    means = np.array([rows[y == digit].mean(axis=0) for digit in DIGITS])
    counts = np.bincount(y, minlength=len(DIGITS)).astype(np.float64)
    exact = Prototypes(means=means, variances=np.zeros(len(DIGITS)), counts=counts)
    model = adapt(exact, features.spread(target), radius=features.radius)
    return float(100 * (model.probabilities.argmax(axis=1) == truth).mean())


__all__ = ["demo"]
