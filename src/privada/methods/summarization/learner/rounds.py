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

Why this is private: `privada.methods.summarization.questions.round_plan`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.methods.summarization.learner.allocation import Allocation
from privada.methods.summarization.learner.draws import AskedOwners, Draw, NoisySum
from privada.methods.summarization.learner.learn import Participants, ask_validation
from privada.methods.summarization.learner.matching import Matching
from privada.methods.summarization.learner.round_table import NO_BID, Bid, RoundTable
from privada.methods.summarization.learner.summary import Summary
from privada.methods.summarization.questions.asking_rules import Everyone
from privada.methods.summarization.questions.round_plan import RoundPlan
from privada.methods.summarization.questions.rounds import (
    Participation,
    RoundBids,
    RoundPoints,
    fill_numbers,
)
from privada.methods.summarization.questions.scoring import ranks
from privada.parties.protocol import AskOwner

T = TypeVar("T")
Rounds = Generator[AskOwner | Sequence[AskOwner] | Draw, Any, T]


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
    rule = Everyone() if table.failed else plan.rule
    chosen = yield AskedOwners(standing, rule)
    asked = {name: bid for name, bid in bids.items() if name in chosen}
    yield from _collect_points(table, matching, asked, slope)
    if table.failed and not isinstance(rule, Everyone):
        rest = {name: bid for name, bid in bids.items() if name not in chosen}
        yield from _collect_points(table, matching, rest, slope)


def _collect_points(
    table: RoundTable, matching: Matching, bids: Mapping[str, Bid], slope: FloatArray
) -> Rounds[None]:
    """Ask for the points of some bids: everybody gets a question that looks alike to all others."""
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


__all__ = ["Rounds", "greedy_rounds", "planned_round_asks", "shrink_sum"]
