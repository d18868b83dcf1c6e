"""How much the chosen points can cost at most on the source that was not seen. All post-processing.

Three bounds, each with its own reason; the least of them is told.

*Without the source.* A point pays at most its distance to the nearest chosen one.

*Cells that hold a row.* With probability 1 - γ no empty cell passes its threshold
(`learner.source.thresholds`). A cell of side a of a pyramid that passes holds a row within
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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.clustering.learner.solver.objective import source_distances
from privada.methods.clustering.learner.source.sanitised import RadiusEstimate, count_threshold
from privada.methods.clustering.learner.source.thresholds import threshold
from privada.methods.clustering.questions.local import LocalMeans
from privada.methods.clustering.questions.neighbours import NeighbourAverages
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.privacy.mechanism import KNorm, Lattice
from privada.privacy.release import Question, Release


@dataclass(frozen=True, kw_only=True)
class CostBound:
    """What is certain of the cost on the true source, as its owner clips it.

    Attributes
    ----------
    cost : float
        The chosen points cost at most this.
    difference : float or None
        Costs on the sanitised and on the true source differ by at most this, for every choice;
        known for `NeighbourAverages` beside a `SourceRadius`.
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
    """Bound the cost of chosen points on the source that a release speaks of.

    Parameters
    ----------
    target, centers : arrays
        All target points, and the chosen ones.
    question, release
        What was asked for, and the answer.
    radius : RadiusEstimate, optional
        An estimate of Δᵗ(S) over the same target; half of the risk is then its own.
    confidence : float
        Probability, over the noise, with which the bound holds.
    """
    T = _check.matrix(target=target)
    gamma = 1 - _check.probability(confidence=confidence)
    gamma = gamma if radius is None else gamma / 2
    served = np.minimum(
        source_distances(T, np.asarray(centers, dtype=np.float64)), certified(question, release, T, gamma)
    )
    far = math.inf if radius is None else radius.upper(1 - gamma)
    difference = None
    if radius is not None and isinstance(question, NeighbourAverages):
        difference = far + _beside_radius(question, T, gamma)
    return CostBound(cost=min(float(served.mean()), far), difference=difference, confidence=confidence)


@singledispatch
def certified(question: Question, release: Release, target: FloatArray, gamma: float) -> FloatArray:
    """For each target point a distance within which there is a source row, all true but for ``gamma``.

    Infinite where nothing is certain, as for averages.
    """
    del question, release, gamma
    return np.full(len(target), np.inf)


@certified.register
def _(question: GridPyramid, release: Release, target: FloatArray, gamma: float) -> FloatArray:
    counts = question.counts(release)
    cells = sum(cube.size for cube in counts.values())
    least = max(1.0, threshold(question.noise, cells=cells, gamma=gamma, width=question.width))
    found = np.full(len(target), np.inf)
    for level, cube in counts.items():
        side = 2 * question.domain / 2**level
        middles = (np.argwhere(cube >= least) + 0.5) * side - question.domain
        reach = source_distances(target, middles) + side * math.sqrt(question.width) / 2
        found = np.minimum(found, reach)
    return found


@certified.register
def _(question: LocalMeans, release: Release, target: FloatArray, gamma: float) -> FloatArray:
    passed = release["counts"] >= count_threshold(question, gamma=gamma)
    found = np.full(len(target), np.inf)
    for held, radius in zip(passed.T, question.shells, strict=True):
        found = np.minimum(found, source_distances(target, question.cells[held]) + radius)
    return found


def _beside_radius(question: NeighbourAverages, target: FloatArray, gamma: float) -> float:
    """The terms of the difference beside Δᵗ(S): the coreset's, the noise's and the grid's."""
    nearest = NearestCells(centers=question.targets).assign(target)
    away = float(np.linalg.norm(target - question.targets[nearest], axis=1).mean())
    shares = np.bincount(nearest, minlength=len(question.targets)) / len(target)
    grid = question.grid.step * math.sqrt(question.width)
    return 2 * away + _mean_noise(question, shares, gamma) + grid


def _mean_noise(question: NeighbourAverages, shares: FloatArray, gamma: float) -> float:
    """A bound on the mean length of the noise on averages, weighted by the points each stands for."""
    draw, numbers = question.plan.draws["sums"], question.targets.size
    if isinstance(draw, Lattice):
        return (
            math.sqrt(question.width) * (draw.half_width(1 - gamma / numbers) + draw.grid.step) / question.t
        )
    from scipy.stats import gamma as lengths

    assert isinstance(draw, KNorm)
    longest = float(lengths.isf(gamma, numbers)) * draw.sensitivity / draw.budget
    return float(np.linalg.norm(shares)) * longest / question.t


__all__ = ["CostBound", "certified", "cost_bound"]
