"""Questions about labels and outcomes over public bins and cells, and their prices.

A record touches one entry of each table. With K tables, at most m rows a unit and a grid step g
(privacy.md, sections 2 (c), 6.2, 6.3 and 6.7; proofs in ``docs/methods/marginals.md``):

======================  ====================  =========================
                        add/remove            replace-one
======================  ====================  =========================
joint tables, L1        m a table             2 m a table
joint tables, L2        m a table             √2 m a table
signed tables, L1, L2   m a table             2 m a table
squared errors, L1      m a table             m (2 + 2 g) a table
squared errors, L2      m a table             m (√2 + √2 g) a table
bins of the label, L2   m                     √2 m
score of a candidate    m                     m
======================  ====================  =========================

A signed entry is errors minus correct: a replaced record that stays in its bin and
changes its outcome changes it by 2, hence the third line. Squared errors are clipped to a public
bound and divided by it; half of the budget is for them, half for the number of rows of each cell,
a joint table. A label is clipped to its bounds, so a record adds 1 to one of its bins, whatever its
features are. A candidate's score is the number of rows that it labels correctly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Partition
from privada.methods.cells.questions.partition import pack as pack_tables
from privada.methods.hypotheses.forms import Hypothesis, Network
from privada.methods.linear.questions import public
from privada.privacy.bounds import Grid
from privada.privacy.codec import one_of, several_of
from privada.privacy.guarantee import ZCDP, Guarantee, PureDP
from privada.privacy.mechanism import Exponential, Gaussian, Laplace, Mechanism, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PACE, PublicSchema, Question

LARGEST = 50_000_000  # numbers in one answer: the answer to a small file has to fit an owner's memory
COUNTS = ("errors", "signed", "classes", "labels", "rows")
ALONE = ("labels", "rows")  # counts without a hypothesis
GRID = Grid(-20)  # of squared errors
MOST_CANDIDATES = 1000
TRIALS_SECONDS = 120.0  # by the clock, on public rows, for all candidates together


def replaces(guarantee: Guarantee) -> bool:
    """Whether a neighbour has a record replaced rather than added or removed."""
    return guarantee.relation is not Relation.ADD_REMOVE


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutcomeTables(Question):
    """Ask how a hypothesis fares, or how labels are distributed, over public bins and cells.

    Parameters
    ----------
    tables : tuple of Partition
        Bins of features, grids of them, or cells. Each is released as one table.
    n_classes : int
        The number of the schema's classes.
    hypothesis : Hypothesis, optional
        The hypothesis that is judged; none for ``count="labels"`` or "rows".
    count : "errors", "signed", "classes", "labels" or "rows"
        What an entry counts: errors and correct; errors minus correct; both by
        true class; labels alone; or rows alone, the paper's importance query.
    round, rounds : int
        Which round of how many planned ones this is; the salt names the plan. A round beyond the plan is
        refused. An owner charges each question once.

    Privacy
    -------
    Pure guarantees use discrete Laplace noise, others discrete Gaussian. Every
    entry gets noise, empty or not; ratios are formed by the learner. Sensitivities
    are in the module's table.

    >>> import numpy as np
    >>> from privada.methods.cells import Bins
    >>> from privada.privacy import PureDP
    >>> bins = tuple(Bins(feature=j, edges=np.array([0.0])) for j in range(3))
    >>> q = OutcomeTables(tables=bins, n_classes=2, count="labels",
    ...                   guarantee=PureDP(epsilon=1, relation="add/remove"))
    >>> q.plan.draws["table.0"].scale
    3.0
    """

    tables: tuple[Partition, ...] = field(metadata=several_of(Partition, key="partitions", path=""))
    n_classes: int = 2
    hypothesis: Hypothesis | None = field(default=None, metadata=one_of(Hypothesis, path="h/"))
    count: str = "errors"
    round: int = 0
    rounds: int = 1
    kind: ClassVar[str] = "marginals.outcomes"
    answered_by: ClassVar[str] = "privada.methods.marginals.owner:answer_outcomes"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "tables", _check_tables(self.tables))
        _check.count(least=2, n_classes=self.n_classes)
        _check.one_of(COUNTS, count=self.count)
        if (self.hypothesis is None) != (self.count in ALONE):
            raise InputError('Expected a hypothesis, or count="labels" or "rows" without one.')
        if self.hypothesis is not None and not isinstance(self.hypothesis, Hypothesis):
            raise InputError(f"Expected hypothesis to be a Hypothesis, got {type(self.hypothesis).__name__}.")
        _check_round(self.round, self.rounds)
        check_size(sum(table.n_cells for table in self.tables) * math.prod(self.outcomes))

    @property
    def outcomes(self) -> tuple[int, ...]:
        """Shape of one cell's entries."""
        shapes: dict[str, tuple[int, ...]] = {
            "errors": (2,),
            "signed": (),
            "classes": (self.n_classes, 2),
            "labels": (self.n_classes,),
            "rows": (),
        }
        return shapes[self.count]

    def fits(self, schema: PublicSchema) -> None:
        """Check features, classes and hypothesis against the owner's schema, before anything is charged."""
        for table in self.tables:
            table.fits(schema.width)
        if self.n_classes != len(schema.classes):
            raise InputError(f"Expected n_classes to be {len(schema.classes)}, got {self.n_classes}.")
        if self.hypothesis is not None:
            self.hypothesis.fits(schema.width, self.n_classes)

    def seconds(self, schema: PublicSchema, *, rows: int) -> float:
        """Each row finds its place in every table, and goes through the hypothesis."""
        numbers = sum(array.size for array in pack_tables(self.tables)[1].values())
        own = 0.0 if self.hypothesis is None else self.hypothesis.seconds(schema.width)
        return rows * ((int(schema.width) + numbers) / PACE + own)

    def names(self) -> tuple[str, ...]:
        """Payload name of each table."""
        return tuple(f"table.{index}" for index in range(len(self.tables)))

    @property
    def turn(self) -> str:
        """A round of a plan, whose name is the salt; the importance query is one of its own."""
        return turn_of(self.round, self.rounds, self.salt, "importance query" if self.count == "rows" else "")

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        tables = zip(self.names(), self.tables, strict=True)
        return {name: (table.n_cells, *self.outcomes) for name, table in tables}

    def planned(self) -> Plan:
        """Split the budget evenly over the tables."""
        return plan_tables(self.guarantee, self.names(), signed=self.count == "signed")


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
    answered_by: ClassVar[str] = "privada.methods.marginals.owner:answer_squares"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "tables", _check_tables(self.tables))
        hypothesis: object = self.hypothesis
        if not isinstance(hypothesis, Network) or hypothesis.outputs != 1:
            raise InputError("Expected hypothesis to be a Network with one output.")
        _check.positive(largest=self.largest)
        _check_round(self.round, self.rounds)
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
        parts = 2 * len(self.tables)
        pairs = [self.names(index) for index in range(len(self.tables))]
        draws: dict[str, Mechanism] = {}
        if isinstance(self.guarantee, PureDP):
            epsilon = self.guarantee.epsilon / parts
            l1 = rows * (2.0 if twice else 1.0)
            slack = rows * (2 * GRID.step if twice else 0.0)
            for counts, squares in pairs:
                draws[counts] = Laplace.calibrated(sensitivity=l1, epsilon=epsilon)
                draws[squares] = Laplace.calibrated(sensitivity=l1 + slack, epsilon=epsilon, grid=GRID)
            return Plan(draws=draws)
        mu = self.guarantee.gaussian_mu() / math.sqrt(parts)
        l2 = rows * (math.sqrt(2) if twice else 1.0)
        count = Gaussian.calibrated(sensitivity=l2, mu=mu, whole=True)
        square = Gaussian.calibrated(sensitivity=l2 * (1 + GRID.step) if twice else l2, mu=mu, grid=GRID)
        joint = 0.0
        for counts, squares in pairs:
            draws |= {counts: count, squares: square}
            joint += count.mu**2 + square.mu**2
        return Plan(draws=draws, event=gaussian_event(math.sqrt(joint)))


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
    of a person. The counts are whole numbers and get discrete Gaussian noise. Proof: above and privacy.md,
    section 6.3.
    """

    low: float
    high: float
    bins: int
    kind: ClassVar[str] = "marginals.histogram"
    answered_by: ClassVar[str] = "privada.methods.marginals.owner:answer_histogram"

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
        return plan_tables(self.guarantee, ("counts",))


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
    removing or replacing one row changes each score by at most 1, a person with m
    rows by at most m. The exponential mechanism at ε is ε-private, and its loss
    has range ε, so it is (ε²/8)-zCDP.
    """

    candidates: tuple[Hypothesis, ...] = field(metadata=several_of(Hypothesis, path="", inner="h/"))
    n_classes: int = 2
    kind: ClassVar[str] = "marginals.choice"
    answered_by: ClassVar[str] = "privada.methods.marginals.owner:answer_choice"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "candidates", tuple(self.candidates))
        if not 2 <= len(self.candidates) <= MOST_CANDIDATES:
            raise InputError(f"Expected from 2 to {MOST_CANDIDATES} candidates, got {len(self.candidates)}.")
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


def check_size(numbers: int) -> None:
    """Refuse a question whose answer an owner's memory may not hold."""
    if numbers > LARGEST:
        raise InputError(f"Expected an answer of at most {LARGEST} numbers, got {numbers}.")


def _check_tables(tables: Any) -> tuple[Partition, ...]:
    partitions = tuple(tables)
    if not partitions or not all(isinstance(table, Partition) for table in partitions):
        raise InputError("Expected tables to be at least one partition.")
    return partitions


def _check_round(number: int, rounds: int) -> None:
    _check.count(rounds=rounds)
    if _check.count(least=0, round=number) >= rounds:
        raise InputError(f"Expected round below {rounds}, the number that was planned, got {number}.")


def plan_name(rounds: Iterable[tuple[Partition, ...]], guarantees: Iterable[Guarantee], seed: int) -> str:
    """A public name for a plan of rounds: the same tables, prices and seed are the same plan."""
    digest = sha256(repr([str(guarantee) for guarantee in guarantees]).encode())
    for tables in rounds:
        plain, arrays = pack_tables(tables)
        digest.update(repr(sorted(plain.items())).encode())
        for name in sorted(arrays):
            digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return f"{digest.hexdigest()[:12]}, seed {seed}"


def turn_of(number: int, rounds: int, plan: str, what: str = "") -> str:
    """A round of several in words.

    >>> turn_of(0, 2, "seed 3")
    "round 1 of 2 of plan 'seed 3'"
    """
    return f"{what or f'round {number + 1}'} of {rounds} of plan {plan!r}" if rounds > 1 else ""


def plan_tables(guarantee: Guarantee, names: tuple[str, ...], *, signed: bool = False) -> Plan:
    """The same noise on each of several whole-number tables; a record touches one entry of each."""
    rows, draws = guarantee.unit.max_rows, dict[str, Mechanism]()
    l1 = rows * (2.0 if replaces(guarantee) else 1.0)
    if isinstance(guarantee, PureDP):
        epsilon = guarantee.epsilon / len(names)
        draws = {name: Laplace.calibrated(sensitivity=l1, epsilon=epsilon) for name in names}
        return Plan(draws=draws)
    l2 = l1 if signed else rows * (math.sqrt(2) if replaces(guarantee) else 1.0)
    mu = guarantee.gaussian_mu() / math.sqrt(len(names))
    draw = Gaussian.calibrated(sensitivity=l2, mu=mu, whole=True)
    draws = dict.fromkeys(names, draw)
    return Plan(draws=draws, event=gaussian_event(draw.mu * math.sqrt(len(names))))


__all__ = [
    "GRID",
    "HypothesisChoice",
    "LabelHistogram",
    "OutcomeTables",
    "SquaredErrors",
    "check_size",
    "plan_name",
    "plan_tables",
    "replaces",
    "turn_of",
]
