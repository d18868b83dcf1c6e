"""Squared errors of a regressor: what is asked, and what it costs.

*Proof.* A prediction is held to the label's public bounds and its squared error to the public L; u is that
error over L, between 0 and 1, truncated to a public grid, and a function of that record alone. A record adds
1 to the number of rows, u to the sum of errors and the truncated u² to the sum of their squares. Each of the
three moves by at most 1 with one record more or less. Another record in its place moves each of the last two
by at most 1, since both values are between 0 and 1, and the number of rows, which is public then, not at
all: it is not asked for. A unit of at most m records moves each by m times as much. The parts of the budget
add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from privada import _check
from privada.exceptions import InputError
from privada.methods.hypotheses.forms import Hypothesis
from privada.methods.linear.questions import public
from privada.privacy.bounds import Grid
from privada.privacy.codec import one_of
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Mechanism, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PACE, Question

GRID = Grid(-20)
SHARES = {"rows": 0.25, "errors": 0.5, "squares": 0.25}  # of the budget, or of its squared mu


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ErrorMoments(Question):
    """Ask how far a regressor is off: the sum of squared errors, and what tells how sure that is.

    Parameters
    ----------
    hypothesis : Hypothesis
        With one score, in the label's units.
    largest : float
        Squared errors are held to this public bound.

    Privacy
    -------
    Unit and relation are the guarantee's. Each of the sums has sensitivity 1, times the rows of a person; the
    budget is divided among them. Proof: above and privacy.md, section 6.8.
    """

    hypothesis: Hypothesis = field(metadata=one_of(Hypothesis, path="h/"))
    largest: float
    kind: ClassVar[str] = "evaluation.errors"
    answered_by: ClassVar[str] = "privada.methods.evaluation.owner.answer:answer_errors"

    def validate(self) -> None:
        """Check every public parameter by name."""
        given: object = self.hypothesis
        if not isinstance(given, Hypothesis) or given.outputs != 1:
            raise InputError("Expected hypothesis to be a Hypothesis with one score.")
        _check.positive(largest=self.largest)

    def fits(self, schema: Any) -> None:
        """Check label and hypothesis against the owner's schema, before anything is charged."""
        public.numeric_label(schema)
        self.hypothesis.fits_scores(schema.width, 1)

    def seconds(self, schema: Any, *, rows: int) -> float:
        """Each row goes through the hypothesis."""
        width = int(schema.width)
        return rows * (width / PACE + self.hypothesis.seconds(width))

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows is asked for: it is public where rows are replaced."""
        return self.guarantee.relation is Relation.ADD_REMOVE

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return dict.fromkeys(self.shares(), (1,))

    def shares(self) -> dict[str, float]:
        """The part of the budget of each draw."""
        kept = {name: share for name, share in SHARES.items() if self.counts_rows or name != "rows"}
        return {name: share / sum(kept.values()) for name, share in kept.items()}

    def planned(self) -> Plan:
        """One draw for each sum."""
        rows, draws = float(self.guarantee.unit.max_rows), dict[str, Mechanism]()
        if isinstance(self.guarantee, PureDP):
            for name, share in self.shares().items():
                epsilon = share * self.guarantee.epsilon
                draws[name] = Laplace.calibrated(sensitivity=rows, epsilon=epsilon, grid=GRID)
            return Plan(draws=draws)
        mu, joint = self.guarantee.gaussian_mu(), 0.0
        for name, share in self.shares().items():
            draw = Gaussian.calibrated(sensitivity=rows, mu=mu * math.sqrt(share), grid=GRID)
            draws[name], joint = draw, joint + draw.mu**2
        return Plan(draws=draws, event=gaussian_event(math.sqrt(joint)))


__all__ = ["GRID", "ErrorMoments"]
