"""The round protocol: the curator broadcasts, owners bid, the best points are taken.

The curator scores its whole pool anew in every round and always obtains the best point, so
what enters the summary never depends on a coin. An owner that breaks the rules is left out: its bids
no longer count, its points leave the pool; points that are in the summary stay.

Everything that an owner is shown follows a public schedule: as many rounds, and as many points counted as
taken, whether or not there were as many different points. Where few owners are asked for points and one
owner does not send what it should, everyone is asked from there on: otherwise the best points that are left
could be missing because of a coin.

Everything that others can see of the messages follows that schedule, too. In every round each owner gets one
question for its bid and one for its points, of a public length. A question for points that asks for none
looks like any other, and both are sealed (`privada.privacy.Question`). Only the failure of an owner shows: it
gets no more questions, and where few are asked, all others get a second question for points in that round.

A learner draws nothing. It yields what is to be drawn (`NoisySum`, `AskedOwners`), and whoever drives it
draws (`privada.methods.summarization.curator`) and sends back the result.

Why this is private: `privada.methods.summarization.questions.rounds`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.summarization.learner.learn import Matching, Participants, ask_validation
from privada.methods.summarization.learner.summary import Allocation, Summary
from privada.methods.summarization.questions.matching import FourierEmbedding
from privada.methods.summarization.questions.rounds import (
    NO_POINT,
    AskRule,
    Everyone,
    Participation,
    RoundBids,
    RoundPlan,
    RoundPoints,
    fill_numbers,
    ranks,
    score_points,
)
from privada.parties.protocol import Absent, AskOwner
from privada.privacy.mechanism import Gaussian
from privada.privacy.release import Disclosure

TOLERANCE = 1e-9  # relative: a point's score is computed alike on both sides
T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class NoisySum:
    """A draw: the noisy sum of the summary's embeddings, which is then broadcast.

    Attributes
    ----------
    features : array of shape (points, features)
        The exact embeddings: at the curator's only.
    mechanism : Gaussian
        Its noise, as `RoundPlan.broadcast` says.
    """

    features: FloatArray
    mechanism: Gaussian

    def equals(self, other: Draw) -> bool:
        """Whether another draw is of the same sum."""
        return isinstance(other, NoisySum) and np.array_equal(self.features, other.features)


@dataclass(frozen=True, eq=False, repr=False)
class AskedOwners:
    """A draw: which owners are asked for their points, a random set of names.

    Attributes
    ----------
    ranks : mapping of owner's name to int
        The exact ranks: at the curator's only.
    rule : AskRule
        The probability with which each rank is asked, as `RoundPlan.rule` says.
    """

    ranks: Mapping[str, int]
    rule: AskRule

    def equals(self, other: Draw) -> bool:
        """Whether another draw is of the same ranks."""
        return isinstance(other, AskedOwners) and self.ranks == other.ranks


Draw = NoisySum | AskedOwners
Rounds = Generator[AskOwner | Sequence[AskOwner] | Draw, Any, T]


@dataclass(frozen=True, eq=False, repr=False)
class Point:
    """A raw point at the curator's."""

    owner: str
    number: int
    X: FloatArray
    y: Any
    features: FloatArray

    @classmethod
    def read_all(cls, owner: str, reply: Any, bid: Bid, embedding: FourierEmbedding) -> list[Point] | str:
        """The points that an owner sent, or what is wrong with its reply."""
        if isinstance(reply, Absent):
            return reply.reason
        assert isinstance(reply, Disclosure)
        try:
            X = np.asarray(reply.rows["X"], dtype=np.float64)
            y = reply.rows["y"] if "y" in reply.rows else [None] * len(X)
            rows = zip(bid.index.tolist(), X, y, embedding.transform(X), strict=True)
            return [cls(owner, int(number), *rest) for number, *rest in rows]
        except (KeyError, TypeError, ValueError, InputError):
            return "its points cannot be read"


@dataclass(frozen=True, eq=False)
class Bid:
    """What an owner offers: scores, falling, and its points' numbers."""

    scores: FloatArray
    index: IntArray

    @classmethod
    def read(cls, reply: Any, sent: list[int], batch: int) -> Bid | str:
        """A bid, or what is wrong with the reply."""
        if isinstance(reply, Absent):
            return reply.reason
        assert isinstance(reply, Disclosure)
        try:
            scores = np.asarray(reply.rows["scores"], dtype=np.float64)
            index = np.asarray(reply.rows["index"]).astype(np.int64)
        except (KeyError, TypeError, ValueError):
            return "its bid cannot be read"
        if scores.shape != index.shape or scores.ndim != 1 or len(scores) > batch:
            return "its bid has another shape"
        if not np.isfinite(scores).all() or np.any(np.diff(scores) > 0):
            return "its bid is not finite, or not in order"
        if len(set(index.tolist())) != len(index) or set(index.tolist()) & {*sent, NO_POINT}:
            return "it bids with a point that it has sent"
        return cls(scores, index)


NO_BID = Bid(np.zeros(0), np.zeros(0, dtype=np.int64))


@dataclass(eq=False, repr=False)
class RoundTable:
    """Pool and summary, and who is still taking part.

    Attributes
    ----------
    embedding : FourierEmbedding
    target : array of shape (features,)
        The noisy validation mean.
    start, start_size
        Sum of the embedding over rows that are in the training set already, and their number.
    playing : list of str
        Owners that have kept to the rules.
    pool, chosen : lists of Point
        What was sent and is not in the summary, and the summary.
    sent : dict of owner's name to list of int
        Numbers of the points that each has sent.
    received : int
        How many points came, also those that were refused.
    faults : list of str
        Who was left out, and why; never a row.
    failed : bool
        Whether an owner did not send what it was asked for.
    batch : int
        The most points that an owner is asked for at once.
    collections : int
        How often all owners were asked for points: no owner has sent more than so many batches.
    """

    embedding: FourierEmbedding
    target: FloatArray
    start: FloatArray
    start_size: int
    playing: list[str]
    pool: list[Point] = field(default_factory=list)
    chosen: list[Point] = field(default_factory=list)
    sent: dict[str, list[int]] = field(default_factory=dict)
    received: int = 0
    faults: list[str] = field(default_factory=list)
    failed: bool = False
    batch: int = 1
    collections: int = 0

    def drop(self, owner: str, reason: str) -> None:
        """Leave an owner out from here on; its points leave the pool, not the summary."""
        self.playing.remove(owner)
        self.pool = [point for point in self.pool if point.owner != owner]
        self.faults.append(f"{owner}: {reason}")

    def summary_features(self) -> FloatArray:
        """Embeddings of the summary."""
        return np.array([point.features for point in self.chosen]).reshape(-1, self.embedding.dimension)

    def pooled_scores(self, slope: FloatArray) -> dict[str, FloatArray]:
        """Scores of pooled points, by owner."""
        return {
            name: _score([point for point in self.pool if point.owner == name], slope)
            for name in self.playing
        }

    def take_best(self, slope: FloatArray, most: int) -> None:
        """Move the best points of the pool into the summary; ties by owner, then by the points' values."""
        # The order is total and never by place, as the proof of one swap needs.
        scored = zip(_score(self.pool, slope).tolist(), self.pool, strict=True)
        best = sorted(scored, key=lambda pair: (-pair[0], pair[1].owner, tuple(pair[1].X.tolist())))
        order = [point for _, point in best[:most]]
        self.chosen += order
        moved = {id(point) for point in order}
        self.pool = [point for point in self.pool if id(point) not in moved]

    def accept_bid(self, owner: str, reply: Any, batch: int) -> Bid | None:
        """An owner's bid; None if it has no point left, or broke a rule and is left out."""
        bid = Bid.read(reply, self.sent.get(owner, []), batch)
        if isinstance(bid, str):
            self.drop(owner, bid)
            return None
        return bid if len(bid.index) else None

    def accept_points(self, owner: str, reply: Any, bid: Bid, slope: FloatArray) -> None:
        """Put an owner's points into the pool, or leave it out if they are not what it bid."""
        points = Point.read_all(owner, reply, bid, self.embedding)
        if isinstance(points, str):
            fault, points = points or "it did not answer", []
        else:
            fault = self.find_fault(points, bid, slope)
        self.received += len(points)
        if fault:
            # From here on everyone is asked: which owner failed may depend on a coin.
            self.drop(owner, fault)
            self.failed = True
            return
        self.pool += points
        self.sent.setdefault(owner, []).extend(bid.index.tolist())

    def find_fault(self, points: list[Point], bid: Bid, slope: FloatArray) -> str:
        """What is wrong with points: not finite, sent before, or not what was bid."""
        if not points:
            return ""
        X = np.array([point.X for point in points])
        if not np.isfinite(X).all():
            return "a point that is not finite"
        owner, earlier = points[0].owner, (*self.pool, *self.chosen)
        before = {point.X.tobytes() for point in earlier if point.owner == owner}
        now = [row.tobytes() for row in X]
        if len(set(now)) != len(now) or set(now) & before:
            return "a point twice"
        # An owner that bids high and sends another point would choose what enters the summary.
        scores = _score(points, slope)
        if not np.allclose(scores, bid.scores, rtol=TOLERANCE, atol=TOLERANCE * float(np.abs(slope).sum())):
            return "a point that does not match its bid"
        return ""

    def to_summary(self, allocation: Allocation) -> Summary:
        """The chosen points as a summary."""
        if not self.chosen:
            raise InputError("No owner sent a point that can be used.")
        labels = [point.y for point in self.chosen]
        return Summary(
            X=np.array([point.X for point in self.chosen]),
            y=None if any(label is None for label in labels) else np.array(labels),
            owner=np.array([point.owner for point in self.chosen]),
            allocation=allocation,
            points_seen=self.received,
            faults=tuple(self.faults),
            embedding=self.embedding,
        )


def _score(points: list[Point], slope: FloatArray) -> FloatArray:
    features = np.array([point.features for point in points]).reshape(-1, len(slope))
    return score_points(features, slope)


def greedy_rounds(
    consumer: str,
    validation_size: int,
    owners: Mapping[str, int],
    matching: Matching,
    *,
    batch: int = 1,
    ask_share: float = 0.0,
    coalition: int = 1,
    start: npt.ArrayLike | None = None,
    start_size: int = 0,
) -> Rounds[Summary]:
    """Gather a summary in rounds: broadcast, bid, ask, take the best.

    Beside questions it yields what is to be drawn: `Curator.auction` drives it, or `supply_noise` makes it
    a learner that the common loop can drive.

    Parameters
    ----------
    consumer, validation_size, owners, matching
        As for `privada.methods.summarization.summarise`; ``matching.owners`` pays for all rounds.
    batch : int, default=1
        Points taken in each round.
    ask_share : float, default=0.0
        Share of the budget for asking few owners; 0 asks everyone, which costs nothing.
    coalition : int, default=1
        With ``ask_share > 0``: how many owners may put their asking bits together. The guarantee holds
        against no more than that; see `RoundPlan.against`.
    start : array of shape (features,), optional
        Sum of the embedding over D_init. It is broadcast as a part of the summary: compute it from
        public rows, or, if D_init holds people, take the noisy sum of an `EmbeddingSum` release.
    start_size : int, default=0
        How many rows D_init has.

    Privacy
    -------
    See `Participation`. The validation set has a budget of its own. With ``ask_share = 0`` the owners'
    guarantee holds against any coalition of owners; with ``ask_share > 0`` against ``coalition`` of them, one
    unless you say more. The summary's ``allocation.against`` says which. Somebody who only reads the exchange
    learns nothing of these owners' rows: lengths, numbers and addressees of the messages are public.
    """
    participants = Participants.of(owners, matching.size)
    joining = _participation(matching, batch=batch, ask_share=ask_share, coalition=coalition)
    _points_question(matching, (), batch=batch, number=10**6)  # refuses a salt that will be too long
    target, variance = yield from ask_validation(consumer, validation_size, participants, matching)
    # Every owner pays for all rounds before the first one shows anything.
    participants.keep_answering((yield [AskOwner(name, joining) for name in participants.sizes]))
    table = RoundTable(
        embedding=matching.embedding,
        target=target,
        start=np.zeros(len(target)) if start is None else np.asarray(start, dtype=np.float64),
        start_size=_check.count(least=0, start_size=start_size),
        playing=list(participants.sizes),
        batch=batch,
    )
    plan = joining.rounds
    for turn in range(plan.rounds):
        yield from _play_round(table, plan, matching, turn)
    names = [point.owner for point in table.chosen]
    return table.to_summary(
        Allocation(
            rows={name: names.count(name) for name in participants.sizes},
            sizes=dict(participants.sizes),
            suitable={},
            target=target,
            variance=variance,
            releases=tuple(participants.releases),
            absent=tuple(participants.absent),
            against=plan.against,
        )
    )


def planned_round_asks(
    consumer: str,
    owners: Mapping[str, int],
    matching: Matching,
    *,
    batch: int = 1,
    ask_share: float = 0.0,
    coalition: int = 1,
) -> tuple[AskOwner, ...]:
    """All that `greedy_rounds` pays for, and one of each question for rows, which cost nothing.

    The validation mean is paid for once, and each owner's part in all rounds.
    """
    joining = _participation(matching, batch=batch, ask_share=ask_share, coalition=coalition)
    nothing = np.zeros(matching.embedding.dimension)
    rows = (
        _bids_question(matching, target=nothing, broadcast=nothing, count=0, batch=batch, sent=()),
        _points_question(matching, (), batch=batch, number=1),
    )
    names = [name for name, size in owners.items() if size]
    return (
        AskOwner(consumer, matching.validation_question()),
        *(AskOwner(name, joining) for name in names),
        *(AskOwner(name, question, to=matching.curator) for name in names for question in rows),
    )


def _participation(matching: Matching, *, batch: int, ask_share: float, coalition: int) -> Participation:
    return Participation(
        size=matching.size,
        batch=batch,
        dimension=matching.embedding.dimension,
        ask_share=ask_share,
        coalition=coalition,
        guarantee=matching.owners,
        salt=matching.salt,
    )


def _bids_question(
    matching: Matching,
    *,
    target: FloatArray,
    broadcast: FloatArray,
    count: int,
    batch: int,
    sent: Sequence[int] | IntArray,
) -> RoundBids:
    return RoundBids(
        embedding=matching.embedding,
        target=target,
        broadcast=broadcast,
        count=count,
        batch=batch,
        sent=np.array(sent, dtype=np.int64),
        guarantee=matching.owners,
        salt=matching.salt,
    )


def _points_question(
    matching: Matching, index: Sequence[int] | IntArray, *, batch: int, number: int
) -> RoundPoints:
    """A question for a whole batch of points, some of which may be none.

    Its salt has a number: two questions for no point are two messages, as any others are.
    """
    return RoundPoints(
        index=fill_numbers(index, batch),
        guarantee=matching.owners,
        salt=f"{matching.salt} points {number}",
    )


def _play_round(table: RoundTable, plan: RoundPlan, matching: Matching, turn: int) -> Rounds[None]:
    # By the schedule, not by how many points there are: that number depends on rows.
    planned, mechanism = plan.planned(turn), plan.broadcast
    count = table.start_size + planned
    noisy = yield NoisySum(table.summary_features(), mechanism)
    expected = planned * table.target
    broadcast = table.start + shrink_sum(noisy, expected, count=planned, variance=mechanism.variance)
    bids = yield from _collect_bids(table, matching, broadcast, count, plan.batch)
    slope = (count + 1) * table.target - broadcast
    yield from _ask_for_points(table, plan, matching, bids, slope)
    table.take_best(slope, plan.taken(turn))


def _collect_bids(
    table: RoundTable, matching: Matching, broadcast: FloatArray, count: int, batch: int
) -> Rounds[dict[str, Bid]]:
    """Bids of all that take part; one without a point has none this time, and is asked again."""
    # The list is filled up to a public length, so that the length of the question tells nothing.
    most_sent = table.collections * batch
    asks = [
        AskOwner(
            name,
            _bids_question(
                matching,
                target=table.target,
                broadcast=broadcast,
                count=count,
                batch=batch,
                sent=fill_numbers(table.sent.get(name, ()), most_sent),
            ),
            to=matching.curator,
        )
        for name in table.playing
    ]
    replies = yield asks
    bids = {
        ask.owner: table.accept_bid(ask.owner, reply, batch) for ask, reply in zip(asks, replies, strict=True)
    }
    return {name: bid for name, bid in bids.items() if bid is not None}


def _ask_for_points(
    table: RoundTable, plan: RoundPlan, matching: Matching, bids: Mapping[str, Bid], slope: FloatArray
) -> Rounds[None]:
    """Ask some owners for their points; if anybody fails, ask the others too, now and from here on."""
    scores = {name: bid.scores for name, bid in bids.items()}
    standing = ranks(scores, table.pooled_scores(slope), batch=plan.batch)
    # After a failure everyone is asked: the best remaining points could be missing because of a coin.
    rule = Everyone() if table.failed else plan.rule
    chosen = yield AskedOwners(standing, rule)
    offers = {name: bid for name, bid in bids.items() if name in chosen}
    yield from _collect_points(table, matching, offers, slope)
    if table.failed and not isinstance(rule, Everyone):
        rest = {name: bid for name, bid in bids.items() if name not in chosen}
        yield from _collect_points(table, matching, rest, slope)


def _collect_points(
    table: RoundTable, matching: Matching, bids: Mapping[str, Bid], slope: FloatArray
) -> Rounds[None]:
    """Ask for the points of some bids: everybody gets a question that looks alike to all others."""
    # Owners that are not asked for a point get a question for none, of the same length.
    offers = {name: bids.get(name, NO_BID) for name in table.playing}
    number = table.collections = table.collections + 1
    asks = [
        AskOwner(
            name,
            _points_question(matching, bid.index, batch=table.batch, number=number),
            to=matching.curator,
        )
        for name, bid in offers.items()
    ]
    if asks:
        for ask, reply in zip(asks, (yield asks), strict=True):
            table.accept_points(ask.owner, reply, offers[ask.owner], slope)


def shrink_sum(noisy: FloatArray, expected: FloatArray, *, count: int, variance: float) -> FloatArray:
    """Draw a noisy sum of ``count`` points to what is expected of it: post-processing.

    Around its expectation, a sum of q points of norm 1 has variance of about q/d per coordinate; noise
    beyond that is taken out (Wiener's filter).
    """
    signal = count / len(noisy)
    return expected + signal / (signal + variance) * (noisy - expected) if count else expected


__all__ = [
    "AskedOwners",
    "Bid",
    "Draw",
    "NoisySum",
    "Point",
    "RoundTable",
    "Rounds",
    "greedy_rounds",
    "planned_round_asks",
    "shrink_sum",
]
