"""A classifier of the target by noisy descents: a linear head, smoothed where it is noisy.

*Coordinates* are those of the public map, ``(x - c) P``, and a constant γR, where R is the root mean squared
norm of the target's own coordinates. Nothing of the rows is clipped or scaled by the rows.

1. *Head*: the mean of each descent's later half; of several owners, each by the square of rows times μ.
2. *Smoothing*: where noise ends the descents, class probabilities of the target are smoothed over its
   neighbour graph in standardised columns, which takes noise off. Where they went as far as their steps
   reach, the head knows more than neighbours do, and is left as it is.

How this was chosen: ``docs/measurements/transport.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.learner import choose_step_size
from privada.methods.linear.questions import losses, public
from privada.methods.linear.questions.descent import TransportDescent
from privada.methods.transport.learner.graph import KEPT, NeighbourGraph
from privada.methods.transport.questions.features import FeatureMap
from privada.privacy.bounds import Ball
from privada.privacy.guarantee import Guarantee

CONSTANT = 0.7  # γ, in units of R
STEPS, MOMENTUM = 30, 0.8
THRESHOLD = 0.5  # κ₁, a loss: beyond it a row pulls less than its gradient would
DRIFT = 2.0  # logits of noise that a usual row's score may have at the end


def ask_head(
    features: FeatureMap, *, size: int, n_classes: int, guarantee: Guarantee, salt: str = ""
) -> TransportDescent:
    """Ask for a logistic regression through a public map, which may not rescale rows one by one."""
    public.gaussian(guarantee, "A descent")  # its μ sets the step
    public.replaced(guarantee)
    if features.rescale != "none":
        raise InputError('Expected a map with rescale="none": a descent asks through an affine one.')
    loss = "logistic" if n_classes == 2 else "softmax"
    length = _usual_length(features)
    bound = losses.largest_pull(loss, THRESHOLD) * length
    transform = np.zeros((features.width + 1, features.components + 1))
    transform[1:, :-1] = features.projection
    transform[0, -1] = 1.0  # the constant comes last
    return TransportDescent(
        size=size,
        loss=loss,
        outputs=losses.outputs(loss, n_classes),
        centre=features.centre,
        spread=np.ones(features.width),
        limit=public.LARGEST,
        constant=CONSTANT * features.radius,
        transform=transform,
        threshold=THRESHOLD,
        bound=bound,
        steps=STEPS,
        step_size=choose_step_size(
            drift=DRIFT,
            stable=stable_step(loss, length),
            steps=STEPS,
            momentum=MOMENTUM,
            bound=bound,
            length=length,
            size=size,
            guarantee=guarantee,
        ),
        momentum=MOMENTUM,
        guarantee=guarantee,
        salt=salt,
    )


def stable_step(loss: str, length: float) -> float:
    """The longest step at which a heavy ball over rows of this length does not overshoot."""
    return (1 + MOMENTUM) / (length**2 / (4 if loss == "logistic" else 2))


def ends_by_noise(question: TransportDescent, features: FeatureMap) -> bool:
    """Whether noise, not the number of steps, says how far the descent goes."""
    return question.step_size < stable_step(question.loss, _usual_length(features)) * (1 - 1e-9)


def _usual_length(features: FeatureMap) -> float:
    """Norm of a usual row's coordinates with the constant."""
    return math.hypot(features.radius, CONSTANT * features.radius)


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


def make_head(
    weights: FloatArray, questions: Iterable[TransportDescent], points: FloatArray, features: FeatureMap
) -> LinearHead:
    """Smooth the head of pooled descents over the projected target points, if noise ended all of them."""
    if weights.shape[1] == 1:  # the scores of two classes are opposite
        weights = np.hstack([-weights / 2, weights / 2])
    graph = NeighbourGraph.of(Ball(radius=features.radius).clip(points))
    opinions = head_opinions(weights, points, features.radius)
    noisy = all(ends_by_noise(question, features) for question in questions)
    return LinearHead(
        weights=weights,
        radius=features.radius,
        probabilities=graph.smooth(opinions) if noisy else opinions,
        kept=KEPT if noisy else 0.0,
        graph=graph,
    )


def head_opinions(weights: FloatArray, points: FloatArray, radius: float) -> FloatArray:
    """What the head alone says of projected points."""
    from scipy.special import softmax

    return np.asarray(softmax(points @ weights[:-1] + CONSTANT * radius * weights[-1], axis=1))


__all__ = ["LinearHead", "ask_head", "ends_by_noise", "head_opinions", "make_head", "stable_step"]
