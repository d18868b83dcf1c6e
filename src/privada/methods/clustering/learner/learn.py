"""Choose a question, ask it, and choose k target points that serve the target best.

*The default question* follows from public quantities alone. What counts is how far apart k centres of the
target are: a source point that is much farther away than that covers nothing, and one need not know where it
is any finer than a fraction of it. So the resolution follows from the cost of clustering the
target alone, which is public; the number of cells in many dimensions follows from
how many rows a cell must hold to be seen through its noise.

*Forecasts* are made of public quantities and of the release alone. Their constants were fitted to outcomes on
tables and generated sets (``docs/measurements/clustering.md``): a law of few numbers, and a band that holds
four outcomes of five.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.clustering.learner.bounds import CostBound, LowerBound, cost_bound, lower_bound
from privada.methods.clustering.learner.medoids import expected_medoids, medoids, source_distances
from privada.methods.clustering.learner.source import Fixed, RadiusEstimate, estimate_radius, posterior
from privada.methods.clustering.questions.means import SourceRadius, noise_budget
from privada.methods.clustering.questions.multiscale import GridPyramid, LocalMeans
from privada.methods.forecast import Forecast
from privada.parties.protocol import AskOwner, Inquiry, Learner
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Lattice
from privada.privacy.relation import Relation
from privada.privacy.release import Question, Release

FEW_FEATURES = 3  # up to here a grid has few enough cells
LEVELS = 3
MOST_CELLS = 2**20
SHELLS = (0.75, 1.25, 2.0, 3.0, 6.0)  # of the median distance of target points to their cell
CELL_DIVISOR = 2.5  # of the root of size times budget: each cell then holds more rows than noise can hide

BASELINE = "choosing by the public target alone"
LEVEL, PER_FEATURE, PER_LOG_SIGNAL = -0.01, 0.20, -0.076  # of the logarithm of the ratio
SPREAD, SPREAD_PER_FEATURE = 0.015, 0.22  # half the band, of the logarithm
GUESSED_SIZE = 400  # of a source whose size is not announced, at least

# True cost over the posterior's mean cost: its median, and what four outcomes of five lie between.
CORRECTIONS: dict[type[Question], tuple[float, float, float]] = {
    GridPyramid: (0.80, 0.55, 1.00),
    LocalMeans: (0.96, 0.50, 1.10),
}


def default_question(
    target: FloatArray,
    *,
    n_centers: int,
    guarantee: Guarantee,
    radius: float,
    source_size: int | None = None,
    salt: str = "",
) -> Question:
    """The question that suits a target best, by public quantities alone.

    Parameters
    ----------
    target : array of shape (n, d)
        Public target, inside the public ball.
    n_centers : int
        How many centres will be chosen.
    guarantee : Guarantee
        What may be spent.
    radius : float
        Radius of the public ball around 0.
    source_size : int, optional
        Size of the source if its owner announced one; by default the target's size.
    salt : str, default=""
        Tells apart two runs.
    """
    target = _check.matrix(target=target)
    _check.positive(radius=radius)
    if target.shape[1] <= FEW_FEATURES:
        width = target.shape[1]
        finest = math.ceil(math.log2(2 * radius / measure_scale(target, n_centers)))
        finest = min(max(finest, LEVELS), int(math.log2(MOST_CELLS) / width))
        levels = tuple(range(finest - LEVELS + 1, finest + 1))
        return GridPyramid(levels=levels, domain=radius, width=width, guarantee=guarantee, salt=salt)
    # A replaced row moves two cells, so it is seen as well as at half of the budget.
    power = noise_budget(guarantee) / (1.0 if guarantee.relation is Relation.ADD_REMOVE else 2.0)
    n_cells = max(round(math.sqrt((source_size or len(target)) * power) / CELL_DIVISOR), 4)
    cells, typical = _place_cells(target, min(n_cells, len(target), 400))
    return LocalMeans(
        cells=cells,
        shells=np.asarray(SHELLS) * typical,
        domain=radius,
        moments="pooled",
        guarantee=guarantee,
        salt=salt,
    )


def cover(target: FloatArray, radius: float) -> FloatArray:
    """The paper's coreset: few target points, one of them within ``radius`` of each; 0 keeps all that differ.

    >>> cover(np.array([[0.0], [0.1], [0.2], [1.0]]), 0.2).tolist()
    [[0.0], [1.0]]
    """
    if radius == 0:
        return np.unique(target, axis=0)
    chosen = [0]
    near = np.linalg.norm(target - target[0], axis=1)
    while near.max() > radius:
        # The farthest point comes next: no two chosen ones are then within the radius of each other.
        chosen.append(int(near.argmax()))
        near = np.minimum(near, np.linalg.norm(target - target[chosen[-1]], axis=1))
    return np.asarray(target[chosen])


def measure_scale(target: FloatArray, n_centers: int) -> float:
    """Mean distance of the target to its own ``n_centers`` medoids: public, the size of what matters."""
    k = min(max(n_centers, 1), len(target))
    return max(medoids(target, k, random_state=0).cost, 1e-9)


def _place_cells(target: FloatArray, k: int) -> tuple[FloatArray, float]:
    """Public k-means centres of the target, and the median distance to them."""
    from sklearn.cluster import KMeans

    distinct = len(np.unique(target, axis=0))
    means = KMeans(min(k, distinct), n_init=1, random_state=0).fit(target)
    gaps = np.linalg.norm(target - means.cluster_centers_[means.labels_], axis=1)
    typical = float(np.median(gaps[gaps > 0])) if np.any(gaps > 0) else 1e-3
    return np.asarray(means.cluster_centers_, dtype=np.float64), typical


def forecast_gain(question: Question, *, width: int, size: int) -> Forecast:
    """Expected cost of the choice over that of choosing by the public target alone; nothing is spent.

    Parameters
    ----------
    question : Question
        What would be asked.
    width : int
        Number of features.
    size : int
        Of the source, as announced, or a guess.

    Notes
    -----
    The more rows there are for each standard deviation of the noise on a count, and the fewer features, the
    more a release tells. How much the source can help at all depends on where it is, which
    nobody knows before.
    """
    draw = next(iter(question.plan.draws.values()))
    deviation = math.sqrt(draw.variance) if isinstance(draw, Lattice) else 1.0
    signal = max(_check.count(size=size) / deviation, 1.0)
    middle = LEVEL + (PER_FEATURE + PER_LOG_SIGNAL * math.log(signal)) / _check.count(width=width)
    half = SPREAD + SPREAD_PER_FEATURE / width
    return Forecast(
        ratio=math.exp(middle), low=math.exp(middle - half), high=math.exp(middle + half), beside=BASELINE
    )


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """Expected cost on the source that was not seen, given the release.

    Attributes
    ----------
    cost : float
    band : pair of float, or None
        Holds four outcomes of five; None for questions for which that was not measured.
    """

    cost: float
    band: tuple[float, float] | None


def estimate_cost(question: Question, posterior_cost: float, *, most: float) -> CostEstimate:
    """Correct the mean cost over plausible sources by how far such means were off elsewhere.

    Parameters
    ----------
    question : Question
    posterior_cost : float
        Mean cost over plausible sources. Its sources are smoother than real ones, so it is mostly too high.
    most : float
        What the choice costs if the source helps nobody: no cost is larger.
    """
    if type(question) not in CORRECTIONS:
        return CostEstimate(cost=posterior_cost, band=None)
    middle, low, high = (min(factor * posterior_cost, most) for factor in CORRECTIONS[type(question)])
    return CostEstimate(cost=middle, band=(low, high))


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
        The error of every method with this guarantee on some data set of this size.
    question, release : Question, Release
        What was asked, and the answer that the choice was made from.
    releases : tuple of Release
        With that of Δᵗ(S), if it was asked for.
    guarantee : Guarantee
        Of all releases together.
    """

    indices: IntArray
    centers: FloatArray
    cost: float
    cost_band: tuple[float, float] | None
    source: FloatArray
    bound: CostBound
    unavoidable: LowerBound
    question: Question
    release: Release
    releases: tuple[Release, ...]
    guarantee: Guarantee

    def axes(self, schema: Any) -> dict[str, tuple[Any, ...]]:
        """Names along the lists of `to_dict`."""
        points = [f"target row {index}" for index in self.indices]
        return {"centers": (points, schema.features), "cost_band": (("low", "high"),)}

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.guarantee),
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
    # Questions name the public ball ``domain`` or, if they clip rows to it, ``radius``.
    ball = getattr(question, "domain", None) or question.radius  # type: ignore[attr-defined]
    n, width = points.shape
    return Choice(
        indices=solution.indices,
        centers=centers,
        cost=estimate.cost,
        cost_band=estimate.band,
        source=sources[0],
        bound=cost_bound(points, centers, question, release, radius=radius, confidence=confidence),
        unavoidable=lower_bound(
            release.guarantee, n_centers=n_centers, n_targets=n, radius=ball, width=width
        ),
        question=question,
        release=release,
        releases=(release,) if radius is None else (release, radius.release),
        guarantee=release.guarantee,
    )


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
    """Ask one owner once, and once more for Δᵗ(S) if ``radius`` asks for it, and choose."""
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
    return Inquiry(tuple(AskOwner(owner, ask) for ask in questions), ask_and_choose)


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


__all__ = [
    "Choice",
    "CostEstimate",
    "choose",
    "default_question",
    "estimate_cost",
    "forecast_gain",
    "learn",
]
