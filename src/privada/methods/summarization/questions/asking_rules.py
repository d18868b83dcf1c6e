"""Whom to ask for a point, so that being asked tells little: rules on ranks with probability 1 at rank 1.

An owner's rank moves by at most one when another owner's rows change by one
(`privada.methods.summarization.questions.round_plan`), so a rule is as private as its probabilities at
neighbouring ranks are alike. The printed rule ``exp(-ε (rank - 1))`` is not: rank 1 is always
asked, rank 2 is not with probability ``1 - exp(-ε)``, which is a δ (PRIVACY, section 5 (b)).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from privada import _check

FloatArray = npt.NDArray[np.float64]


class AskRule(ABC):
    """The probability with which each rank is asked; 1 at rank 1, so that the winner is always there."""

    @abstractmethod
    def probability(self, rank: int) -> float:
        """Of being asked at a rank, 1 being the best."""

    def miss(self, rank: int) -> float:
        """Probability of not being asked, which may be far smaller than what 1 minus a float can hold."""
        return 1 - self.probability(rank)

    @property
    @abstractmethod
    def mu(self) -> float:
        """Gaussian cost of one round, for a shift of one rank (0 where there is none)."""

    @property
    def slack(self) -> float:
        """What one round adds to δ beside the Gaussian cost, before the factor ``1 + e^ε``."""
        return 0.0

    def expected_asked(self, owners: int) -> float:
        """How many of K owners are asked in a round, if their ranks are all different."""
        return math.fsum(self.probability(rank) for rank in range(1, _check.count(owners=owners) + 1))


@dataclass(frozen=True)
class Everyone(AskRule):
    """Ask every owner: the bit tells nothing and costs nothing. Right when K is small.

    >>> Everyone().expected_asked(4)
    4.0
    """

    def probability(self, rank: int) -> float:
        """Always."""
        _check.count(rank=rank)
        return 1.0

    @property
    def mu(self) -> float:
        """Nothing depends on anybody's rows."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class GaussianThreshold(AskRule):
    """Ask if ``rank + N(0, σ²) <= c``, with c so large that rank 1 is missed with probability β only.

    The miss is then taken away: rank 1 is always asked, which adds at most β to δ in each world.

    Parameters
    ----------
    sigma : float
    beta : float

    >>> rule = GaussianThreshold(sigma=2.0, beta=1e-6)
    >>> rule.probability(1), round(rule.probability(10), 3)
    (1.0, 0.6)
    """

    sigma: float
    beta: float

    def __post_init__(self) -> None:
        _check.positive(sigma=self.sigma)
        _check.probability(beta=self.beta)

    @property
    def threshold(self) -> float:
        """The rank c below which owners are mostly asked."""
        return 1 - self.sigma * NormalDist().inv_cdf(self.beta)

    def probability(self, rank: int) -> float:
        """Normal distribution function, 1 at rank 1."""
        if _check.count(rank=rank) == 1:
            return 1.0
        return 0.5 * math.erfc((rank - self.threshold) / (self.sigma * math.sqrt(2)))

    def miss(self, rank: int) -> float:
        """The other tail, in full precision."""
        if _check.count(rank=rank) == 1:
            return 0.0
        return 0.5 * math.erfc((self.threshold - rank) / (self.sigma * math.sqrt(2)))

    @property
    def mu(self) -> float:
        """One rank over σ."""
        return 1 / self.sigma

    @property
    def slack(self) -> float:
        """The miss at rank 1."""
        return self.beta


@dataclass(frozen=True, kw_only=True)
class OptimalSelection(AskRule):
    """The rule that asks least at ranks beyond 1 for a given (ε, δ) a round: optimal partition selection.

    Parameters
    ----------
    epsilon, delta : float
        For one round and a shift of one rank; rounds compose as (ε, δ) mechanisms do.

    >>> rule = OptimalSelection(epsilon=1.0, delta=1e-3)
    >>> rule.probability(1), round(rule.probability(6), 3)
    (1.0, 0.914)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _check.positive(epsilon=self.epsilon)
        _check.probability(delta=self.delta)

    def probability(self, rank: int) -> float:
        """1 minus the largest miss that neighbouring ranks allow."""
        miss = 0.0
        for _ in range(_check.count(rank=rank) - 1):
            grown = math.exp(self.epsilon) * miss + self.delta
            bound = 1 - math.exp(-self.epsilon) * (1 - miss - self.delta)
            miss = min(grown, bound, 1.0)
        return 1 - miss

    def expected_asked(self, owners: int) -> float:
        """As for every rule, in one pass."""
        total, miss = 0.0, 0.0
        for _ in range(_check.count(owners=owners)):
            total += 1 - miss
            grown = math.exp(self.epsilon) * miss + self.delta
            miss = min(grown, 1 - math.exp(-self.epsilon) * (1 - miss - self.delta), 1.0)
        return total

    @property
    def mu(self) -> float:
        """It has no Gaussian cost; account its (ε, δ) for each round."""
        return math.inf


def excess_delta(rule: AskRule, epsilon: float, *, owners: int) -> FloatArray:
    """At each rank below K, the δ that telling it from the next one needs at ``epsilon``.

    The larger of ``p_r - e^ε p_{r+1}`` and ``(1 - p_{r+1}) - e^ε (1 - p_r)``, and the same the other way.
    """
    p = np.array([rule.probability(rank) for rank in range(1, owners + 1)])
    here, there, grow = p[:-1], p[1:], math.exp(epsilon)
    asked = np.maximum(here - grow * there, there - grow * here)
    passed = np.maximum((1 - there) - grow * (1 - here), (1 - here) - grow * (1 - there))
    return np.maximum(np.maximum(asked, passed), 0.0)


__all__ = ["AskRule", "Everyone", "GaussianThreshold", "OptimalSelection", "excess_delta"]
