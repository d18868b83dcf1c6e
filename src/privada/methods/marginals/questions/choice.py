"""The best of several public hypotheses, by the exponential mechanism: what is asked, and what it costs."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import ClassVar

from privada import _check
from privada.exceptions import InputError
from privada.methods.hypotheses.forms import Hypothesis
from privada.privacy.codec import several_of
from privada.privacy.guarantee import ZCDP, PureDP
from privada.privacy.mechanism import Exponential, Plan
from privada.privacy.release import PublicSchema, Question

LARGEST = 1000
TRIALS_SECONDS = 120.0  # by the clock, on public rows, for all candidates together


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HypothesisChoice(Question):
    """Ask which of several public hypotheses labels the owner's rows best.

    Parameters
    ----------
    candidates : tuple of Hypothesis
    n_classes : int

    Privacy
    -------
    A candidate's score is the number of rows that it labels correctly. Adding,
    removing or replacing one row moves each score by at most 1, a person with m
    rows by at most m. The exponential mechanism at ε is ε-private, and its loss
    has range ε, so it is (ε²/8)-zCDP.
    """

    candidates: tuple[Hypothesis, ...] = field(metadata=several_of(Hypothesis, path="", inner="h/"))
    n_classes: int = 2
    kind: ClassVar[str] = "marginals.choice"
    answered_by: ClassVar[str] = "privada.methods.marginals.owner.answer:answer_choice"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "candidates", tuple(self.candidates))
        if not 2 <= len(self.candidates) <= LARGEST:
            raise InputError(f"Expected from 2 to {LARGEST} candidates, got {len(self.candidates)}.")
        if not all(isinstance(candidate, Hypothesis) for candidate in self.candidates):
            raise InputError("Expected candidates to be hypotheses.")
        _check.count(least=2, n_classes=self.n_classes)
        if not isinstance(self.guarantee, (PureDP, ZCDP)):
            raise InputError(f"A choice is asked for epsilon or rho, not for {self.guarantee}.")

    def fits(self, schema: PublicSchema) -> None:
        """Check classes and every candidate against the owner's schema."""
        if self.n_classes != len(schema.classes):
            raise InputError(f"Expected n_classes to be {len(schema.classes)}, got {self.n_classes}.")
        began = time.monotonic()
        for candidate in self.candidates:
            candidate.fits(schema.width, self.n_classes)
            if time.monotonic() - began > TRIALS_SECONDS:
                raise InputError(f"The candidates take more than {TRIALS_SECONDS:g} seconds to try.")

    def seconds(self, schema: PublicSchema, *, rows: int) -> float:
        """Each row goes through every candidate."""
        return rows * sum(candidate.seconds(schema.width) for candidate in self.candidates)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"choice": (1,)}

    def planned(self) -> Plan:
        """One choice."""
        guarantee = self.guarantee
        assert isinstance(guarantee, (PureDP, ZCDP))
        budget = guarantee.epsilon if isinstance(guarantee, PureDP) else math.sqrt(8 * guarantee.rho)
        rows = self.guarantee.unit.max_rows
        return Plan(draws={"choice": Exponential(sensitivity=rows, budget=budget)})


__all__ = ["HypothesisChoice"]
