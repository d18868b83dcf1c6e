"""From prototypes to a classifier of the target: transport, prior, propagation, refinement.

Everything here is post-processing of releases and of the public target.

1. *Transport*: entropic coupling between prototypes and target points; its columns are opinions.
2. *Propagation*: opinions are smoothed over the target's neighbour graph.
   *Cohesion* says how much more often neighbours agree than chance would have it (Cohen's kappa on the
   graph's edges). Under `COHESIVE` classes are not clusters of the target: smoothing is light and step 3 is
   left out.
3. *Refinement*: each class's point becomes a compromise between its prototype, with the noise that is known
of
   it, and the mean of the target points that were given to it; class shares are those that the target shows;
   opinions and smoothing again, a few rounds.
4. *Head*: a new point has the opinion of the last round's class points, smoothed over its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.methods.transport.coupling import entropic
from privada.methods.transport.graph import KEPT, NeighbourGraph
from privada.methods.transport.prototypes import Prototypes
from privada.privacy.bounds import Ball

FloatArray = npt.NDArray[np.float64]

# On generated Gaussian mixtures refinement gains where cohesion is near 0.9 and loses where it is near 0.5.
COHESIVE = 0.8
LIGHT = 0.5  # α without clusters
REGULARISATION = 0.05  # of the median cost
ROUNDS = 3
SHARPENED = 2.0  # exponent on smoothed opinions before they weigh target points
DRIFT = 0.1  # of R² over all components: how far a class may move between domains
TRUST = 5.0  # how much less than that the mean of its target points is off
LEAST_PRIOR = 0.02  # share of a class, before shares sum to one


@dataclass(frozen=True, kw_only=True, eq=False)
class Adapted:
    """What the target's side has learnt.

    Attributes
    ----------
    probabilities : array of shape (targets, classes)
        Of the target points themselves.
    coupling : array of shape (classes, targets)
        Transport plan between prototypes and target points; sums to one.
    anchors : array of shape (classes, components)
        Class points of the last round.
    prior : array of shape (classes,)
        Estimated share of each class in the target.
    cohesion : float
        How much more often than by chance neighbours in the target agree.
    """

    probabilities: FloatArray
    coupling: FloatArray
    anchors: FloatArray
    prior: FloatArray
    cohesion: float
    regularisation: float
    radius: float
    graph: NeighbourGraph

    def predict_proba(self, points: FloatArray) -> FloatArray:
        """Class probabilities of new points, as projected and not clipped."""
        opinions = _opinions(self._cost(points), self.prior, self.regularisation)
        return self.graph.extend(points, opinions, self.probabilities, kept=_kept(self.cohesion))

    def _cost(self, points: FloatArray) -> FloatArray:
        return squared_distances(Ball(radius=self.radius).clip(points), self.anchors)


def adapt(
    prototypes: Prototypes,
    points: FloatArray,
    *,
    radius: float,
    labels: npt.NDArray[np.int64] | None = None,
    rounds: int = ROUNDS,
    graph: NeighbourGraph | None = None,
) -> Adapted:
    """Adapt to projected, unclipped target points; ``labels`` holds codes, or -1 where none is known."""
    graph = NeighbourGraph.of(points) if graph is None else graph
    inside = Ball(radius=radius).clip(points)
    forbidden = _forbidden(labels, len(points), len(prototypes.means))
    prototypes = _informed(prototypes, inside, forbidden, radius)
    cost = squared_distances(inside, prototypes.means)
    regularisation = REGULARISATION * max(float(np.median(cost)), 1e-12 * radius**2)
    n_classes = len(prototypes.means)
    prior = np.full(n_classes, 1 / n_classes)
    plan = entropic(np.where(forbidden, np.inf, cost).T, prior, None, regularisation).T
    opinions, anchors = _clamped(plan * len(points), forbidden), prototypes.means
    smoothed = _clamped(graph.smooth(opinions), forbidden)
    cohesion = graph.cohesion(smoothed.argmax(axis=1))
    if cohesion < COHESIVE:
        smoothed, rounds = _clamped(graph.smooth(opinions, kept=LIGHT), forbidden), 0
    for _ in range(rounds):
        anchors, prior = _refined(prototypes, inside, smoothed, radius)
        opinions = _clamped(_opinions(squared_distances(inside, anchors), prior, regularisation), forbidden)
        smoothed = _clamped(graph.smooth(opinions), forbidden)
    if rounds:  # the plan that is reported has the shares that were found
        plan = entropic(np.where(forbidden, np.inf, cost).T, prior, None, regularisation).T
    return Adapted(
        probabilities=smoothed,
        coupling=plan.T,
        anchors=anchors,
        prior=prior,
        cohesion=cohesion,
        regularisation=regularisation,
        radius=radius,
        graph=graph,
    )


def _kept(cohesion: float) -> float:
    return KEPT if cohesion >= COHESIVE else LIGHT


def _informed(
    prototypes: Prototypes, inside: FloatArray, forbidden: npt.NDArray[np.bool_], radius: float
) -> Prototypes:
    """Prototypes beside the known target labels of their class, each by its precision.

    How far classes moved between the domains is read off where both are known.
    """
    known = forbidden.any(axis=1)
    if not known.any():
        return prototypes
    held = (~forbidden[known]).sum(axis=0)
    sums = (~forbidden[known]).T.astype(np.float64) @ inside[known]
    there = held > 0
    means = sums[there] / held[there, None]
    spread = float(inside.var(axis=0).mean()) / held[there]
    gap = np.mean((means - prototypes.means[there]) ** 2, axis=1) - spread - prototypes.variances[there]
    drift = max(DRIFT * radius**2 / inside.shape[1], float(gap.mean()))
    own = prototypes.variances[there] + drift
    share = (own / (own + spread))[:, None]
    moved, variances = prototypes.means.copy(), prototypes.variances.copy()
    moved[there] = share * means + (1 - share) * prototypes.means[there]
    variances[there] = own * spread / (own + spread)
    return Prototypes(means=moved, variances=variances, counts=prototypes.counts, scatter=prototypes.scatter)


def _refined(
    prototypes: Prototypes, inside: FloatArray, smoothed: FloatArray, radius: float
) -> tuple[FloatArray, FloatArray]:
    """Class points between prototype and target, each by its precision; class shares of the target."""
    weights = smoothed**SHARPENED
    weights /= weights.sum(axis=1, keepdims=True)
    held = weights.sum(axis=0)
    drift = DRIFT * radius**2 / inside.shape[1]
    there = (weights.T @ inside) / np.maximum(held, 1e-12)[:, None]
    own = prototypes.variances + drift
    theirs = drift / TRUST * (1 + 1 / np.maximum(held, 1e-12))
    share = own / (own + theirs)
    anchors = share[:, None] * there + (1 - share[:, None]) * prototypes.means
    prior = np.maximum(held / held.sum(), LEAST_PRIOR)
    return anchors, prior / prior.sum()


def _opinions(cost: FloatArray, prior: FloatArray, regularisation: float) -> FloatArray:
    scores = np.log(prior) - cost / regularisation
    scores -= scores.max(axis=1, keepdims=True)
    found = np.exp(scores)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def squared_distances(points: FloatArray, others: FloatArray) -> FloatArray:
    """Squared Euclidean distances, rows by rows."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(points, others, "sqeuclidean"))


def _forbidden(labels: npt.NDArray[np.int64] | None, n: int, n_classes: int) -> npt.NDArray[np.bool_]:
    """Where no mass may go: between a labelled target point and every other class."""
    forbidden = np.zeros((n, n_classes), dtype=np.bool_)
    if labels is None:
        return forbidden
    codes = np.asarray(labels)
    if codes.shape != (n,) or np.any(codes >= n_classes):
        raise InputError("Expected one target label a point: a class, or -1 where it is unknown.")
    at = np.flatnonzero(codes >= 0)
    forbidden[at] = True
    forbidden[at, codes[at]] = False
    return forbidden


def _clamped(opinions: FloatArray, forbidden: npt.NDArray[np.bool_]) -> FloatArray:
    """Known labels are certain."""
    known = forbidden.any(axis=1, keepdims=True)
    return np.where(known, ~forbidden, opinions)


__all__ = ["Adapted", "adapt", "squared_distances"]
