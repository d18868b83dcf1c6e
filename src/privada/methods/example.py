"""What a method shows of itself: a small complete example, and a row of the demo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from privada.methods.pictures import Picture
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Question


@dataclass(frozen=True, kw_only=True)
class Case:
    """Generated rows of one schema, and questions about them."""

    schema: Schema
    data: Mapping[str, Any]  # keyword arguments of Owner: data, and y or person where needed
    questions: tuple[Question, ...]


@dataclass(frozen=True, kw_only=True)
class Example(Case):
    """A small complete case of a method, generated, for contracts, audits and documentation.

    Every kind of question that the method registers and that releases something is in one of its `cases`;
    kinds that need other rows, such as another kind of label, are in ``further_cases``.
    """

    inquiry: Callable[[str], Inquiry[Any]]  # of the owner's name
    estimator: Callable[[int], Any] | None = None  # of the seed of its noise; not fitted
    fit_more: Mapping[str, Any] = field(default_factory=dict)  # public arguments of its fit
    further_cases: tuple[Case, ...] = ()

    @property
    def cases(self) -> tuple[Case, ...]:
        """The example itself and its further cases."""
        return (self, *self.further_cases)

    @property
    def single_cases(self) -> tuple[Case, ...]:
        """One case for each question of all cases."""
        return tuple(
            Case(schema=case.schema, data=case.data, questions=(question,))
            for case in self.cases
            for question in case.questions
        )


@dataclass(frozen=True, kw_only=True)
class DemoRow:
    """What a method does on real data, in one row of ``privada demo``.

    Attributes
    ----------
    method, title : str
        Its name, and what was done in a sentence.
    holders : str
        Who holds what.
    guarantee : Guarantee
        What was promised to the private side, with relation and unit.
    score : str
        What the three numbers are.
    without, ours, clear : float
        The score without the private data, by the method, and without privacy.
    ledger : mapping
        Export of the ledger that paid for it.
    stamps : tuple of str
        What a reader must know beside the guarantee.
    better : "higher" or "lower"
        Which scores are better.
    surprise : str
        How the private score can be better than the one without privacy; shown where it is.
    picture : Picture, optional
        What is drawn beside the numbers.
    """

    method: str
    title: str
    holders: str
    guarantee: Guarantee
    score: str
    without: float
    ours: float
    clear: float
    ledger: Mapping[str, Any]
    stamps: tuple[str, ...] = ()
    better: str = "higher"
    surprise: str = ""
    picture: Picture | None = None

    @property
    def is_surprising(self) -> bool:
        """Whether the private score is better than the one without privacy."""
        return self.ours < self.clear if self.better == "lower" else self.ours > self.clear


__all__ = ["Case", "DemoRow", "Example"]
