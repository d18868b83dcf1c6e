"""Tables of outcomes over public bins and cells: what is asked, and what it costs.

A record touches one entry of each table. With K tables and at most m rows a unit
(privacy.md, sections 2 (c), 6.2 and 6.7; proofs in ``docs/methods/marginals.md``):

======================  ====================  =====================
                        add/remove            replace-one
======================  ====================  =====================
joint tables, L1        m a table             2 m a table
joint tables, L2        m a table             √2 m a table
signed tables, L1, L2   m a table             2 m a table
======================  ====================  =====================

A signed entry is errors minus correct: a replaced record that stays in its bin and
changes its outcome moves it by 2, hence the last line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import ClassVar

import numpy as np

from privada import _check
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Partition
from privada.methods.cells.questions.partition import pack as pack_tables
from privada.methods.hypotheses.forms import Hypothesis
from privada.privacy.codec import one_of, several_of
from privada.privacy.guarantee import Guarantee, PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Mechanism, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PACE, PublicSchema, Question

LARGEST = 50_000_000  # numbers in one answer: what a small file asks for must fit an owner's memory
COUNTS = ("errors", "signed", "classes", "labels", "rows")
ALONE = ("labels", "rows")  # what needs no hypothesis


def replaces(guarantee: Guarantee) -> bool:
    """Whether a neighbour has a record replaced rather than added or removed."""
    return guarantee.relation is not Relation.ADD_REMOVE


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutcomeTables(Question):
    """Ask how a hypothesis fares, or how labels lie, over public bins and cells.

    Parameters
    ----------
    tables : tuple of Partition
        Bins of features, grids of them, or cells. Each is released as one table.
    n_classes : int
        The number of the schema's classes.
    hypothesis : Hypothesis, optional
        What is to be judged; none for ``count="labels"`` or "rows".
    count : "errors", "signed", "classes", "labels" or "rows"
        What an entry counts: errors and correct; errors minus correct; both by
        true class; labels alone; or rows alone, the paper's importance query.
    round, rounds : int
        Which round of how many planned ones this is; the salt names the plan. A round beyond the plan is
        refused. An owner charges each question once.

    Privacy
    -------
    Pure guarantees use discrete Laplace noise, others discrete Gaussian. Every
    entry is noised, empty or not; ratios are formed by the learner. Sensitivities
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
    answered_by: ClassVar[str] = "privada.methods.marginals.owner.answer:answer_outcomes"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "tables", tuple(self.tables))
        if not self.tables or not all(isinstance(table, Partition) for table in self.tables):
            raise InputError("Expected tables to be at least one partition.")
        _check.count(least=2, n_classes=self.n_classes)
        _check.one_of(COUNTS, count=self.count)
        if (self.hypothesis is None) != (self.count in ALONE):
            raise InputError('Expected a hypothesis, or count="labels" or "rows" without one.')
        if self.hypothesis is not None and not isinstance(self.hypothesis, Hypothesis):
            raise InputError(f"Expected hypothesis to be a Hypothesis, got {type(self.hypothesis).__name__}.")
        check_round(self.round, self.rounds)
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
        rows = self.guarantee.unit.max_rows
        twice = replaces(self.guarantee)
        l1 = rows * (2.0 if twice else 1.0)
        l2 = l1 if self.count == "signed" else rows * (math.sqrt(2) if twice else 1.0)
        return even_plan(self.guarantee, self.names(), l1=l1, l2=l2)


def check_size(numbers: int) -> None:
    """Refuse a question whose answer an owner's memory may not hold."""
    if numbers > LARGEST:
        raise InputError(f"Expected an answer of at most {LARGEST} numbers, got {numbers}.")


def check_round(number: int, rounds: int) -> None:
    """Refuse a round beyond the plan."""
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


def even_plan(guarantee: Guarantee, names: tuple[str, ...], *, l1: float, l2: float) -> Plan:
    """The same noise on each of several whole-number tables that one record touches alike."""
    draws: dict[str, Mechanism]
    if isinstance(guarantee, PureDP):
        epsilon = guarantee.epsilon / len(names)
        draws = {name: Laplace.calibrated(sensitivity=l1, epsilon=epsilon) for name in names}
        return Plan(draws=draws)
    mu = guarantee.gaussian_mu() / math.sqrt(len(names))
    draw = Gaussian.calibrated(sensitivity=l2, mu=mu, whole=True)
    draws = dict.fromkeys(names, draw)
    return Plan(draws=draws, event=gaussian_event(draw.mu * math.sqrt(len(names))))


__all__ = ["OutcomeTables", "check_round", "check_size", "even_plan", "plan_name", "replaces", "turn_of"]
