"""The public settings of one summary, and the questions that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.learner.allocation import Allocation, Reference
from privada.methods.summarization.learner.initial_rows import InitialRows
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.methods.summarization.questions.rows import EmbeddedRows, SummaryRows
from privada.methods.summarization.questions.sums import EmbeddingSum, NearCount
from privada.parties.protocol import AskOwner
from privada.privacy.guarantee import Guarantee, split_budget
from privada.privacy.relation import Relation

SUM_SHARE = 0.75  # of an owner's budget, for its noisy sum; the rest is its count's


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
        """What the consumer is asked."""
        return EmbeddingSum(embedding=self.embedding, guarantee=self.validation, salt=self.salt)

    @property
    def _parts(self) -> tuple[Guarantee, Guarantee]:
        """An owner's budget, for the sum and for the count."""
        for_sum, for_count = split_budget(self.owners, SUM_SHARE, gaussian=True)
        return for_sum, for_count

    def sum_question(self) -> EmbeddingSum:
        """What every owner is asked first."""
        return EmbeddingSum(embedding=self.embedding, guarantee=self._parts[0], salt=self.salt)

    def near_question(self, reference: Reference) -> NearCount:
        """What every owner is asked next."""
        return NearCount(
            embedding=self.embedding,
            direction=reference.direction,
            threshold=reference.threshold,
            guarantee=self._parts[1],
            salt=self.salt,
        )

    def wanted_mean(self, target: FloatArray, variance: float, size: int) -> tuple[FloatArray, float]:
        """The mean that ``size`` rows must have beside the initial rows, and the noise on it."""
        return (target, variance) if self.initial is None else self.initial.left(target, variance, size)

    def rows_question(self, allocation: Allocation, *, size: int, skip: int = 0) -> SummaryRows:
        """What an owner that contributes is asked for."""
        target, variance = self.wanted_mean(
            allocation.target, allocation.variance, sum(allocation.rows.values())
        )
        return self._rows(target, variance=variance if self.denoised else 0.0, size=size, skip=skip)

    def _rows(self, target: FloatArray, **rest: Any) -> SummaryRows:
        kind = EmbeddedRows if self.embedded else SummaryRows
        return kind(embedding=self.embedding, target=target, guarantee=self.owners, salt=self.salt, **rest)

    def planned_asks(self, consumer: str, owners: Mapping[str, int]) -> Iterator[AskOwner]:
        """What is charged in all; directions and thresholds, which follow from answers, cost nothing."""
        yield AskOwner(consumer, self.validation_question())
        names = [name for name, size in owners.items() if size]
        nowhere = Reference(direction=np.zeros(self.embedding.dimension), threshold=0.0)
        for name in names if len(names) > 1 else ():
            yield AskOwner(name, self.sum_question())
            yield AskOwner(name, self.near_question(nowhere))

    def planned_row_asks(self, owners: Mapping[str, int]) -> Iterator[AskOwner]:
        """Whom the curator may ask for rows: each owner that has some."""
        some = self._rows(np.zeros(self.embedding.dimension), size=1)
        return (AskOwner(name, some, to=self.curator) for name, size in owners.items() if size)


__all__ = ["Matching"]
