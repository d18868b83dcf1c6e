"""What the target's side makes of releases: a classifier, by a descent, class statistics or rows.

All learners take one owner or several, each with its own question, ledger and guarantee; they ask all at
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.learner import ask_all, learn_linear
from privada.methods.linear.questions.descent import TransportDescent
from privada.methods.transport.learner.adaptation import USUAL, Adapted, Prototypes, adapt, pooled
from privada.methods.transport.learner.coupling import barycentric, extend, group_lasso
from privada.methods.transport.learner.linear_head import LinearHead, make_head
from privada.methods.transport.learner.rows import NoisyRows
from privada.methods.transport.questions.features import FeatureMap
from privada.methods.transport.questions.rows import RowRelease
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.protocol import Learner, one_round
from privada.privacy.bounds import Ball
from privada.privacy.release import Release

REG_E, REG_CL = 0.01, 0.1  # the paper's, of costs scaled to a largest value of 1


@dataclass(frozen=True, kw_only=True, eq=False)
class TransportModel:
    """A classifier of the target, with the releases that it comes from.

    Attributes
    ----------
    classes : tuple
        Labels, in the order of the columns.
    probabilities : array of shape (targets, classes)
        Of the target points themselves.
    coupling : array of shape (sources, targets)
        Sources are prototypes, one a class, or released rows; of a descent, each class's share of every
        point.
    sources, mapped : arrays
        What was transported, in components, and where it went, in the target's features.
    """

    classes: tuple[Any, ...]
    probabilities: FloatArray
    coupling: FloatArray
    sources: FloatArray
    mapped: FloatArray
    prior: FloatArray
    features: FeatureMap
    adapted: Adapted | LinearHead
    releases: tuple[Release, ...]

    @property
    def release(self) -> Release:
        """The first owner's."""
        return self.releases[0]

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Class probabilities of rows in the target's domain."""
        rows = _check.matrix(X=X, width=self.features.width)
        return self.adapted.predict_proba(self.features.spread(rows))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Most likely class of each row."""
        return np.asarray(self.classes)[self.predict_proba(X).argmax(axis=1)]

    def transform(self, Z: npt.ArrayLike) -> FloatArray:
        """Move sources that were not coupled, in components, as their nearest coupled one moved."""
        images = self.features.spread(self.mapped)
        return extend(_check.matrix(Z=Z, width=self.features.components), self.sources, images)

    def axes(self, schema: Any) -> dict[str, tuple[Any, ...]]:  # noqa: ARG002 - it knows its classes
        """Names along the lists of `to_dict`."""
        return {"prior": (tuple(map(str, self.classes)),)}

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports: labels of the target points, shares, guarantees."""
        chosen = np.asarray(self.classes, dtype=object)[self.probabilities.argmax(axis=1)]
        return {
            "labels": chosen.tolist(),
            "classes": list(self.classes),
            "prior": self.prior.tolist(),
            "guarantee": "; ".join(sorted({str(release.guarantee) for release in self.releases})),
            "stamps": sorted({stamp for release in self.releases for stamp in release.stamps}),
        }


@one_round
def learn_descent(
    questions: Mapping[str, TransportDescent],
    target: npt.ArrayLike,
    *,
    classes: tuple[Any, ...],
    features: FeatureMap,
) -> Learner[TransportModel]:
    """Ask owners for noisy logistic regressions and smooth their head over the target.

    Parameters
    ----------
    questions : mapping of owner to TransportDescent
        All asked through ``features``.
    target : array of shape (targets, features)
    classes : tuple
        Names of the classes.
    features : FeatureMap
        The public map.
    """
    points = _check.matrix(target=target, width=features.width)
    if not questions:
        raise InputError("Expected at least one owner.")
    for question in questions.values():
        if max(2, question.outputs) != len(classes):
            raise InputError(f"Expected {max(2, question.outputs)} classes, got {len(classes)}.")
        if question.transform is None or not np.array_equal(question.transform[1:, :-1], features.projection):
            raise InputError("Expected all owners to be asked with one feature map.")
    fit = yield from learn_linear(questions)
    head = make_head(fit.weights, questions.values(), features.spread(points), features)
    plan = head.probabilities.T / len(points)
    images = barycentric(plan, features.spread(points))
    return TransportModel(
        classes=tuple(classes),
        probabilities=head.probabilities,
        coupling=plan,
        sources=images,
        mapped=barycentric(plan, points),
        prior=head.probabilities.mean(axis=0),
        features=features,
        adapted=head,
        releases=fit.releases,
    )


@one_round
def learn(
    questions: Mapping[str, ClassStatistics],
    target: npt.ArrayLike,
    *,
    classes: tuple[Any, ...],
    labels: npt.NDArray[np.int64] | None = None,
) -> Learner[TransportModel]:
    """Ask owners for class statistics and adapt to the target.

    Parameters
    ----------
    questions : mapping of owner to ClassStatistics
        All with one feature map.
    target : array of shape (targets, features)
    classes : tuple
        Names of the classes.
    labels : array of int, optional
        Codes of known target labels, -1 where there is none.
    """
    features, points = _prepared(questions, target, classes)
    releases = yield from ask_all(questions)
    parts = [
        Prototypes.of(question, release)
        for question, release in zip(questions.values(), releases, strict=True)
    ]
    prototypes = pooled(parts, between=USUAL.drift * features.radius**2 / features.components)
    adapted = adapt(prototypes, features.spread(points), radius=features.radius, labels=labels)
    return _model(adapted, adapted.coupling, prototypes.means, points, classes, features, releases)


@one_round
def learn_rows(
    questions: Mapping[str, RowRelease],
    target: npt.ArrayLike,
    *,
    classes: tuple[Any, ...],
    labels: npt.NDArray[np.int64] | None = None,
    reg_e: float = REG_E,
    reg_cl: float = REG_CL,
) -> Learner[TransportModel]:
    """Ask owners for noisy rows with randomised labels, couple them with the target, and adapt.

    The coupling is group-sparse by the most likely class; class points are means of mapped rows, weighted by
    what the randomised labels make likely; then as `learn`.
    """
    features, points = _prepared(questions, target, classes)
    releases = yield from ask_all(questions)
    batches = [
        batch
        for question, release in zip(questions.values(), releases, strict=True)
        for batch in NoisyRows.of(question, release)
    ]
    rows = np.concatenate([batch.rows for batch in batches])
    if any(batch.weights is None for batch in batches):
        raise InputError("Expected questions with labels: a classifier needs them.")
    weights = np.concatenate([batch.weights for batch in batches if batch.weights is not None])
    projected = features.spread(points)
    # group-lasso coupling on costs without their row constants; no mass between different known labels
    cost = np.concatenate([batch.plan_cost(projected) for batch in batches])
    cost = cost - cost.min(axis=1, keepdims=True)
    cost /= max(float(cost.max()), 1e-300)
    likely = weights.argmax(axis=1)
    if labels is not None:
        for code in set(labels[labels >= 0].tolist()):
            cost[np.ix_(likely != code, labels == code)] += 10.0  # forbidden, and never infeasible
    plan = group_lasso(cost, likely, reg_e=reg_e, reg_cl=reg_cl)
    images = barycentric(plan, projected)
    counts = np.maximum(weights.sum(axis=0), 1e-9)
    means = Ball(radius=features.radius).clip((weights.T @ images) / counts[:, None])
    variances = float(images.var(axis=0).mean()) / counts
    prototypes = Prototypes(means=means, variances=variances, counts=counts)
    adapted = adapt(prototypes, projected, radius=features.radius, labels=labels)
    return _model(adapted, plan, rows, points, classes, features, releases)


def _model(
    adapted: Adapted,
    plan: FloatArray,
    sources: FloatArray,
    points: FloatArray,
    classes: tuple[Any, ...],
    features: FeatureMap,
    releases: tuple[Release, ...],
) -> TransportModel:
    return TransportModel(
        classes=tuple(classes),
        probabilities=adapted.probabilities,
        coupling=plan,
        sources=sources,
        mapped=barycentric(plan, points),
        prior=adapted.prior,
        features=features,
        adapted=adapted,
        releases=releases,
    )


def _prepared(
    questions: Mapping[str, Any], target: npt.ArrayLike, classes: tuple[Any, ...]
) -> tuple[FeatureMap, FloatArray]:
    """One map for all owners, and the public target."""
    if not questions:
        raise InputError("Expected at least one owner.")
    first = next(iter(questions.values()))
    features: FeatureMap = first.features
    for question in questions.values():
        if question.n_classes is None:
            raise InputError("Expected questions with labels: a classifier needs them.")
        if question.n_classes != len(classes):
            raise InputError(f"Expected {question.n_classes} classes, got {len(classes)}.")
        if any(not np.array_equal(a, b) for a, b in zip(_key(question), _key(first), strict=True)):
            raise InputError("Expected all owners to be asked with one feature map.")
    return features, _check.matrix(target=target, width=features.width)


def _key(question: Any) -> tuple[Any, ...]:
    features = question.features
    return features.projection, features.centre, features.radius, features.rescale


__all__ = ["TransportModel", "learn", "learn_descent", "learn_rows"]
