"""What the curator does: match noisy means, allocate, gather. Releases in, a summary out.

The steps of privacy.md, section 6.6: g~ from the consumer; from each owner a noisy sum, then a
noisy count; an allocation, which is post-processing; and one disclosure from each owner that
contributes. No summary is ever broadcast. An owner that does not answer is left out, which is a public
fact. Whether an answer could be used is not public, and decides nothing that others see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.forecast import Forecast, band_around
from privada.methods.summarization.learner.summary import (
    Allocation,
    PointCollection,
    Reference,
    Summary,
    allocate,
    check_size,
    estimate_shares,
)
from privada.methods.summarization.questions.matching import (
    EmbeddedRows,
    EmbeddingSum,
    FourierEmbedding,
    NearCount,
    SummaryRows,
)
from privada.parties.protocol import Absent, AskOwner, Inquiry, Learner, only_releases
from privada.privacy.guarantee import Guarantee, split_budget
from privada.privacy.relation import Relation
from privada.privacy.release import Release

SUM_SHARE = 0.75  # of an owner's budget, for its noisy sum; the rest is its count's

BASELINE = "a random choice of as many rows (distance of mean features from the validation set)"
START, GAIN = 0.1, 0.85  # of the logarithm of the ratio: where nothing is heard, and what can be gained
HALF_HEARD = 0.75  # squared length of the noise, embedded rows having length 1, at which half of it is
BAND = (0.57, 0.51)  # below and above


@dataclass(frozen=True, kw_only=True, eq=False)
class InitialRows:
    """The mean embedding of rows that are in the training set already (D_init), and their public number.

    A summary of p rows beside q rows of mean h₀ has the mean g over all exactly if the p rows have the mean
    ``((q + p) g - q h₀)/p``. So initial rows only move what owners match; nothing of the protocol changes.
    Rows of people are protected like all others: their holder answers an `EmbeddingSum`, charged to a
    ledger of its own, and its noise adds to that on g.

    Attributes
    ----------
    mean : array of shape (features,)
    size : int
    variance : float
        Of the noise on each coordinate of ``mean``; 0 if the rows are public.
    """

    mean: FloatArray
    size: int
    variance: float = 0.0

    @classmethod
    def public(cls, rows: npt.ArrayLike, embedding: FourierEmbedding) -> Self:
        """Of rows that are declared public.

        >>> embedding = FourierEmbedding.of(width=2, n_features=4, gamma=1.0, random_state=0)
        >>> InitialRows.public([[0.0, 0.0]], embedding).size
        1
        """
        points = _check.matrix(rows=rows, width=embedding.width)
        return cls(mean=embedding.mean(points), size=len(points))

    @classmethod
    def released(cls, question: EmbeddingSum, release: Release, *, size: int) -> Self:
        """Of rows that stay with their holder: from its answer, and its public number of rows."""
        only_releases(release)
        if release.question != question.digest:
            raise InputError("Expected the release that answers this question; it answers another one.")
        n = _check.count(size=size)
        return cls(mean=release["sum"] / n, size=n, variance=question.variance / n**2)

    def left(self, target: FloatArray, variance: float, size: int) -> tuple[FloatArray, float]:
        """Mean that ``size`` more rows must have for all to have the target's, and the noise on it."""
        q, p = self.size, _check.count(size=size)
        # Noise on both means adds, each by its weight in the difference.
        mean = ((q + p) * target - q * self.mean) / p
        return np.asarray(mean), ((q + p) ** 2 * variance + q**2 * self.variance) / p**2


@dataclass(frozen=True, kw_only=True, eq=False)
class Matching:
    """The public settings of one summary, and the questions that follow from them.

    Parameters
    ----------
    embedding : FourierEmbedding
    size : int
        p, the rows of the summary.
    validation, owners : Guarantee
        For the validation set, and for each owner's rows, each on a ledger of its own. Sizes are
        public, so the relation is replace-one.
    curator : str, default="curator"
        The name under which owners' policies know the curator.
    denoised : bool, default=True
        Whether owners remove from g~ what their rows cannot express.
    embedded : bool, default=False
        Whether the curator receives embeddings instead of rows: not differential privacy either.
    initial : InitialRows, optional
        Rows that are in the training set already (D_init), public or released.
    salt : str, default=""
        Tells apart two runs.
    """

    embedding: FourierEmbedding
    size: int
    validation: Guarantee
    owners: Guarantee
    curator: str = "curator"
    denoised: bool = True
    embedded: bool = False
    initial: InitialRows | None = None
    salt: str = ""

    def __post_init__(self) -> None:
        _check.count(size=self.size)
        for name in ("validation", "owners"):
            guarantee = getattr(self, name)
            if not isinstance(guarantee, Guarantee):
                raise InputError(f"Expected {name} to be a Guarantee, got {type(guarantee).__name__}.")
            if guarantee.relation is Relation.ADD_REMOVE:
                raise InputError(
                    f"Expected {name} under replace-one: a summary needs public sizes, got {guarantee}."
                )

    def validation_question(self) -> EmbeddingSum:
        """The question to the consumer."""
        return EmbeddingSum(embedding=self.embedding, guarantee=self.validation, salt=self.salt)

    def sum_question(self) -> EmbeddingSum:
        """The first question to every owner."""
        for_sum, _ = split_budget(self.owners, SUM_SHARE, gaussian=True)
        return EmbeddingSum(embedding=self.embedding, guarantee=for_sum, salt=self.salt)

    def near_question(self, reference: Reference) -> NearCount:
        """The second question to every owner."""
        _, for_count = split_budget(self.owners, SUM_SHARE, gaussian=True)
        return NearCount(
            embedding=self.embedding,
            direction=reference.direction,
            threshold=reference.threshold,
            guarantee=for_count,
            salt=self.salt,
        )

    def wanted_mean(self, target: FloatArray, variance: float, size: int) -> tuple[FloatArray, float]:
        """The mean that ``size`` rows must have beside the initial rows, and the noise on it."""
        return (target, variance) if self.initial is None else self.initial.left(target, variance, size)

    def rows_question(self, allocation: Allocation, *, size: int, skip: int = 0) -> SummaryRows:
        """The question for rows to an owner that contributes."""
        target, variance = self.wanted_mean(
            allocation.target, allocation.variance, sum(allocation.rows.values())
        )
        return self._rows(target, variance=variance if self.denoised else 0.0, size=size, skip=skip)

    def _rows(self, target: FloatArray, **rest: Any) -> SummaryRows:
        kind = EmbeddedRows if self.embedded else SummaryRows
        return kind(embedding=self.embedding, target=target, guarantee=self.owners, salt=self.salt, **rest)

    def planned_asks(self, consumer: str, owners: Mapping[str, int]) -> Iterator[AskOwner]:
        """All that is charged; directions and thresholds, which follow from answers, cost nothing."""
        yield AskOwner(consumer, self.validation_question())
        names = [name for name, size in owners.items() if size]
        nowhere = Reference(direction=np.zeros(self.embedding.dimension), threshold=0.0)
        for name in names if len(names) > 1 else ():
            yield AskOwner(name, self.sum_question())
            yield AskOwner(name, self.near_question(nowhere))

    def planned_row_asks(self, owners: Mapping[str, int]) -> Iterator[AskOwner]:
        """One question for rows to each owner that has some: the curator may ask any of them."""
        # Any target will do: a disclosure costs nothing, and its size is not known before the counts.
        some = self._rows(np.zeros(self.embedding.dimension), size=1)
        return (AskOwner(name, some, to=self.curator) for name, size in owners.items() if size)


def forecast_summary(matching: Matching, *, validation_size: int) -> Forecast:
    """The expected ratio of distances to those of a random choice, from the public settings alone.

    The mean of the validation set is known up to noise whose size is public. How far the owners are from it,
    and whether their rows can be chosen to match it, nobody knows beforehand; so the band is wide. Constants
    were fitted to generated sets and to one table (``docs/measurements/forecasts.md``).

    Parameters
    ----------
    matching : Matching
    validation_size : int
        m, public.
    """
    m = _check.count(validation_size=validation_size)
    noise = matching.embedding.dimension * matching.validation_question().variance / m**2
    heard = HALF_HEARD / (HALF_HEARD + noise)
    return band_around(START - GAIN * heard, *BAND, BASELINE)


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
        releases = []
        for name, reply in zip(list(self.sizes), replies, strict=True):
            if isinstance(reply, Absent):
                self.absent.append(reply)
                del self.sizes[name]
            else:
                only_releases(reply)
                releases.append(reply)
        self.releases += releases
        if not self.sizes:
            raise InputError("No owner answered; there is nothing to summarise.")
        return releases


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

    def match_and_gather() -> Learner[Summary]:
        allocation = yield from _match(consumer, validation_size, owners, matching)
        return (yield from gather(allocation, matching))

    asks = (*matching.planned_asks(consumer, owners), *matching.planned_row_asks(owners))
    return Inquiry(asks, match_and_gather)


def gather(allocation: Allocation, matching: Matching) -> Learner[Summary]:
    """Ask each owner for the rows that it was allocated; releases serve any size (`Allocation.resized`).

    An owner that drops out now is replaced by the others, for dropping out is a public fact: they are asked
    for what it was asked for and did not answer. Points that are not what was asked for (not finite,
    repeated, of another width, too few) are left out and *not* replaced, nor is an answer that failed while
    the rows were open: who is asked for more must not depend on another owner's rows.
    """
    points = PointCollection(embedding=matching.embedding, embedded=matching.embedded)
    requested = dict.fromkeys(allocation.sizes, 0)
    while missing := {
        name: n - requested[name] for name, n in allocation.rows.items() if n > requested[name]
    }:
        asks = [
            AskOwner(
                name, matching.rows_question(allocation, size=n, skip=requested[name]), to=matching.curator
            )
            for name, n in missing.items()
        ]
        # An owner that failed while its rows were open counts as asked: its failure may depend on rows.
        dropped: list[Absent] = []
        for ask, reply in zip(asks, (yield asks), strict=True):
            if isinstance(reply, Absent) and not reply.opened:
                dropped.append(reply)
                continue
            requested[ask.owner] += missing[ask.owner]
            if isinstance(reply, Absent):
                points.note(ask.owner, reply.reason)
            else:
                points.add(ask.owner, reply.rows, most=missing[ask.owner])
        if dropped:  # by what each was asked for and answered, not by what was of use: that depends on rows
            lost = {absent.owner: missing[absent.owner] for absent in dropped}
            allocation = allocation.without(lost, dropped)
    return points.to_summary(allocation)


def _match(
    consumer: str, validation_size: int, owners: Mapping[str, int], matching: Matching
) -> Learner[Allocation]:
    participants = Participants.of(owners, matching.size)
    target, variance = yield from ask_validation(consumer, validation_size, participants, matching)
    suitable = dict.fromkeys(participants.sizes, 1.0)
    if len(participants.sizes) > 1:  # a single owner contributes everything: nothing to ask or pay
        mean, noise = matching.wanted_mean(target, variance, matching.size)
        suitable = yield from _ask_suitable_shares(participants, mean, noise, matching)
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
    # The noisy sums of all owners make the reference that their rows are compared with.
    first = matching.sum_question()
    sums = participants.keep_answering((yield [AskOwner(name, first) for name in participants.sizes]))
    total = sum(participants.sizes.values())
    # An owner that drops out between the two questions is left out of the counts, not of this sum.
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


__all__ = [
    "InitialRows",
    "Matching",
    "Participants",
    "ask_validation",
    "forecast_summary",
    "gather",
    "match",
    "summarise",
]
