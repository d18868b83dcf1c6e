"""From noisy descents to a classifier of the target: a linear head, smoothed where the target supports it.

Everything here is post-processing of releases and of the public target.

1. *Head*: the mean of each descent's later half; of several owners, each by its rows times its μ.
2. *Smoothing*: class probabilities of the target are smoothed over its neighbour graph in standardised
   columns. It is kept only if the smoothed probabilities correlate with the head's own by at least
   `FAITHFUL`: where neighbours are no neighbours in what the head looks at (many unrelated columns),
   smoothing would undo it.

How this was chosen: ``docs/measurements/transport.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.linear.learner.trajectory import averaged
from privada.methods.transport.learner.graph import KEPT, NeighbourGraph
from privada.methods.transport.questions.descent import CONSTANT, Descent
from privada.methods.transport.questions.features import FeatureMap
from privada.privacy.bounds import Ball
from privada.privacy.release import Release

FloatArray = npt.NDArray[np.float64]
FAITHFUL = 0.85


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
    smoothed = graph.smooth(opinions)
    faithful = correlation(opinions, smoothed) >= FAITHFUL
    return LinearHead(
        weights=weights,
        radius=features.radius,
        probabilities=smoothed if faithful else opinions,
        kept=KEPT if faithful else 0.0,
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


def correlation(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    """Of two tables of probabilities about their columns' means; 0 where one is constant.

    >>> table = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> round(correlation(table, table), 9), correlation(table, np.full((2, 2), 0.5))
    (1.0, 0.0)
    """
    one, other = one - one.mean(axis=0), other - other.mean(axis=0)
    size = math.sqrt(float(np.sum(one**2) * np.sum(other**2)))
    return float(np.sum(one * other)) / size if size > 0 else 0.0


__all__ = ["LinearHead", "fit_head", "head_opinions", "pooled_weights"]
