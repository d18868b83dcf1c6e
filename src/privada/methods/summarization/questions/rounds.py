"""Questions of the round protocol: one charge for all rounds, then bids and points for the curator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.methods.summarization.questions.round_plan import RoundPlan
from privada.methods.summarization.questions.sums import vector
from privada.privacy.codec import inlined
from privada.privacy.mechanism import Plan, gaussian_event
from privada.privacy.release import PublicSchema, Question

NO_POINT = 2**62  # fills lists of points' numbers up to a public length


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
    Proof: `questions.round_plan` and privacy.md, section 5 (c). The answer holds nothing but
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
    answered_by: ClassVar[str] = "privada.methods.summarization.owner.answer:answer_participation"

    def validate(self) -> None:
        """Check every public parameter by name."""
        _ = self.rounds

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
    answered_by: ClassVar[str] = "privada.methods.summarization.owner.answer:answer_bids"
    discloses: ClassVar[bool] = True
    sealed: ClassVar[bool] = True

    def validate(self) -> None:
        """Check every public parameter by name."""
        for name in ("target", "broadcast"):
            object.__setattr__(self, name, vector(self.embedding, **{name: getattr(self, name)}))
        _check.count(least=0, count=self.count)
        _check.count(batch=self.batch)
        object.__setattr__(self, "sent", check_numbers(sent=self.sent))

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        if self.embedding.width != schema.width:
            raise InputError(f"Expected an embedding of width {schema.width}, got {self.embedding.width}.")

    @property
    def slope(self) -> FloatArray:
        """What a point's embedding is multiplied with."""
        return (self.count + 1) * self.target - self.broadcast

    def planned(self) -> Plan:
        """No draw: nothing here is differentially private."""
        return disclosure_plan()

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
    answered_by: ClassVar[str] = "privada.methods.summarization.owner.answer:answer_points"
    discloses: ClassVar[bool] = True
    sealed: ClassVar[bool] = True

    def validate(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "index", check_numbers(index=self.index))

    def planned(self) -> Plan:
        """No draw: nothing here is differentially private."""
        return disclosure_plan()

    def disclosed_shapes(self, schema: PublicSchema) -> dict[str, tuple[int, ...]]:
        """A row for every place of ``index``, also for those that name no point."""
        return rows_shapes("X", len(self.index), schema.width, schema)


def check_numbers(**named: Any) -> IntArray:
    """Numbers of points, checked, as a read-only copy."""
    ((name, value),) = named.items()
    given = np.asarray(value)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu") or np.any(given < 0):
        raise InputError(f"Expected {name} to be a list of whole numbers from 0 on.")
    copy = np.array(given, dtype=np.int64)
    copy.flags.writeable = False
    return copy


def fill_numbers(numbers: Sequence[int] | IntArray, length: int) -> IntArray:
    """Numbers of points and as many `NO_POINT` as are missing from a public length.

    >>> fill_numbers([3, 1], 3).tolist() == [3, 1, NO_POINT]
    True
    """
    filled = np.full(length, NO_POINT, dtype=np.int64)
    filled[: len(numbers)] = numbers
    return filled


def rows_shapes(name: str, size: int, width: int, schema: PublicSchema) -> dict[str, tuple[int, ...]]:
    """Shapes of so many rows, and of their labels if the schema has one."""
    return {name: (size, width)} | ({} if schema.label is None else {"y": (size,)})


def disclosure_plan() -> Plan:
    """The plan of a disclosure."""
    from dp_accounting import NoOpDpEvent

    return Plan(draws={}, event=NoOpDpEvent())


__all__ = [
    "NO_POINT",
    "Participation",
    "RoundBids",
    "RoundPoints",
    "check_numbers",
    "disclosure_plan",
    "fill_numbers",
    "rows_shapes",
]
