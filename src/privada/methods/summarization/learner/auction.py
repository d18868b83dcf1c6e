"""The round protocol as a conversation: broadcasts, bids, asks and points, driven by the `Curator`.

The curator re-scores its whole pool in every round and always obtains the best point, so
what enters the summary never depends on a coin. Who breaks the rules is left out: its bids
no longer count, its points leave the pool; points that are in the summary stay.

All that an owner is shown follows a public schedule: as many rounds, and as many points counted as taken,
whether or not there were as many different points. Where few owners are asked and one of them does not
send what it bid, everyone is asked from there on: the best points that are left could else be missing
because of a coin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.summarization.learner.gathering import Summary
from privada.methods.summarization.learner.learn import Absent, Allocation, Matching, Roll, enough
from privada.methods.summarization.questions.asking_rules import Everyone
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.methods.summarization.questions.protocol import RoundPlan, Voice, ranks, score_points, shrunk
from privada.methods.summarization.questions.rounds import Participation, RoundBids, RoundPoints
from privada.parties.protocol import Ask, Learner, only_releases
from privada.privacy.noise import SecureNoise
from privada.privacy.release import Disclosure

FloatArray = npt.NDArray[np.float64]
TOLERANCE = 1e-9  # relative: a point's score is computed alike on both sides


@dataclass(frozen=True, eq=False, repr=False)
class Point:
    """A raw point at the curator's."""

    owner: str
    number: int
    X: FloatArray
    y: Any
    features: FloatArray


@dataclass(eq=False, repr=False)
class _Table:
    """The curator's table: pool and summary, and who is still in the game."""

    embedding: FourierEmbedding
    target: FloatArray
    start: FloatArray
    start_size: int
    playing: list[str]
    pool: list[Point] = field(default_factory=list)
    chosen: list[Point] = field(default_factory=list)
    sent: dict[str, list[int]] = field(default_factory=dict)
    seen: int = 0
    faults: list[str] = field(default_factory=list)
    failed: bool = False  # whether an owner did not send what it bid

    def drop(self, owner: str, reason: str) -> None:
        """Leave an owner out from here on."""
        self.playing.remove(owner)
        self.pool = [point for point in self.pool if point.owner != owner]
        self.faults.append(f"{owner}: {reason}")

    def features(self) -> FloatArray:
        """Embeddings of the summary."""
        return np.array([point.features for point in self.chosen]).reshape(-1, self.embedding.dimension)

    def pooled(self, slope: FloatArray) -> dict[str, FloatArray]:
        """Scores of pooled points, by owner."""
        return {
            name: _scores([point for point in self.pool if point.owner == name], slope)
            for name in self.playing
        }

    def take(self, slope: FloatArray, most: int) -> None:
        """Move the best points of the pool into the summary; ties by owner, then by the points' values."""
        scored = zip(_scores(self.pool, slope).tolist(), self.pool, strict=True)
        best = sorted(scored, key=lambda pair: (-pair[0], pair[1].owner, tuple(pair[1].X.tolist())))
        order = [point for _, point in best[:most]]
        self.chosen += order
        kept = {id(point) for point in order}
        self.pool = [point for point in self.pool if id(point) not in kept]


def _scores(points: list[Point], slope: FloatArray) -> FloatArray:
    features = np.array([point.features for point in points]).reshape(-1, len(slope))
    return score_points(features, slope)


@dataclass(frozen=True, eq=False)
class _Bid:
    """What an owner offers: scores, falling, and its points' numbers."""

    scores: FloatArray
    index: npt.NDArray[np.int64]


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
    voice: Voice | None = None,
) -> Learner[Summary]:
    """Gather a summary in rounds: broadcast, bid, ask, take the best.

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
    start_size : int
        How many rows D_init has.
    voice : Voice, optional
        What draws broadcasts and asks; by default from the operating system's noise.

    Privacy
    -------
    See `Participation`. The validation set has a budget of its own. With ``ask_share = 0`` the owners'
    guarantee holds against any coalition of owners; with ``ask_share > 0`` against ``coalition`` of them, one
    unless you say more. The summary's ``allocation.against`` says which.
    """
    roll = Roll(sizes={name: n for name, n in owners.items() if _check.count(least=0, size=n) > 0})
    enough(roll.sizes, matching.size)
    question = matching.validation_question()
    reply = yield Ask(consumer, question)
    if isinstance(reply, Absent):
        raise InputError(f"The consumer did not answer: {reply.reason.rstrip('.')}.")
    only_releases(reply)
    roll.releases.append(reply)
    joining = Participation(
        size=matching.size,
        batch=batch,
        dimension=matching.embedding.dimension,
        ask_share=ask_share,
        coalition=coalition,
        guarantee=matching.owners,
        salt=matching.salt,
    )
    roll.take((yield [Ask(name, joining) for name in roll.sizes]))
    m, d = _check.count(validation_size=validation_size), matching.embedding.dimension
    table = _Table(
        embedding=matching.embedding,
        target=reply["sum"] / m,
        start=np.zeros(d) if start is None else np.asarray(start, dtype=np.float64),
        start_size=_check.count(least=0, start_size=start_size),
        playing=list(roll.sizes),
    )
    speaker = Voice(SecureNoise()) if voice is None else voice
    plan = joining.rounds
    for turn in range(plan.rounds):
        yield from _round(table, plan, matching, speaker, turn)
    return _summary(table, _allocation(table, roll, plan, question.variance / m**2))


def _round(table: _Table, plan: RoundPlan, matching: Matching, voice: Voice, turn: int) -> Learner[None]:
    planned, mechanism = plan.planned(turn), plan.broadcast
    count = table.start_size + planned
    noisy = voice.say(table.features(), mechanism)
    drawn = shrunk(noisy, planned * table.target, count=planned, variance=mechanism.variance)
    broadcast = table.start + drawn
    bids = yield from _bids(table, matching, broadcast, count, plan.batch)
    slope = (count + 1) * table.target - broadcast
    yield from _asked_points(table, plan, matching, voice, bids, slope)
    table.take(slope, plan.taken(turn))


def _asked_points(
    table: _Table,
    plan: RoundPlan,
    matching: Matching,
    voice: Voice,
    bids: Mapping[str, _Bid],
    slope: FloatArray,
) -> Learner[None]:
    """Ask some owners for their points; if one of them fails, ask the others too, now and from here on."""
    found = ranks({name: bid.scores for name, bid in bids.items()}, table.pooled(slope), batch=plan.batch)
    chosen = voice.ask(found, Everyone() if table.failed else plan.rule)
    yield from _points(table, matching, {name: bids[name] for name in bids if name in chosen}, slope)
    if table.failed:
        rest = {name: bids[name] for name in table.playing if name in bids and name not in chosen}
        yield from _points(table, matching, rest, slope)


def _bids(
    table: _Table, matching: Matching, broadcast: FloatArray, count: int, batch: int
) -> Learner[dict[str, _Bid]]:
    asks = [
        Ask(
            name,
            RoundBids(
                embedding=matching.embedding,
                target=table.target,
                broadcast=broadcast,
                count=count,
                batch=batch,
                sent=np.array(table.sent.get(name, []), dtype=np.int64),
                guarantee=matching.owners,
                salt=matching.salt,
            ),
            to=matching.curator,
        )
        for name in table.playing
    ]
    made = {}
    for ask, reply in zip(asks, (yield asks), strict=True):
        bid = _read_bid(reply, table.sent.get(ask.owner, []), batch)
        if isinstance(bid, str):
            table.drop(ask.owner, bid)
        elif len(bid.index):
            made[ask.owner] = bid
    return made


def _read_bid(reply: Any, sent: list[int], batch: int) -> _Bid | str:
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
    if len(set(index.tolist())) != len(index) or set(index.tolist()) & set(sent):
        return "it bids with a point that it has sent"
    return _Bid(scores, index)


def _points(table: _Table, matching: Matching, bids: Mapping[str, _Bid], slope: FloatArray) -> Learner[None]:
    asks = [
        Ask(
            name,
            RoundPoints(index=bid.index, guarantee=matching.owners, salt=matching.salt),
            to=matching.curator,
        )
        for name, bid in bids.items()
    ]
    if not asks:
        return
    for ask, reply in zip(asks, (yield asks), strict=True):
        bid = bids[ask.owner]
        points = _checked_points(table, ask.owner, reply, bid, slope)
        if isinstance(points, str):
            table.drop(ask.owner, points)
            table.failed = True
        else:
            table.pool += points
            table.sent.setdefault(ask.owner, []).extend(bid.index.tolist())


def _checked_points(table: _Table, owner: str, reply: Any, bid: _Bid, slope: FloatArray) -> list[Point] | str:
    """The points that came, or what is wrong with them."""
    points = _read_points(owner, reply, bid, table.embedding)
    if isinstance(points, str):
        return points
    table.seen += len(points)
    return _fault(points, bid, slope, table) or points


def _read_points(owner: str, reply: Any, bid: _Bid, embedding: FourierEmbedding) -> list[Point] | str:
    if isinstance(reply, Absent):
        return reply.reason
    assert isinstance(reply, Disclosure)
    try:
        X = np.asarray(reply.rows["X"], dtype=np.float64)
        y = reply.rows["y"] if "y" in reply.rows else [None] * len(X)
        features = embedding.transform(X)
        rows = zip(bid.index.tolist(), X, y, features, strict=True)
        return [Point(owner, int(number), *rest) for number, *rest in rows]
    except (KeyError, TypeError, ValueError, InputError):
        return "its points cannot be read"


def _fault(points: list[Point], bid: _Bid, slope: FloatArray, table: _Table) -> str:
    """What is wrong with points: not finite, sent before, or not what was bid."""
    X = np.array([point.X for point in points])
    if not np.isfinite(X).all():
        return "a point that is not finite"
    before = [point.X.tobytes() for point in (*table.pool, *table.chosen) if point.owner == points[0].owner]
    now = [row.tobytes() for row in X]
    if len(set(now)) != len(now) or set(now) & set(before):
        return "a point twice"
    scores = _scores(points, slope)
    if not np.allclose(scores, bid.scores, rtol=TOLERANCE, atol=TOLERANCE * float(np.abs(slope).sum())):
        return "a point that does not match its bid"
    return ""


def _allocation(table: _Table, roll: Roll, plan: RoundPlan, variance: float) -> Allocation:
    names = [point.owner for point in table.chosen]
    return Allocation(
        rows={name: names.count(name) for name in roll.sizes},
        sizes=dict(roll.sizes),
        suitable={},
        target=table.target,
        variance=variance,
        releases=tuple(roll.releases),
        absent=tuple(roll.absent),
        against=plan.against,
    )


def _summary(table: _Table, allocation: Allocation) -> Summary:
    if not table.chosen:
        raise InputError("No owner sent a point that can be used.")
    labels = [point.y for point in table.chosen]
    return Summary(
        X=np.array([point.X for point in table.chosen]),
        y=None if any(label is None for label in labels) else np.array(labels),
        owner=np.array([point.owner for point in table.chosen]),
        allocation=allocation,
        points_seen=table.seen,
        faults=tuple(table.faults),
        embedding=table.embedding,
    )


__all__ = ["Point", "greedy_rounds"]
