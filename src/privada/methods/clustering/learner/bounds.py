"""How much a choice can cost at most on the source that was not seen, and what no private method can avoid.

**At most** (`cost_bound`, post-processing). Three bounds; the least of them is reported.

*Without the source.* A point pays at most its distance to the nearest chosen one.

*Cells that hold a row.* With probability 1 - γ no empty cell passes its threshold
(`learner.source`). A cell of side a of a pyramid that passes holds a row within
``|x - middle| + a√d/2`` of x, a shell of radius r around c one within ``|x - c| + r``.

*Δᵗ(S).* The mean distance to the t nearest rows is at least that to the nearest one, so
Δᵗ(S), asked for by `SourceRadius`, bounds the cost whatever was chosen.

*Difference* (Theorems 5.5, 5.9, 5.11 and Corollary B.1 of the paper, with constants). Let S' be the
averages of `NeighbourAverages` over a coreset, where x' stands for x, and Z the noise on an average.
Then, for all choices alike, costs on S and on S' differ by at most

    ``Δᵗ(S) + 2 mean |x - x'| + mean |Z(x')| + g√d``.

Proof: as of Lemma 5.7, a point's two costs differ by at most the larger of ``Δ(x, S)`` and
``Δ(x, s'(x'))``, both capped by the distance to what was chosen. The first is at most Δᵗ(x, S), also
if S is empty (absent rows count as the farthest possible, no nearer than a chosen point). The
average c of the t nearest of x' is, by the triangle inequality, within ``Δᵗ(x', S)`` of x', hence within
``Δᵗ(x', S) + |x - x'| <= Δᵗ(x, S) + 2|x - x'|`` of x, because Δᵗ(·, S) changes no faster than its point.
The sanitised point is within ``|Z(x')|`` of c up to truncation, g√d, and projecting it onto the
ball, which holds c, brings it no farther. (The corollary as printed has C once, for Δᵗ over the coreset.)
So a choice that is best on S' costs at most twice this difference more than the best on S.

**At least** (Observations 4.1, 4.2 and 5.8 of the paper, with what their proofs really give): lower bounds on
the error, over the worst of all data sets. All are public: they
depend on the guarantee, the ball, and how many points there are.

*Separated points.* All three proofs put points into the ball of radius r, at least s apart. The paper takes
up to (2√d)ᵈ of them at s = 1/2 and r = 1. That many do not exist from d = 7 on: balls of radius
1/4 around them would fit into one of radius 5/4, so there are at most 5ᵈ. `separation` says what is certain:
evenly spaced on a line, a simplex, a cross-polytope, and ``r/s`` to the power d in general, because a set
that no point can be added to covers the ball.

*Observation 4.2.* T holds 2N copies of x₁ and N of each of x₂ … x_{k+1}, the source copies of x_{k+2}, and
perhaps x₁. With x₁ the best choice is x₂ … x_{k+1} and every other one costs N s/n more; without x₁ this
choice costs 2N D/n, where D >= s is the distance of x₁ to its nearest, and another one at most N D/n if x₁
is the point for which D is largest (which the paper leaves out). A method that answers so with probability
p beside x₁ errs with probability 1 - p there and with at least ``e^-ε (p - δ)`` without: at least ``(1 -
δ)/(1 + e^ε)`` in one of both, never below the paper's ``(1 - 2δ)/(2 e^ε)``.

*Observation 5.8.* The paper's example has a Δᵗ(S) above s unless all points are equally far apart.
Instead: x₁ … x_{k+1} are 2s apart, and t source rows lie at distance s from each; they are no nearer to
any other. Then Δᵗ(S) is s, or a little less beside x₁, and the argument above gives N s/n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.clustering.learner.medoids import source_distances
from privada.methods.clustering.learner.source import RadiusEstimate, count_threshold, threshold
from privada.methods.clustering.questions.means import NeighbourAverages
from privada.methods.clustering.questions.multiscale import GridPyramid, LocalMeans
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import KNorm, Lattice
from privada.privacy.release import Question, Release

_EPSILONS = np.linspace(0.0, 20.0, 201)


@dataclass(frozen=True, kw_only=True)
class CostBound:
    """What is certain of the cost on the true source, as its owner clips it.

    Attributes
    ----------
    cost : float
        The chosen points cost at most this.
    difference : float or None
        Costs on the sanitised and on the true source differ by at most this, for every choice;
        known for `NeighbourAverages` with a `SourceRadius`.
    confidence : float
        Each holds with at least this probability over the noise.
    """

    cost: float
    difference: float | None
    confidence: float


def cost_bound(
    target: npt.ArrayLike,
    centers: npt.ArrayLike,
    question: Question,
    release: Release,
    *,
    radius: RadiusEstimate | None = None,
    confidence: float = 0.95,
) -> CostBound:
    """Bound the cost of chosen points on the source that a release is about.

    Parameters
    ----------
    target, centers : arrays
        All target points, and the chosen ones.
    question, release
        The question, and its answer.
    radius : RadiusEstimate, optional
        An estimate of Δᵗ(S) over the same target; half of the risk is then its own.
    confidence : float, default=0.95
        Probability, over the noise, with which the bound holds.
    """
    T = _check.matrix(target=target)
    gamma = 1 - _check.probability(confidence=confidence)
    gamma = gamma if radius is None else gamma / 2
    alone = source_distances(T, np.asarray(centers, dtype=np.float64))
    served = np.minimum(alone, certified(question, release, T, gamma))
    far = math.inf if radius is None else radius.upper(1 - gamma)
    difference = None
    if radius is not None and isinstance(question, NeighbourAverages):
        difference = far + _bound_difference(question, T, gamma)
    return CostBound(cost=min(float(served.mean()), far), difference=difference, confidence=confidence)


def certified(question: Question, release: Release, target: FloatArray, gamma: float) -> FloatArray:
    """For each target point a distance within which there is a source row, all true but for ``gamma``.

    Infinite where nothing is certain, as for averages.
    """
    distances = np.full(len(target), np.inf)
    if isinstance(question, GridPyramid):
        counts = question.counts(release)
        cells = sum(cube.size for cube in counts.values())
        least = max(1.0, threshold(question.noise, cells=cells, gamma=gamma, width=question.width))
        for level, cube in counts.items():
            side = 2 * question.domain / 2**level
            middles = (np.argwhere(cube >= least) + 0.5) * side - question.domain
            reach = source_distances(target, middles) + side * math.sqrt(question.width) / 2
            distances = np.minimum(distances, reach)
    elif isinstance(question, LocalMeans):
        passed = release["counts"] >= count_threshold(question, gamma=gamma)
        for occupied, radius in zip(passed.T, question.shells, strict=True):
            distances = np.minimum(distances, source_distances(target, question.cells[occupied]) + radius)
    return distances


def _bound_difference(question: NeighbourAverages, target: FloatArray, gamma: float) -> float:
    """The terms of the difference other than Δᵗ(S): the coreset's, the noise's and the grid's."""
    nearest = NearestCells(centers=question.targets).assign(target)
    away = float(np.linalg.norm(target - question.targets[nearest], axis=1).mean())
    draw, numbers = question.plan.draws["sums"], question.targets.size
    if isinstance(draw, Lattice):
        each_number = draw.half_width(1 - gamma / numbers) + draw.grid.step
        noise = math.sqrt(question.width) * each_number / question.t
    else:
        from scipy.stats import gamma as lengths

        assert isinstance(draw, KNorm)
        longest = float(lengths.isf(gamma, numbers)) * draw.sensitivity / draw.budget
        # Each average counts as often as it stands for a target point.
        shares = np.bincount(nearest, minlength=len(question.targets)) / len(target)
        noise = float(np.linalg.norm(shares)) * longest / question.t
    return 2 * away + noise + question.grid.step * math.sqrt(question.width)


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """For some target and source every private method pays this much more than the best choice.

    Attributes
    ----------
    error : float
        Cost beyond that of the best choice; 0 if nothing is known.
    probability : float
        At least so often, over the method's own randomness.
    """

    error: float
    probability: float


def separation(points: int, *, radius: float, width: int) -> float:
    """How far apart so many points of a ball can certainly be.

    >>> separation(3, radius=1.0, width=1), separation(4, radius=1.0, width=2)
    (1.0, 1.4142135623730951)
    >>> separation(2**8, radius=1.0, width=8)
    0.5
    """
    count, d = _check.count(points=points), _check.count(width=width)
    r = _check.positive(radius=radius)
    if count == 1:
        return 2 * r
    distances = [r * float(count ** (-1 / d)), 2 * r / (count - 1)]  # any points, and points on a line
    if count <= 2 * d:  # a cross-polytope
        distances.append(math.sqrt(2) * r)
    if count <= d + 1:  # a simplex
        distances.append(r * math.sqrt(2 * count / (count - 1)))
    return max(distances)


def cost_sensitivity(*, n_centers: int, n_targets: int, radius: float, width: int) -> float:
    """Observation 4.1: for some target and choice one source row moves the cost by at least this.

    It does not shrink as the target grows, unlike the 2/n of clustering private points.

    >>> cost_sensitivity(n_centers=10, n_targets=1000, radius=1.0, width=8)
    1.4000714267493641
    """
    k, n = _check.count(least=0, n_centers=n_centers), _check.count(n_targets=n_targets)
    return max(0, n - k) / n * separation(k + 1, radius=radius, width=width)


def lower_bound(
    guarantee: Guarantee, *, n_centers: int, n_targets: int, radius: float, width: int
) -> LowerBound:
    """Observation 4.2: the least error of a method with this guarantee, for some target and source.

    Parameters
    ----------
    guarantee : Guarantee
        For the source.
    n_centers, n_targets : int
        How many points are chosen, and of how many.
    radius, width : float, int
        Of the ball that holds all points, and its dimension.

    Examples
    --------
    >>> from privada.privacy import PureDP
    >>> bound = lower_bound(
    ...     PureDP(epsilon=0.1, relation="add/remove"), n_centers=6, n_targets=800, radius=1.0, width=8
    ... )
    >>> round(bound.error, 3), round(bound.probability, 3)
    (0.189, 0.475)
    """
    k = _check.count(least=0, n_centers=n_centers)
    apart = separation(k + 2, radius=radius, width=width)
    return LowerBound(error=_smallest_share(k, n_targets) * apart, probability=error_probability(guarantee))


def lower_bound_beside_radius(
    guarantee: Guarantee, mean_radius: float, *, n_centers: int, n_targets: int, radius: float, width: int
) -> LowerBound:
    """Observation 5.8: the same among sources of Δᵗ(S) at most ``mean_radius``, at any t.

    >>> from privada.privacy import PureDP
    >>> bound = lower_bound_beside_radius(
    ...     PureDP(epsilon=1, relation="add/remove"), 0.08, n_centers=6, n_targets=800, radius=1.0, width=8
    ... )
    >>> bound.error, round(bound.probability, 3)
    (0.01, 0.269)
    """
    k = _check.count(least=0, n_centers=n_centers)
    apart = separation(k + 1, radius=radius, width=width) / 2
    apart = min(_check.non_negative(mean_radius=mean_radius), apart, radius)
    return LowerBound(error=_smallest_share(k, n_targets) * apart, probability=error_probability(guarantee))


def error_probability(guarantee: Guarantee) -> float:
    """``(1 - δ)/(1 + e^ε)``, the largest over all pairs that a guarantee implies.

    >>> from privada.privacy import ApproxDP
    >>> round(error_probability(ApproxDP(epsilon=0.1, delta=0.1, relation="add/remove")), 3)
    0.428
    """
    return max((1 - guarantee.delta_at(epsilon)) / (1 + math.exp(epsilon)) for epsilon in _EPSILONS.tolist())


def _smallest_share(n_centers: int, n_targets: int) -> float:
    """Share of the target at one of k + 1 places, one of which holds at least two shares."""
    n = _check.count(n_targets=n_targets)
    return n // (n_centers + 2) / n if n_centers else 0.0


__all__ = [
    "CostBound",
    "LowerBound",
    "certified",
    "cost_bound",
    "cost_sensitivity",
    "lower_bound",
    "lower_bound_beside_radius",
    "separation",
]
