"""The sound round protocol: what is decided in a round, and why that is stable.

With broadcasts fixed, every point has a fixed score in every round, the summary takes the best
points that are left (of all owners, sent or not), and coins never decide which. So (privacy.md, section 5):

*One swap.* Between worlds that differ by one row c of another owner, the points that are left
differ by exactly one: in the round in which c is taken, the world without it takes its next
best point, and that point plays c's part from there on. D_s differs by one point at most, and
its embedded sum by 2 (add/remove; a replaced row is two such changes: 4).

If points run out, the world with c holds one point more instead: the sum moves by 1.

*Rank shift.* Owner i's rank counts points of others that are left and better than its own best
unsent point: it moves by one at most (replace-one: two), whatever anybody was asked before.

*Both need* scores that depend on one point alone, and a total order. Owners and curator compute them by
`score_points`, in one order of summation; `order_points` breaks ties by what the points are, never by
where they stand in a file.

*Public by construction.* Owners are told how many points the schedule has in the summary
(`RoundPlan.planned`), never how many there are: different points may run out, and rows decide when.

*Who is covered.* Asking bits are drawn for each owner by itself. c owners who put theirs together have c bits
of every round, each moved by one rank: c times the squared cost. `RoundPlan.coalition` is the c that is paid
for, and `RoundPlan.against` says so. Without bits (``ask_share = 0``) every owner sees the same broadcasts,
and any coalition is covered, whatever its members send.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privada import _check
from privada.exceptions import InputError
from privada.methods.summarization.questions.asking_rules import AskRule, Everyone, GaussianThreshold
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Gaussian
from privada.privacy.relation import Relation

MISS = 1e-30  # total probability by which "rank 1 is always asked" departs from Gaussian noise
ANY_COALITION = "any coalition of owners"


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """How many rounds, what is broadcast and who is asked, at one price for every owner.

    Parameters
    ----------
    size : int
        Points of the summary.
    batch : int, default=1
        Points that are taken in each round: fewer rounds, less noise, less diversity.
    dimension : int
        Of the embedding.
    guarantee : Guarantee
        For each owner's rows, from the other owners, over all rounds.
    ask_share : float, default=0.0
        Share of the budget for the asking bits; 0 asks everyone.
    coalition : int, default=1
        How many owners may put together what they saw; what `against` says. It has a price where
        there are asking bits: the more owners, the more of them are asked.

    >>> from privada.privacy import ApproxDP
    >>> plan = RoundPlan(size=100, batch=10, dimension=140,
    ...                  guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))
    >>> plan.rounds, round(plan.broadcast.scale, 1), type(plan.rule).__name__
    (10, 23.6, 'Everyone')
    >>> plan.against
    'any coalition of owners'
    """

    size: int
    dimension: int
    guarantee: Guarantee
    batch: int = 1
    ask_share: float = 0.0
    coalition: int = 1

    def __post_init__(self) -> None:
        _check.count(size=self.size)
        _check.count(batch=self.batch)
        _check.count(coalition=self.coalition)
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
        bits = self.rounds * self.coalition
        mu = self.guarantee.gaussian_mu() * math.sqrt(self.ask_share / bits)
        return GaussianThreshold(sigma=self.steps / mu, beta=MISS / bits)

    @property
    def mu(self) -> float:
        """What all rounds cost each owner: Gaussians compose exactly, also adaptively."""
        return self.mu_against(self.coalition)

    def mu_against(self, owners: int) -> float:
        """What all rounds show to this many other owners together: all broadcasts, and the bits of each."""
        asking = 0.0 if self.ask_share == 0 else self.steps * self.rule.mu
        seen = _check.count(owners=owners) * asking**2
        return math.sqrt(self.rounds * (self.broadcast.mu**2 + seen))

    @property
    def against(self) -> str:
        """Whom the guarantee holds against, in words.

        An owner that does not send the points it was asked for counts as one of the coalition: from
        when on it is missing depends on its bit.
        """
        if self.ask_share == 0:
            return ANY_COALITION
        who = "one owner at a time" if self.coalition == 1 else f"at most {self.coalition} owners together"
        return f"{who}, while all others keep to the protocol"

    def planned(self, turn: int) -> int:
        """Points that are in the summary before a round (from 0 on), by the schedule: a public number."""
        return min(turn * self.batch, self.size)

    def taken(self, turn: int) -> int:
        """Points that a round takes, if there are as many."""
        return self.planned(turn + 1) - self.planned(turn)


__all__ = ["ANY_COALITION", "MISS", "RoundPlan"]
