"""What a choice is expected to cost: before anything is spent, and given the release.

Both are made of public quantities and of the release alone. Their constants were fitted to outcomes on tables
and generated sets (``docs/measurements/clustering.md``): a law of few numbers, and a band that holds
four outcomes of five.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privada import _check
from privada.methods.clustering.questions.local import LocalMeans
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.methods.forecast import Forecast
from privada.privacy.mechanism import Lattice
from privada.privacy.release import Question

BESIDE = "choosing by the public target alone"
LEVEL, PER_FEATURE, PER_LOG_SIGNAL = -0.01, 0.20, -0.076  # of the logarithm of the ratio
SPREAD, SPREAD_PER_FEATURE = 0.015, 0.22  # half the band, of the logarithm

# True cost over the posterior's mean cost: its median, and what four outcomes of five lie between.
CORRECTIONS: dict[type[Question], tuple[float, float, float]] = {
    GridPyramid: (0.80, 0.55, 1.00),
    LocalMeans: (0.96, 0.50, 1.10),
}
GUESSED_SIZE = 400  # of a source whose size is not announced, at least


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
        ratio=math.exp(middle), low=math.exp(middle - half), high=math.exp(middle + half), beside=BESIDE
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


__all__ = ["CostEstimate", "estimate_cost", "forecast_gain"]
