"""Binned, clipped squared errors of a regressor: what is asked, and what it costs.

Each table holds the number of rows of each cell and the sum of their squared errors,
clipped to a public B and divided by it. With K tables, at most m rows a unit and a
grid step g (privacy.md, section 6.2):

==========  ==================  =====================
            add/remove          replace-one
==========  ==================  =====================
counts, L1  m a table           2 m a table
counts, L2  m a table           √2 m a table
sums, L1    m a table           m (2 + 2 g) a table
sums, L2    m a table           m (√2 + √2 g) a table
==========  ==================  =====================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from privada import _check
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Partition
from privada.methods.hypotheses.forms import Hypothesis, Network
from privada.methods.linear.questions import public
from privada.methods.marginals.questions.outcomes import check_round, check_size, replaces, turn_of
from privada.privacy.bounds import Grid
from privada.privacy.codec import one_of, several_of
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Mechanism, Plan, gaussian_event
from privada.privacy.release import PublicSchema, Question

GRID = Grid(-20)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SquaredErrors(Question):
    """Ask how far a regressor is off, over public bins and cells.

    Parameters
    ----------
    tables : tuple of Partition
    hypothesis : Network
        With one output, in the label's units.
    largest : float
        Squared errors are clipped to this public bound.
    round, rounds : int
        Which round of how many planned ones this is.

    Privacy
    -------
    Half of the budget is for counts, half for sums; ratios are formed by the
    learner. Sensitivities are in the module's table.
    """

    tables: tuple[Partition, ...] = field(metadata=several_of(Partition, key="partitions", path=""))
    hypothesis: Network = field(metadata=one_of(Hypothesis, path="h/"))
    largest: float
    round: int = 0
    rounds: int = 1
    kind: ClassVar[str] = "marginals.squares"
    answered_by: ClassVar[str] = "privada.methods.marginals.owner.answer:answer_squares"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "tables", tuple(self.tables))
        if not self.tables or not all(isinstance(table, Partition) for table in self.tables):
            raise InputError("Expected tables to be at least one partition.")
        given: object = self.hypothesis
        if not isinstance(given, Network) or len(given.layers[-1][1]) != 1:
            raise InputError("Expected hypothesis to be a Network with one output.")
        _check.positive(largest=self.largest)
        check_round(self.round, self.rounds)
        check_size(2 * sum(table.n_cells for table in self.tables))

    def fits(self, schema: PublicSchema) -> None:
        """Check features, label and hypothesis against the owner's schema."""
        for table in self.tables:
            table.fits(schema.width)
        public.numeric_label(schema)
        self.hypothesis.fits(schema.width, 2)

    def names(self, index: int) -> tuple[str, str]:
        """Payload names of a table's counts and sums."""
        return f"counts.{index}", f"squares.{index}"

    @property
    def turn(self) -> str:
        """A round of a plan, whose name is the salt."""
        return turn_of(self.round, self.rounds, self.salt)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        tables = enumerate(self.tables)
        return {name: (table.n_cells,) for index, table in tables for name in self.names(index)}

    def planned(self) -> Plan:
        """Even shares over tables, and over counts and sums."""
        rows, twice = self.guarantee.unit.max_rows, replaces(self.guarantee)
        draws: dict[str, Mechanism] = {}
        parts = 2 * len(self.tables)
        joint = 0.0
        for index in range(len(self.tables)):
            counts, squares = self.names(index)
            if isinstance(self.guarantee, PureDP):
                epsilon = self.guarantee.epsilon / parts
                l1 = rows * (2.0 if twice else 1.0)
                slack = rows * (2 * GRID.step if twice else 0.0)
                draws[counts] = Laplace.calibrated(sensitivity=l1, epsilon=epsilon)
                draws[squares] = Laplace.calibrated(sensitivity=l1 + slack, epsilon=epsilon, grid=GRID)
                continue
            mu = self.guarantee.gaussian_mu() / math.sqrt(parts)
            l2 = rows * (math.sqrt(2) if twice else 1.0)
            wide = l2 * (1 + GRID.step) if twice else l2
            pair = (
                Gaussian.calibrated(sensitivity=l2, mu=mu, whole=True),
                Gaussian.calibrated(sensitivity=wide, mu=mu, grid=GRID),
            )
            draws[counts], draws[squares] = pair
            joint += pair[0].mu ** 2 + pair[1].mu ** 2
        if isinstance(self.guarantee, PureDP):
            return Plan(draws=draws)
        return Plan(draws=draws, event=gaussian_event(math.sqrt(joint)))


__all__ = ["GRID", "SquaredErrors"]
