"""Rows for the curator: questions that disclose. They carry no guarantee, and say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.methods.summarization.questions.rounds import disclosure_plan, rows_shapes
from privada.methods.summarization.questions.sums import vector
from privada.privacy.codec import inlined
from privada.privacy.mechanism import Plan
from privada.privacy.release import PublicSchema, Question

MOST_ROWS = 10_000_000


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SummaryRows(Question):
    """Ask an owner for the rows of its own that match a noisy validation mean best.

    Parameters
    ----------
    embedding : FourierEmbedding
    target : array of shape (features,)
        The noisy mean, public.
    variance : float
        Of the noise on each coordinate of ``target``; the owner removes what its own rows cannot
        express (`denoise`). 0 matches the target as it is.
    size : int
        How many rows, all different. An owner of fewer sends all it has.
    skip : int
        Leave out this many rows that would come first: they were sent before.

    Privacy
    -------
    None from the curator: this is a disclosure of raw rows, which the owner's policy must allow for
    the curator by name. Over an exchange the rows are encrypted for the curator, in a message whose length
    follows from ``size`` and the public schema. The question itself follows from noisy releases and is not
    sealed.
    """

    embedding: FourierEmbedding = field(metadata=inlined(FourierEmbedding))
    target: FloatArray
    size: int
    variance: float = 0.0
    skip: int = 0
    kind: ClassVar[str] = "summarization.rows"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner.answer:answer_rows"
    discloses: ClassVar[bool] = True

    def validate(self) -> None:
        """Check every public parameter by name."""
        if not isinstance(self.embedding, FourierEmbedding):
            raise InputError(f"Expected a FourierEmbedding, got {type(self.embedding).__name__}.")
        object.__setattr__(self, "target", vector(self.embedding, target=self.target))
        object.__setattr__(self, "variance", _check.non_negative(variance=self.variance))
        if _check.count(size=self.size) + _check.count(least=0, skip=self.skip) > MOST_ROWS:
            raise InputError(f"Expected size and skip of at most {MOST_ROWS:,} together.")

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        if self.embedding.width != schema.width:
            raise InputError(f"Expected an embedding of width {schema.width}, got {self.embedding.width}.")

    def planned(self) -> Plan:
        """No draw: nothing here is differentially private."""
        return disclosure_plan()

    def disclosed_shapes(self, schema: PublicSchema) -> dict[str, tuple[int, ...]]:
        """As many rows as are asked for, whether or not there are as many different ones."""
        return rows_shapes("X", self.size, schema.width, schema)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EmbeddedRows(SummaryRows):
    """Ask for the same rows' embeddings and labels only, for a curator that is trusted less.

    Privacy
    -------
    **This is not differential privacy.** Embeddings tell all pairwise distances of the rows, and
    with enough features the rows themselves; they only spare the curator the raw columns. Kernel
    models can be trained on them.
    """

    kind: ClassVar[str] = "summarization.embeddings"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner.answer:answer_embeddings"

    def disclosed_shapes(self, schema: PublicSchema) -> dict[str, tuple[int, ...]]:
        """As many embeddings as are asked for."""
        return rows_shapes("H", self.size, self.embedding.dimension, schema)


__all__ = ["EmbeddedRows", "SummaryRows"]
