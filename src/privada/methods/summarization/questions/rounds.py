"""The round protocol: what is asked in a round, at what price, and why that is stable.

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

*Whom to ask.* An owner's rank moves by at most one when another owner's rows change by one, so a rule on
ranks is as private as its probabilities at neighbouring ranks are alike. The printed rule
``exp(-ε (rank - 1))`` is not: rank 1 is always asked, rank 2 is not with probability ``1 - exp(-ε)``, which
is a δ (privacy.md, section 5 (b)).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.summarization.questions.matching import FourierEmbedding, plan_disclosure, row_shapes
from privada.privacy.bounds import Grid
from privada.privacy.codec import inlined
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Gaussian, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema, Question

MISS = 1e-30  # total probability by which "rank 1 is always asked" departs from Gaussian noise
ANY_COALITION = "any coalition of owners"
NO_POINT = 2**62  # fills lists of points' numbers up to a public length


class AskRule(ABC):
    """The probability with which each rank is asked: 1 at rank 1, so that the best point is always sent."""

    @abstractmethod
    def probability(self, rank: int) -> float:
        """Probability of being asked at a rank, of which 1 is the best."""

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
        """Always 0: nothing depends on anybody's rows."""
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
        # Points are truncated one by one, so a swap moves the sum by 2 without any slack.
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
        bits = _check.count(owners=owners) * asking**2
        return math.sqrt(self.rounds * (self.broadcast.mu**2 + bits))

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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Participation(Question):
    """Ask an owner to take part in all rounds of one summary: paid once, before any point leaves.

    Parameters
    ----------
    size, batch, dimension, ask_share, coalition
        As in `RoundPlan`.

    Privacy
    -------
    Unit and relation are the guarantee's. What other owners see of this owner's rows are noisy sums
    of the summary, which its row moves by one swap a round (L2 at most 2 under add/remove, 4 under
    replace-one), and their own asking bits, whose ranks it moves by one (two). Whoever reads the exchange
    sees neither: the questions are sealed. All are Gaussian, drawn by the
    *curator*, who is trusted with the rows; they compose exactly to the event that is charged here.
    **Whom it holds against** is `against`: any coalition of owners if ``ask_share`` is 0; else at most
    ``coalition`` owners together, for the bits of as many are charged.
    Proof: the module's docstring and privacy.md, section 5 (c). The answer holds nothing but
    the number of rounds and `against`.

    >>> from privada.privacy import ApproxDP
    >>> claim = ApproxDP(epsilon=1, delta=1e-5, relation="replace-one")
    >>> Participation(size=100, batch=10, dimension=40, ask_share=0.5, guarantee=claim).against
    'one owner at a time, while all others keep to the protocol'
    """

    size: int
    dimension: int
    batch: int = 1
    ask_share: float = 0.0
    coalition: int = 1
    kind: ClassVar[str] = "summarization.participation"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner:answer_participation"

    def validate(self) -> None:
        """Check every public parameter by name."""
        _ = self.rounds  # a plan checks its own

    @property
    def rounds(self) -> RoundPlan:
        """The rounds that this pays for."""
        plain, _ = self.parts()
        return RoundPlan(**plain, guarantee=self.guarantee)

    @property
    def against(self) -> str:
        """Whom the guarantee holds against, in words."""
        return self.rounds.against

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"rounds": (), "against": ()}

    def planned(self) -> Plan:
        """No draw at the owner; the event of all that the curator draws."""
        return Plan(draws={}, event=gaussian_event(self.rounds.mu))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RoundBids(Question):
    """Ask for the scores of an owner's best points that were not sent: for the curator only.

    Parameters
    ----------
    embedding : FourierEmbedding
    target : array of shape (features,)
        The noisy validation mean g~.
    broadcast : array of shape (features,)
        The summary's noisy sum S~.
    count : int
        Points that the schedule has in the summary by now, D_init included: a public number. How many
        there are is none, for different points may run out.
    batch : int
        How many scores.
    sent : array of int
        Numbers of this owner's points that it has sent, filled up with `NO_POINT` to a public length. They
        follow from the owner's own rows, so the question is sealed: anybody else would learn from it.

    Notes
    -----
    A point's score is ``(count + 1) g~·h - S~·h``. (The printed bid has the sign and the factor exchanged.)

    Privacy
    -------
    None from the curator: scores and numbers of points are a disclosure. What the owner sees was paid
    for by `Participation` and by the validation set. Nobody else reads the question (it is sealed).
    """

    embedding: FourierEmbedding = field(metadata=inlined(FourierEmbedding))
    target: FloatArray
    broadcast: FloatArray
    count: int
    sent: IntArray
    batch: int = 1
    kind: ClassVar[str] = "summarization.bids"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner:answer_bids"
    discloses: ClassVar[bool] = True
    sealed: ClassVar[bool] = True

    def validate(self) -> None:
        """Check every public parameter by name."""
        for name in ("target", "broadcast"):
            object.__setattr__(self, name, self.embedding.freeze_vector(**{name: getattr(self, name)}))
        _check.count(least=0, count=self.count)
        _check.count(batch=self.batch)
        object.__setattr__(self, "sent", check_numbers(sent=self.sent))

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        self.embedding.check_width(schema)

    @property
    def slope(self) -> FloatArray:
        """What a point's embedding is multiplied with."""
        return (self.count + 1) * self.target - self.broadcast

    def planned(self) -> Plan:
        """No draw: nothing here is differentially private."""
        return plan_disclosure()

    def disclosed_shapes(self, schema: PublicSchema) -> dict[str, tuple[int, ...]]:  # noqa: ARG002
        """A whole batch, whether or not the owner has as many points left."""
        return {"scores": (self.batch,), "index": (self.batch,)}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RoundPoints(Question):
    """Ask for points by the numbers that an owner bid with: for the curator only.

    Parameters
    ----------
    index : array of int
        Numbers of points, filled up with `NO_POINT` to a whole batch.

    Privacy
    -------
    None from the curator: raw rows, a disclosure. Every owner gets such a question in every round, sealed
    and of one length. Whether it names a point is the bit that `Participation` paid for; the owner alone
    sees that bit.
    """

    index: IntArray
    kind: ClassVar[str] = "summarization.points"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner:answer_points"
    discloses: ClassVar[bool] = True
    sealed: ClassVar[bool] = True

    def validate(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "index", check_numbers(index=self.index))

    def planned(self) -> Plan:
        """No draw: nothing here is differentially private."""
        return plan_disclosure()

    def disclosed_shapes(self, schema: PublicSchema) -> dict[str, tuple[int, ...]]:
        """A row for every place of ``index``, also for those that name no point."""
        return row_shapes("X", len(self.index), schema.width, schema)


def check_numbers(**named: Any) -> IntArray:
    """Numbers of points, checked, as a read-only copy."""
    ((name, value),) = named.items()
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or np.any(array < 0):
        raise InputError(f"Expected {name} to be a list of whole numbers from 0 on.")
    numbers = np.array(array, dtype=np.int64)
    numbers.flags.writeable = False
    return numbers


def fill_numbers(numbers: Sequence[int] | IntArray, length: int) -> IntArray:
    """Numbers of points and as many `NO_POINT` as are missing from a public length.

    >>> fill_numbers([3, 1], 3).tolist() == [3, 1, NO_POINT]
    True
    """
    filled = np.full(length, NO_POINT, dtype=np.int64)
    filled[: len(numbers)] = numbers
    return filled


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
    # What was sent counts like what was not: a rank must not depend on earlier coins.
    best = {}
    for name in {*bids, *pooled}:
        joint = np.concatenate([bids.get(name, np.zeros(0)), pooled.get(name, np.zeros(0))])
        best[name] = np.sort(joint)[::-1][:batch]
    places = {}
    for name, scores in bids.items():
        if len(scores):
            better = sum(int(np.sum(best[other] > scores[0])) for other in best if other != name)
            places[name] = 1 + max(0, better - (batch - 1))
    return places


def score_points(features: FloatArray, slope: FloatArray) -> FloatArray:
    """Score of each point, a function of that point alone: the same in any company, on either side."""
    from privada.methods.summarization.questions import kernels

    scores = np.empty(len(features))
    kernels.score(np.ascontiguousarray(features), np.ascontiguousarray(slope), scores)
    return scores


def order_points(scores: FloatArray, X: FloatArray, *, most: int) -> IntArray:
    """Indices of the best points, at most ``most``, falling; equal scores by the rows' values.

    Different rows have different places whatever rows stand before or between them.

    >>> order_points(np.array([1.0, 2.0, 2.0]), np.array([[0.0], [5.0], [4.0]]), most=2).tolist()
    [2, 1]
    """
    # Only points that can be among the best are sorted; all ties of the last one are kept.
    if len(scores) > most:
        least = np.partition(scores, -most)[-most]
        candidates = np.flatnonzero(scores >= least)
    else:
        candidates = np.arange(len(scores))
    order = np.lexsort((*X[candidates].T[::-1], -scores[candidates]))[:most]
    return candidates[order]


__all__ = [
    "ANY_COALITION",
    "NO_POINT",
    "AskRule",
    "Everyone",
    "GaussianThreshold",
    "Participation",
    "RoundBids",
    "RoundPlan",
    "RoundPoints",
    "check_numbers",
    "fill_numbers",
    "order_points",
    "ranks",
    "score_points",
]
