"""What is made of a sanitised source: k target points that serve the target best. All post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.clustering.learner.cost_bound import CostBound, cost_bound
from privada.methods.clustering.learner.forecast import estimate_cost
from privada.methods.clustering.learner.lower_bound import LowerBound, lower_bound
from privada.methods.clustering.learner.solver.expected import expected_medoids
from privada.methods.clustering.learner.solver.objective import source_distances
from privada.methods.clustering.learner.source.posterior import (
    Fixed,
    LocalPosterior,
    Posterior,
    PyramidPosterior,
)
from privada.methods.clustering.learner.source.sanitised import RadiusEstimate, estimate_radius, sanitise
from privada.methods.clustering.questions.local import LocalMeans
from privada.methods.clustering.questions.neighbours import SourceRadius
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.parties.protocol import AskOwner, Inquiry, Learner, only_releases
from privada.privacy.release import Question, Release


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The chosen target points.

    Attributes
    ----------
    indices : array of shape (k,)
        Which target points.
    centers : array of shape (k, d)
        The points themselves.
    cost : float
        Expected mean distance of the target to the nearest of source and chosen, given the release.
    cost_band : pair of float, or None
        Holds the true cost in four cases of five.
    source : array of shape (m, d)
        One synthetic source that the release makes plausible, to look at.
    bound : CostBound
        What the choice can cost at most on the true source.
    unavoidable : LowerBound
        What every method with this guarantee errs by on some data set of this size.
    release : Release
        What was learnt from.
    """

    indices: IntArray
    centers: FloatArray
    cost: float
    cost_band: tuple[float, float] | None
    source: FloatArray
    bound: CostBound
    unavoidable: LowerBound
    release: Release

    def axes(self, schema: Any) -> dict[str, tuple[Any, ...]]:
        """Names along the lists of `to_dict`."""
        points = [f"target row {index}" for index in self.indices]
        return {"centers": (points, schema.features), "cost_band": (("low", "high"),)}

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.release.guarantee),
            "stamps": list(self.release.stamps),
            "indices": self.indices.tolist(),
            "centers": self.centers.tolist(),
            "expected_cost": self.cost,
            "cost_band": None if self.cost_band is None else list(self.cost_band),
            "cost_bound": self.bound.cost if math.isfinite(self.bound.cost) else None,
            "confidence": self.bound.confidence,
            "worst_case_error": self.unavoidable.error,
            "worst_case_error_probability": self.unavoidable.probability,
        }


def posterior(question: Question, release: Release, target: FloatArray) -> Posterior:
    """Plausible sources, given the answer to any question of this room."""
    only_releases(release)
    if isinstance(question, GridPyramid):
        return PyramidPosterior(question, release)
    if isinstance(question, LocalMeans):
        return LocalPosterior(question, release, target)
    return Fixed(sanitise(question, release).points)


def choose(
    target: npt.ArrayLike,
    question: Question,
    release: Release,
    *,
    n_centers: int,
    n_draws: int = 32,
    radius: RadiusEstimate | None = None,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> Choice:
    """Choose target points that cost least on average over plausible sources."""
    points = check_choice(target, n_centers=n_centers, n_draws=n_draws)
    rng = np.random.default_rng(random_state)
    plausible = posterior(question, release, points)
    sources = [plausible.draw(rng) for _ in range(1 if isinstance(plausible, Fixed) else n_draws)]
    caps = np.stack([source_distances(points, source) for source in sources])
    solution = expected_medoids(points, n_centers, caps=caps, random_state=random_state)
    centers = points[solution.indices]
    alone = source_distances(points, centers).mean() if len(centers) else math.inf
    estimate = estimate_cost(question, solution.cost, most=float(alone))
    return Choice(
        indices=solution.indices,
        centers=centers,
        cost=estimate.cost,
        cost_band=estimate.band,
        source=sources[0],
        bound=cost_bound(points, centers, question, release, radius=radius, confidence=confidence),
        unavoidable=_unavoidable(question, release, points, n_centers),
        release=release,
    )


def _unavoidable(question: Question, release: Release, target: FloatArray, n_centers: int) -> LowerBound:
    """What any method with the release's guarantee errs by on some target of this size in the same ball."""
    radius = getattr(question, "domain", None) or question.radius  # type: ignore[attr-defined]
    n, width = target.shape
    return lower_bound(release.guarantee, n_centers=n_centers, n_targets=n, radius=radius, width=width)


def learn(
    owner: str,
    target: npt.ArrayLike,
    question: Question,
    *,
    n_centers: int,
    n_draws: int = 32,
    radius: SourceRadius | None = None,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> Inquiry[Choice]:
    """Ask one owner once, and once more for Δᵗ(S) if a bound by it is wanted, and choose."""
    check_choice(target, n_centers=n_centers, n_draws=n_draws)

    def ask_and_choose() -> Learner[Choice]:
        release = yield AskOwner(owner, question)
        estimate = estimate_radius(radius, (yield AskOwner(owner, radius))) if radius is not None else None
        return choose(
            target,
            question,
            release,
            n_centers=n_centers,
            n_draws=n_draws,
            radius=estimate,
            confidence=confidence,
            random_state=random_state,
        )

    questions = [question] if radius is None else [question, radius]
    return Inquiry(tuple(AskOwner(owner, question) for question in questions), ask_and_choose)


def check_choice(target: npt.ArrayLike, *, n_centers: int, n_draws: int = 1) -> npt.NDArray[np.float64]:
    """The target points, if so many of them can be chosen; call it before anything is asked."""
    points = _check.matrix(target=target)
    _check.count(least=0, n_centers=n_centers)
    if n_centers > len(points):
        raise InputError(
            f"Expected n_centers to be at most the {len(points)} target points, got {n_centers}."
        )
    _check.count(n_draws=n_draws)
    return points


__all__ = ["Choice", "check_choice", "choose", "learn", "posterior"]
