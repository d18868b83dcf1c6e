"""What the curator does: match noisy means, allocate, gather. Releases in, a summary out.

The steps of privacy.md, section 6.6: g~ from the consumer; from each owner a noisy sum, then a
noisy count; an allocation, which is post-processing; and one disclosure from each owner that
contributes. No summary is ever broadcast. An owner that does not answer is left out, which is a public
fact. Whether an answer could be used is not public, and decides nothing that others see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.learner.allocation import (
    Absent,
    Allocation,
    Reference,
    allocate,
    check_size,
    estimate_shares,
)
from privada.methods.summarization.learner.collection import PointCollection
from privada.methods.summarization.learner.matching import Matching
from privada.methods.summarization.learner.summary import Summary
from privada.parties.protocol import AskOwner, Inquiry, Learner, only_releases
from privada.privacy.release import Disclosure, Release


@dataclass(kw_only=True)
class Participants:
    """The owners that take part, and what was released so far."""

    sizes: dict[str, int]
    releases: list[Release] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)

    @classmethod
    def of(cls, owners: Mapping[str, int], size: int) -> Self:
        """All owners that have rows, if they have enough for a summary of this size."""
        sizes = {name: n for name, n in owners.items() if _check.count(least=0, size=n) > 0}
        check_size(sizes, size)
        return cls(sizes=sizes)

    def keep_answering(self, replies: Iterable[Any]) -> list[Release]:
        """Releases of those who answered; the others are left out from here on."""
        came = []
        for name, reply in zip(list(self.sizes), replies, strict=True):
            if isinstance(reply, Absent):
                self.absent.append(reply)
                del self.sizes[name]
            else:
                only_releases(reply)
                came.append(reply)
        self.releases += came
        if not self.sizes:
            raise InputError("No owner answered; there is nothing to summarise.")
        return came


def match(
    consumer: str, validation_size: int, owners: Mapping[str, int], matching: Matching
) -> Inquiry[Allocation]:
    """Ask the consumer and the owners, and allocate: everything that is differentially private.

    Parameters
    ----------
    consumer : str
    validation_size : int
        m, public.
    owners : mapping of name to int
        Public sizes n_k. An owner without rows is not asked.
    matching : Matching
    """
    asks = tuple(matching.planned_asks(consumer, owners))
    return Inquiry(asks, lambda: _match(consumer, validation_size, owners, matching))


def summarise(
    consumer: str, validation_size: int, owners: Mapping[str, int], matching: Matching
) -> Inquiry[Summary]:
    """Match, then gather: the curator receives exactly the rows that were allocated.

    The parameters are those of `match`.
    """
    asks = (*matching.planned_asks(consumer, owners), *matching.planned_row_asks(owners))
    return Inquiry(asks, lambda: _summarise(consumer, validation_size, owners, matching))


def gather(allocation: Allocation, matching: Matching) -> Learner[Summary]:
    """Ask each owner for the rows that it was allocated; releases serve any size (`Allocation.resized`).

    An owner that drops out now is replaced by the others, for dropping out is a public fact: they are asked
    for what it was asked for and did not answer. Points that are not what was asked for (not finite,
    repeated, of another width, too few) are left out and *not* replaced, nor is an answer that failed while
    the rows were open: who is asked for more must not depend on another owner's rows.
    """
    points = PointCollection(embedding=matching.embedding, embedded=matching.embedded)
    asked = dict.fromkeys(allocation.sizes, 0)
    while missing := {name: n - asked[name] for name, n in allocation.rows.items() if n > asked[name]}:
        asks = [
            AskOwner(name, matching.rows_question(allocation, size=n, skip=asked[name]), to=matching.curator)
            for name, n in missing.items()
        ]
        gone: list[Absent] = []
        for ask, reply in zip(asks, (yield asks), strict=True):
            if isinstance(reply, Absent) and not reply.opened:
                gone.append(reply)
                continue
            asked[ask.owner] += missing[ask.owner]
            _keep(points, ask.owner, reply, most=missing[ask.owner])
        if gone:  # by what each was asked for and answered, not by what was of use: that depends on rows
            lost = {each.owner: missing[each.owner] for each in gone}
            allocation = allocation.without(lost, gone)
    return points.to_summary(allocation)


def _keep(points: PointCollection, owner: str, reply: Disclosure | Absent, *, most: int) -> None:
    if isinstance(reply, Absent):
        points.note(owner, reply.reason)
    else:
        points.add(owner, reply.rows, most=most)


def _summarise(
    consumer: str, validation_size: int, owners: Mapping[str, int], matching: Matching
) -> Learner[Summary]:
    allocation = yield from _match(consumer, validation_size, owners, matching)
    return (yield from gather(allocation, matching))


def _match(
    consumer: str, validation_size: int, owners: Mapping[str, int], matching: Matching
) -> Learner[Allocation]:
    participants = Participants.of(owners, matching.size)
    target, variance = yield from ask_validation(consumer, validation_size, participants, matching)
    suitable = dict.fromkeys(participants.sizes, 1.0)
    if len(participants.sizes) > 1:  # a single owner contributes everything: nothing to ask or pay
        wanted = matching.wanted_mean(target, variance, matching.size)
        suitable = yield from _ask_suitable_shares(participants, *wanted, matching)
    check_size(participants.sizes, matching.size)
    counts = allocate(list(participants.sizes.values()), list(suitable.values()), total=matching.size)
    return Allocation(
        rows={name: int(n) for name, n in zip(participants.sizes, counts, strict=True)},
        sizes=dict(participants.sizes),
        suitable=suitable,
        target=target,
        variance=variance,
        releases=tuple(participants.releases),
        absent=tuple(participants.absent),
    )


def ask_validation(
    consumer: str, validation_size: int, participants: Participants, matching: Matching
) -> Learner[tuple[FloatArray, float]]:
    """The noisy validation mean, and the variance of the noise on each of its coordinates."""
    m, question = _check.count(validation_size=validation_size), matching.validation_question()
    reply = yield AskOwner(consumer, question)
    if isinstance(reply, Absent):
        raise InputError(f"The consumer did not answer: {reply.reason.rstrip('.')}.")
    only_releases(reply)
    participants.releases.append(reply)
    return reply["sum"] / m, question.variance / m**2


def _ask_suitable_shares(
    participants: Participants, target: FloatArray, variance: float, matching: Matching
) -> Learner[dict[str, float]]:
    """Noisy sums, a reference, noisy counts, and the shares of suitable rows that they make plausible."""
    first = matching.sum_question()
    sums = participants.keep_answering((yield [AskOwner(name, first) for name in participants.sizes]))
    total = sum(participants.sizes.values())
    pooled = np.sum([release["sum"] for release in sums], axis=0) / total
    noise = (variance, len(sums) * first.variance / total**2)
    second = matching.near_question(Reference.between(target, pooled, noise=noise))
    counts = participants.keep_answering((yield [AskOwner(name, second) for name in participants.sizes]))
    estimates = estimate_shares(
        list(participants.sizes.values()),
        [float(release["count"][0]) for release in counts],
        variance=second.variance,
    )
    return dict(zip(participants.sizes, estimates.tolist(), strict=True))


__all__ = ["Participants", "ask_validation", "gather", "match", "summarise"]
