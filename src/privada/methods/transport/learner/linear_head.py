"""From noisy descents to a classifier of the target: a linear head, smoothed where it is noisy.

Everything here is post-processing of releases and of the public target.

1. *Head*: the mean of each descent's later half; of several owners, each by the square of rows times μ.
2. *Smoothing*: where noise ends the descents, class probabilities of the target are smoothed over its
   neighbour graph in standardised columns, which takes noise off. Where they went as far as their steps
   reach, the head knows more than neighbours do, and is left as it is.

How this was chosen: ``docs/measurements/transport.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray
from privada.methods.linear.learner.trajectory import averaged
from privada.methods.transport.learner.graph import KEPT, NeighbourGraph
from privada.methods.transport.questions.descent import CONSTANT, Descent
from privada.methods.transport.questions.features import FeatureMap
from privada.privacy.bounds import Ball
from privada.privacy.release import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearHead:
    """A linear classifier of projected points, and the target's graph that smooths it.

    Attributes
    ----------
    weights : array of shape (components + 1, classes)
        The last row belongs to the constant.
    radius : float
        Of the map: the constant is a share of it, and the graph is built inside its ball.
    probabilities : array of shape (targets, classes)
        Of the target points themselves.
    kept : float
        How much of a point's probabilities comes from its neighbours: 0 where smoothing is not kept.
    """

    weights: FloatArray
    radius: float
    probabilities: FloatArray
    kept: float
    graph: NeighbourGraph

    def predict_proba(self, points: FloatArray) -> FloatArray:
        """Class probabilities of new points, as projected."""
        opinions = head_opinions(self.weights, points, self.radius)
        if not self.kept:
            return opinions
        inside = Ball(radius=self.radius).clip(points)
        return self.graph.extend(inside, opinions, self.probabilities, kept=self.kept)


def fit_head(
    questions: Mapping[str, Descent], releases: list[Release], points: FloatArray, features: FeatureMap
) -> LinearHead:
    """Read the releases and smooth their head over the projected target points."""
    weights = pooled_weights(questions, releases)
    graph = NeighbourGraph.of(Ball(radius=features.radius).clip(points))
    opinions = head_opinions(weights, points, features.radius)
    noisy = all(question.ends_by_noise for question in questions.values())
    return LinearHead(
        weights=weights,
        radius=features.radius,
        probabilities=graph.smooth(opinions) if noisy else opinions,
        kept=KEPT if noisy else 0.0,
        graph=graph,
    )


def pooled_weights(questions: Mapping[str, Descent], releases: list[Release]) -> FloatArray:
    """Every descent's averaged weights, by how well it knows them: the inverse of its noise's variance."""
    precisions, found = [], []
    for question, release in zip(questions.values(), releases, strict=True):
        precisions.append((question.size * question.guarantee.gaussian_mu()) ** 2)
        found.append(_of_all_classes(averaged(question, release)))
    return np.asarray(np.average(found, axis=0, weights=precisions))


def _of_all_classes(weights: FloatArray) -> FloatArray:
    """One column for each class; the scores of two classes are opposite."""
    return np.hstack([-weights / 2, weights / 2]) if weights.shape[1] == 1 else weights


def head_opinions(weights: FloatArray, points: FloatArray, radius: float) -> FloatArray:
    """What the head alone says of projected points."""
    from scipy.special import softmax

    return np.asarray(softmax(points @ weights[:-1] + CONSTANT * radius * weights[-1], axis=1))


__all__ = ["LinearHead", "fit_head", "head_opinions", "pooled_weights"]
