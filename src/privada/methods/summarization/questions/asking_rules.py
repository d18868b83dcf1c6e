"""Whom to ask for a point, so that being asked tells little: rules on ranks with probability 1 at rank 1.

An owner's rank moves by at most one when another owner's rows change by one
(`privada.methods.summarization.questions.round_plan`), so a rule is as private as its probabilities at
neighbouring ranks are alike. The printed rule ``exp(-ε (rank - 1))`` is not: rank 1 is always
asked, rank 2 is not with probability ``1 - exp(-ε)``, which is a δ (privacy.md, section 5 (b)).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import NormalDist

from privada import _check


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


__all__ = ["AskRule", "Everyone", "GaussianThreshold"]
