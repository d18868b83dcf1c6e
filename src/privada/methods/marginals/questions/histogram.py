"""How numeric labels lie between their public bounds: counts over even bins of the label.

*Proof.* A label is held to the bounds, so a record adds 1 to one bin, whatever its features are. One record
more or less moves the counts by 1 in L2, another record in its place by √2, a person's m records by m times
that. The counts are whole numbers and get discrete Gaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.methods.marginals.questions.outcomes import check_size, even_plan, replaces
from privada.privacy.mechanism import Plan
from privada.privacy.release import PublicSchema, Question


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelHistogram(Question):
    """Ask how many labels lie in each of some even bins.

    Parameters
    ----------
    low, high : float
        Public bounds of the label.
    bins : int

    Privacy
    -------
    Unit and relation are the guarantee's. L2 sensitivity 1 (add/remove) or √2 (replace-one), times the rows
    of a person. Proof: above and privacy.md, section 6.3.
    """

    low: float
    high: float
    bins: int
    kind: ClassVar[str] = "marginals.histogram"
    answered_by: ClassVar[str] = "privada.methods.marginals.owner.answer:answer_histogram"

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.gaussian(self.guarantee, "A histogram")
        _check.finite(low=self.low)
        _check.finite(high=self.high)
        if not self.low < self.high:
            raise InputError(f"Expected low below high, got {self.low!r} and {self.high!r}.")
        check_size(_check.count(least=2, bins=self.bins))

    def fits(self, schema: PublicSchema) -> None:
        """Refuse a schema without a number to predict."""
        public.numeric_label(schema)

    @property
    def edges(self) -> FloatArray:
        """Ends of the bins."""
        return np.linspace(self.low, self.high, self.bins + 1)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"counts": (self.bins,)}

    def planned(self) -> Plan:
        """One draw of all counts."""
        moved = self.guarantee.unit.max_rows * (math.sqrt(2) if replaces(self.guarantee) else 1.0)
        return even_plan(self.guarantee, ("counts",), l1=math.inf, l2=moved)


__all__ = ["LabelHistogram"]
