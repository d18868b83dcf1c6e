"""The sound round protocol: what is decided in a round, and why that is stable.

With broadcasts fixed, every point has a fixed score in every round, the summary takes the best
points that are left (of all owners, sent or not), and coins never decide which. So (PRIVACY, section 5):

*One swap.* Between worlds that differ by one row c of another owner, the points that are left
differ by exactly one: in the round in which c is taken, the world without it takes its next
best point, and that point plays c's part from there on. D_s differs by one point at most, and
its embedded sum by 2 (add/remove; a replaced row is two such changes: 4).

*Rank shift.* Owner i's rank counts points of others that are left and better than its own best
unsent point: it moves by one at most (replace-one: two), whatever anybody was asked before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.summarization.asking import AskRule, Everyone, GaussianThreshold
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Gaussian
from privada.privacy.noise import Noise
from privada.privacy.relation import Relation

FloatArray = npt.NDArray[np.float64]
MISS = 1e-30  # total probability by which "rank 1 is always asked" departs from Gaussian noise


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """How many rounds, what is broadcast and who is asked, at one price for every owner.

    Parameters
    ----------
    size : int
        Points of the summary.
    batch : int
        Points that are taken in each round: fewer rounds, less noise, less diversity.
    dimension : int
        Of the embedding.
    guarantee : Guarantee
        For each owner's rows, from the other owners, over all rounds.
    ask_share : float
        Share of the budget for the asking bits; 0 asks everyone.

    >>> from privada.privacy import Approximate
    >>> plan = RoundPlan(size=100, batch=10, dimension=140,
    ...                  guarantee=Approximate(epsilon=1, delta=1e-5, relation="add/remove"))
    >>> plan.rounds, round(plan.broadcast.scale, 1), type(plan.rule).__name__
    (10, 23.6, 'Everyone')
    """

    size: int
    dimension: int
    guarantee: Guarantee
    batch: int = 1
    ask_share: float = 0.0

    def __post_init__(self) -> None:
        _check.count(size=self.size)
        _check.count(batch=self.batch)
        _check.count(least=2, dimension=self.dimension)
        if not 0 <= _check.finite(ask_share=self.ask_share) < 1:
            raise InputError(f"Expected ask_share from 0 to below 1, got {self.ask_share!r}.")
        self.guarantee.gaussian_mu()

    @property
    def rounds(self) -> int:
        """Batches until the summary is full."""
        return -(-self.size // self.batch)

    @property
    def steps(self) -> int:
        """Swaps, and ranks, by which one unit of the relation moves a round, for each of its rows."""
        replaces = self.guarantee.relation is not Relation.ADD_REMOVE
        return (2 if replaces else 1) * self.guarantee.unit.max_rows

    @property
    def broadcast(self) -> Gaussian:
        """The noise on each broadcast sum: each point is truncated to the grid, so a swap moves it by 2."""
        mu = self.guarantee.gaussian_mu() * math.sqrt((1 - self.ask_share) / self.rounds)
        grid = Grid.finer_than(min(1.0, 1 / mu) * 2.0**-20)
        return Gaussian.calibrated(sensitivity=2.0 * self.steps, mu=mu, grid=grid)

    @property
    def rule(self) -> AskRule:
        """Whom to ask."""
        if self.ask_share == 0:
            return Everyone()
        mu = self.guarantee.gaussian_mu() * math.sqrt(self.ask_share / self.rounds)
        return GaussianThreshold(sigma=self.steps / mu, beta=MISS / self.rounds)

    @property
    def mu(self) -> float:
        """What all rounds cost each owner: Gaussians compose exactly, also adaptively."""
        asking = 0.0 if self.ask_share == 0 else self.steps * self.rule.mu
        return math.sqrt(self.rounds * (self.broadcast.mu**2 + asking**2))


def ranks(
    bids: Mapping[str, FloatArray], pooled: Mapping[str, FloatArray], *, batch: int = 1
) -> dict[str, int]:
    """Rank of each owner that has an unsent point; at rank 1 its point may be among the best.

    Parameters
    ----------
    bids : mapping of owner to array
        Scores of its best unsent points, at most ``batch``, falling.
    pooled : mapping of owner to array
        Scores of its points that were sent and are not in the summary.
    batch : int
        How many points the round takes.

    Notes
    -----
    ``1 + max(0, b - (batch - 1))`` with b the number of other owners' points that are better than the owner's
    best unsent one, counting at most ``batch`` of each owner. At rank above 1, batch others are better: none
    of its unsent points is among the best. b moves by at most one when one point of one other owner changes.
    """
    best = {}
    for name in {*bids, *pooled}:
        joint = np.concatenate([bids.get(name, np.zeros(0)), pooled.get(name, np.zeros(0))])
        best[name] = np.sort(joint)[::-1][:batch]
    found = {}
    for name, scores in bids.items():
        if len(scores):
            better = sum(int(np.sum(best[other] > scores[0])) for other in best if other != name)
            found[name] = 1 + max(0, better - (batch - 1))
    return found


def asked(found: Mapping[str, int], rule: AskRule, noise: Noise) -> set[str]:
    """Flip one coin for each owner; rank 1 is always asked."""
    coins = noise.uniform(len(found))
    chances = [rule.probability(rank) for rank in found.values()]
    return {name for name, chance, coin in zip(found, chances, coins, strict=True) if coin <= chance}


def noisy_sum(features: FloatArray, mechanism: Gaussian, noise: Noise) -> FloatArray:
    """One broadcast: the points' sum in whole grid steps, each point truncated by itself, and noise."""
    return np.asarray(mechanism.draw(mechanism.grid.truncate(features).sum(axis=0), noise))


def shrunk(noisy: FloatArray, expected: FloatArray, *, count: int, variance: float) -> FloatArray:
    """Draw a noisy sum of ``count`` points to what is expected of it: post-processing.

    Around its expectation, a sum of q points of norm 1 has variance of about q/d a coordinate; noise
    beyond that is taken out (Wiener's filter).
    """
    signal = count / len(noisy)
    return expected + signal / (signal + variance) * (noisy - expected) if count else expected


__all__ = ["MISS", "RoundPlan", "asked", "noisy_sum", "ranks", "shrunk"]
