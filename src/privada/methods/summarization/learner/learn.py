"""The consumer's and the curator's side: match noisy means, allocate, gather. Releases in, a summary out.

The steps of PRIVACY, section 6.6: g~ from the consumer; from each owner a noisy sum, then a
noisy count; an allocation, which is post-processing; and one disclosure from each owner that
contributes. No summary is ever broadcast. Who does not answer is left out; that is a public fact. Whether an
answer could be used is none, and decides nothing that others see.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.summarization.learner.allocation import Reference, allocate, shares
from privada.methods.summarization.learner.gathering import Gathered, Summary
from privada.methods.summarization.learner.seed import Seed
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.methods.summarization.questions.protocol import ANY_COALITION
from privada.methods.summarization.questions.rows import EmbeddedRows, SummaryRows
from privada.methods.summarization.questions.sums import EmbeddingSum, NearCount
from privada.parties.protocol import Ask, Foreseen, Learner, only_releases
from privada.privacy.guarantee import ZCDP, Guarantee, Pure
from privada.privacy.relation import Relation
from privada.privacy.release import Disclosure, Release

FloatArray = npt.NDArray[np.float64]
SUM_SHARE = 0.75  # of an owner's budget, for its noisy sum; the rest is its count's


@dataclass(frozen=True)
class Absent:
    """What stands for an answer that did not come: too late, refused, or not to be read.

    ``opened`` says that it failed while the rows were open. Rows may have been the cause, so nobody may be
    asked for more because of it.
    """

    owner: str
    reason: str
    opened: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Matching:
    """The public settings of one summary.

    Parameters
    ----------
    embedding : FourierEmbedding
    size : int
        p, the rows of the summary.
    validation, owners : Guarantee
        For the validation set, and for each owner's rows, each on a ledger of its own. Sizes are
        public, so the relation is replace-one.
    curator : str
        The name under which owners' policies know the curator.
    denoised : bool
        Whether owners remove from g~ what their rows cannot express.
    embedded : bool
        Whether the curator receives embeddings instead of rows: not differential privacy either.
    seed : Seed, optional
        Rows that are in the training set already (D_init), public or released.
    salt : str
        Tells apart two runs.
    """

    embedding: FourierEmbedding
    size: int
    validation: Guarantee
    owners: Guarantee
    curator: str = "curator"
    denoised: bool = True
    embedded: bool = False
    seed: Seed | None = None
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
        """What the consumer is asked."""
        return EmbeddingSum(embedding=self.embedding, guarantee=self.validation, salt=self.salt)

    def sum_question(self) -> EmbeddingSum:
        """What every owner is asked first."""
        return EmbeddingSum(
            embedding=self.embedding, guarantee=part_of(self.owners, SUM_SHARE), salt=self.salt
        )

    def near_question(self, reference: Reference) -> NearCount:
        """What every owner is asked next."""
        return NearCount(
            embedding=self.embedding,
            direction=reference.direction,
            threshold=reference.threshold,
            guarantee=part_of(self.owners, 1 - SUM_SHARE),
            salt=self.salt,
        )

    def wanted(self, target: FloatArray, variance: float, size: int) -> tuple[FloatArray, float]:
        """The mean that ``size`` rows must have beside the seed set, and the noise on it."""
        return (target, variance) if self.seed is None else self.seed.left(target, variance, size)

    def rows_question(self, allocation: Allocation, *, size: int, skip: int = 0) -> SummaryRows:
        """What an owner that contributes is asked for."""
        target, variance = self.wanted(allocation.target, allocation.variance, sum(allocation.rows.values()))
        return self._rows(target, variance=variance if self.denoised else 0.0, size=size, skip=skip)

    def _rows(self, target: FloatArray, **rest: Any) -> SummaryRows:
        kind = EmbeddedRows if self.embedded else SummaryRows
        return kind(embedding=self.embedding, target=target, guarantee=self.owners, salt=self.salt, **rest)

    def foreseen(self, consumer: str, owners: Mapping[str, int]) -> Iterator[Ask]:
        """What is charged in all; directions and thresholds, which follow from answers, cost nothing."""
        yield Ask(consumer, self.validation_question())
        names = [name for name, size in owners.items() if size]
        nowhere = Reference(direction=np.zeros(self.embedding.dimension), threshold=0.0)
        for name in names if len(names) > 1 else ():
            yield Ask(name, self.sum_question())
            yield Ask(name, self.near_question(nowhere))

    def foreseen_rows(self, owners: Mapping[str, int]) -> Iterator[Ask]:
        """Whom the curator may ask for rows: each owner that has some."""
        some = self._rows(np.zeros(self.embedding.dimension), size=1)
        return (Ask(name, some, to=self.curator) for name, size in owners.items() if size)


def part_of(guarantee: Guarantee, share: float) -> Guarantee:
    """A share of a budget: of ε if it is pure, else of μ² (exact for Gaussian noise)."""
    if isinstance(guarantee, Pure):
        return replace(guarantee, epsilon=guarantee.epsilon * share)
    rho = share * guarantee.gaussian_mu() ** 2 / 2
    return ZCDP(rho=rho * (1 - 1e-12), relation=guarantee.relation, unit=guarantee.unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Allocation:
    """How many rows each owner contributes, and what that was made from.

    Attributes
    ----------
    rows : mapping of owner's name to int
    sizes : mapping of owner's name to int
        Public sizes, of the owners that take part.
    suitable : mapping of owner's name to float
        Estimated share of rows that are nearer to the validation set than to the pool.
    target : array of shape (features,)
        The noisy validation mean.
    variance : float
        Of the noise on each of its coordinates.
    releases : tuple of Release
    absent : tuple of Absent
        Who did not answer.
    against : str
        Whom the owners' guarantee holds against.

    Privacy
    -------
    After `match`, post-processing of releases. After rounds, ``rows`` counts what is in the summary, an exact
    number that depends on rows: for the curator and the consumer only.
    """

    rows: Mapping[str, int]
    sizes: Mapping[str, int]
    suitable: Mapping[str, float]
    target: FloatArray
    variance: float
    releases: tuple[Release, ...]
    absent: tuple[Absent, ...] = ()
    against: str = ANY_COALITION

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.releases[0].guarantee),
            "against": self.against,
            "stamps": sorted({stamp for release in self.releases for stamp in release.stamps}),
            "rows": dict(self.rows),
            "suitable": {name: round(share, 4) for name, share in self.suitable.items()},
            "noise_per_coordinate": math.sqrt(self.variance),
            "absent": {each.owner: each.reason for each in self.absent},
        }

    def resized(self, total: int) -> Allocation:
        """The same releases, for a summary of another size: post-processing."""
        enough(self.sizes, total)
        counts = allocate(list(self.sizes.values()), list(self.suitable.values()), total=total)
        return replace(self, rows={name: int(n) for name, n in zip(self.sizes, counts, strict=True)})

    def without(self, lost: Mapping[str, int], absent: Iterable[Absent]) -> Allocation:
        """The same total over the owners that are left; rows that were asked for stay asked for."""
        gone = tuple(absent)
        names = [name for name in self.sizes if name not in {each.owner for each in gone}]
        room = np.array([self.sizes[name] - self.rows[name] for name in names], dtype=np.int64)
        more = min(sum(lost.values()), int(room.sum()))
        rows = {name: self.rows[name] for name in names}
        if more:
            extra = allocate(room, np.array([self.suitable[name] for name in names]), total=more)
            rows = {name: rows[name] + int(n) for name, n in zip(names, extra, strict=True)}
        return replace(
            self,
            rows=rows,
            sizes={name: self.sizes[name] for name in names},
            suitable={name: self.suitable[name] for name in names},
            absent=self.absent + gone,
        )


@dataclass(kw_only=True)
class Roll:
    """Who takes part, and what was released so far."""

    sizes: dict[str, int]
    releases: list[Release] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)

    def take(self, replies: Iterable[Any]) -> list[Release]:
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
) -> Learner[Allocation]:
    """Ask the consumer and the owners, and allocate: all that is differentially private.

    Parameters
    ----------
    consumer : str
    validation_size : int
        m, public.
    owners : mapping of name to int
        Public sizes n_k. An owner without rows is not asked.
    matching : Matching
    """
    return Foreseen(_match(consumer, validation_size, owners, matching), matching.foreseen(consumer, owners))


def _match(
    consumer: str, validation_size: int, owners: Mapping[str, int], matching: Matching
) -> Learner[Allocation]:
    m = _check.count(validation_size=validation_size)
    roll = Roll(sizes={name: n for name, n in owners.items() if _check.count(least=0, size=n) > 0})
    enough(roll.sizes, matching.size)
    question = matching.validation_question()
    reply = yield Ask(consumer, question)
    if isinstance(reply, Absent):
        raise InputError(f"The consumer did not answer: {reply.reason.rstrip('.')}.")
    only_releases(reply)
    roll.releases.append(reply)
    target, variance = reply["sum"] / m, question.variance / m**2
    suitable = dict.fromkeys(roll.sizes, 1.0)
    if len(roll.sizes) > 1:  # a single owner contributes everything: nothing to ask, nothing to pay
        suitable = yield from _suitable(roll, *matching.wanted(target, variance, matching.size), matching)
    enough(roll.sizes, matching.size)
    counts = allocate(list(roll.sizes.values()), list(suitable.values()), total=matching.size)
    return Allocation(
        rows={name: int(n) for name, n in zip(roll.sizes, counts, strict=True)},
        sizes=dict(roll.sizes),
        suitable=suitable,
        target=target,
        variance=variance,
        releases=tuple(roll.releases),
        absent=tuple(roll.absent),
    )


def _suitable(
    roll: Roll, target: FloatArray, variance: float, matching: Matching
) -> Learner[dict[str, float]]:
    """Noisy sums, a reference, noisy counts, and the shares that they make plausible."""
    first = matching.sum_question()
    sums = roll.take((yield [Ask(name, first) for name in roll.sizes]))
    total = sum(roll.sizes.values())
    pooled = np.sum([release["sum"] for release in sums], axis=0) / total
    noise = (variance, len(sums) * first.variance / total**2)
    second = matching.near_question(Reference.between(target, pooled, noise=noise))
    counts = roll.take((yield [Ask(name, second) for name in roll.sizes]))
    found = shares(
        list(roll.sizes.values()),
        [float(release["count"][0]) for release in counts],
        variance=second.variance,
    )
    return dict(zip(roll.sizes, found.tolist(), strict=True))


def enough(sizes: Mapping[str, int], size: int) -> None:
    """Refuse a summary larger than all rows together."""
    if sum(sizes.values()) < size:
        raise InputError(
            f"Expected size to be at most {sum(sizes.values())}, all rows of the owners that take part, "
            f"got {size}."
        )


def summarise(
    consumer: str, validation_size: int, owners: Mapping[str, int], matching: Matching
) -> Learner[Summary]:
    """Match, then gather: the curator receives exactly the rows that were allocated.

    An owner that drops out now is replaced by the others, for dropping out is a public fact: they are asked
    for what it was asked for and did not answer. Points that are not what was asked for (not finite,
    repeated, of another width, too few) are left out and *not* replaced, nor is an answer that failed while
    the rows were open: who is asked for more must not depend on another owner's rows.
    """
    asks = (*matching.foreseen(consumer, owners), *matching.foreseen_rows(owners))
    return Foreseen(_summarise(consumer, validation_size, owners, matching), asks)


def _summarise(
    consumer: str, validation_size: int, owners: Mapping[str, int], matching: Matching
) -> Learner[Summary]:
    allocation = yield from match(consumer, validation_size, owners, matching)
    return (yield from gather(allocation, matching))


def gather(allocation: Allocation, matching: Matching) -> Learner[Summary]:
    """Ask each owner for the rows that it was allocated; releases serve any size (`Allocation.resized`)."""
    gathered = Gathered(embedding=matching.embedding, embedded=matching.embedded)
    asked = dict.fromkeys(allocation.sizes, 0)
    while missing := {name: n - asked[name] for name, n in allocation.rows.items() if n > asked[name]}:
        asks = [
            Ask(
                name,
                matching.rows_question(allocation, size=n, skip=asked[name]),
                to=matching.curator,
            )
            for name, n in missing.items()
        ]
        gone: list[Absent] = []
        for ask, reply in zip(asks, (yield asks), strict=True):
            if isinstance(reply, Absent) and not reply.opened:
                gone.append(reply)
                continue
            asked[ask.owner] += missing[ask.owner]
            if isinstance(reply, Absent):
                gathered.note(ask.owner, reply.reason)
            else:
                assert isinstance(reply, Disclosure)
                gathered.add(ask.owner, reply.rows, most=missing[ask.owner])
        if gone:  # by what each was asked for and answered, not by what was of use: that depends on rows
            lost = {each.owner: missing[each.owner] for each in gone}
            allocation = allocation.without(lost, gone)
    return gathered.summary(allocation)


__all__ = ["Absent", "Allocation", "Matching", "Roll", "enough", "gather", "match", "part_of", "summarise"]
