"""Kinds that others have replaced: their files are read, and owners answer them no more.

Ledgers, receipts and releases name a question by its digest, and saved models hold the question itself. So
files of these kinds are read as the same questions, and what they hold is kept as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy.typing as npt

from privada.exceptions import InputError
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Question


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RetiredQuestion(Question):
    """A question that earlier versions asked.

    Privacy
    -------
    It is refused before anything is charged, so no row is opened for it.
    """

    plain: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    replaced_by: ClassVar[str]

    def parts(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Plain values and arrays as they were written."""
        return dict(self.plain), dict(self.arrays)

    @classmethod
    def from_parts(
        cls, plain: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], *, guarantee: Guarantee, salt: str
    ) -> Self:
        """Keep the parts of a file."""
        return cls(plain=plain, arrays=arrays, guarantee=guarantee, salt=salt)

    def planned(self) -> NoReturn:
        """Refuse the question: an owner asks for the plan before it charges."""
        raise InputError(
            f"Questions of kind {self.kind} are no longer answered; ask for {self.replaced_by} instead."
        )


class RetiredSelection(RetiredQuestion):
    """The choice of the best of a few models, which no method asked for; evaluating each tells more."""

    kind: ClassVar[str] = "reweighting.selection"
    replaced_by: ClassVar[str] = "evaluation.errors"


class RetiredMarginalsDescent(RetiredQuestion):
    """The descent of a linear model of labels."""

    kind: ClassVar[str] = "marginals.descent"
    replaced_by: ClassVar[str] = "marginals.linear"


class RetiredReweightingDescent(RetiredQuestion):
    """The descent on public features from a public warm start."""

    kind: ClassVar[str] = "reweighting.descent"
    replaced_by: ClassVar[str] = "reweighting.linear"


class RetiredTransportDescent(RetiredQuestion):
    """The descent in the target's coordinates."""

    kind: ClassVar[str] = "transport.descent"
    replaced_by: ClassVar[str] = "transport.linear"


__all__ = [
    "RetiredMarginalsDescent",
    "RetiredQuestion",
    "RetiredReweightingDescent",
    "RetiredSelection",
    "RetiredTransportDescent",
]
