"""Averages over the t nearest source rows of public target points, and their distance.

Rows are clipped to the ball of radius R around 0 and put on the grid, which keeps
them in the ball. To the rows are added t copies of the centre 0, infinitely far
from everything. Rows are ordered by (computed distance to x, coordinates): a
total order, in which equal places are equal rows, so the t first ones are, as a
multiset of vectors, a function of the multiset of rows.

**Lemma.** Let A be the t first of a set S, and P a set of at most m rows. The t first of
S ∪ P are A without its j last ones, and j rows of P, for some ``j <= min(m, t)``. *Proof.* No
row outside A ∪ P can be among the t first of S ∪ P, and those of A that are, are its first ones.

**One target point.** Hence adding P replaces j of the t vectors by j others,
all of them in the ball, and moves their sum by at most ``2R min(m, t)``. *Replacing* P by
P' moves it no further: both sums consist of the first ones of A and of rows of P or
P'; if ``j >= j'``, the sums differ by j rows of P on one side, and j' rows of P'
with j - j' rows of A on the other. So add/remove and replace-one have one sensitivity.

**All target points together**: ``2R min(m, t)`` at each, L2 √n times that, L1 n√d times.

**Distances.** With the distance of a padded centre set to ``D_x = |x| + R``, the largest possible one, a
row's distance lies in [0, D_x], and the sum of the t least falls by between 0 and
``min(m, t) D_x`` when P is added, whatever P is; so adding, removing and replacing move it
by at most that, and the sum over all target points by at most ``min(m, t) Σ D_x``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.clustering.questions.calibration import (
    NOISES,
    budget_of,
    few_numbers,
    fine_grid,
    frozen,
    lattice,
    only_pure,
    sized,
)
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import KNorm, Plan
from privada.privacy.release import PublicSchema, Question


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Neighbours(Question):
    """What both questions share: public target points, t, and the ball."""

    targets: FloatArray
    t: int
    radius: float

    @property
    def needs_label(self) -> bool:
        """Never: rows count whatever their label."""
        return False

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "targets", frozen(targets=self.targets))
        _check.count(t=self.t)
        sized(radius=self.radius)
        few_numbers(len(self.targets) * self.t * (self.width + 1), "the neighbours of all target points")

    def fits(self, schema: PublicSchema) -> None:
        """Check the features against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected targets of {schema.width} features, got {self.width}.")

    @property
    def width(self) -> int:
        """Number of features d."""
        return int(self.targets.shape[1])

    @property
    def exchanged(self) -> int:
        """How many of t neighbours one step of the relation can exchange: j of the lemma."""
        return min(self.guarantee.unit.max_rows, self.t)

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The grid of what is summed."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NeighbourAverages(_Neighbours):
    """Ask for the noisy sum of the t nearest source rows of each target point (NAS, Alg. 1).

    Parameters
    ----------
    targets : array of shape (targets, features)
        Public target or coreset points; the noise grows with their number.
    t : int
        Public number of neighbours. A source with fewer rows is filled up with the centre 0.
    radius : float
        Public radius R of the ball around 0 to which rows are clipped.
    noise : "lattice" or "k-norm"
        Discrete Laplace (pure) or discrete Gaussian noise, exact; or, pure only, noise of density
        ``exp(-ε |z|₂ / Δ)`` on all numbers together, less of it, in idealised arithmetic.

    Notes
    -----
    The payload is ``sums`` (targets, features): t times the averages.

    Privacy
    -------
    Unit and relation are the guarantee's; add/remove and replace-one cost the same. With n target
    points and m rows a unit the sums move by at most ``2R min(m, t) √n`` in L2 and
    ``2R min(m, t) n √d`` in L1. Proof: the lemma above (privacy.md, section 1b, for add/remove).

    >>> pure = PureDP(epsilon=3, relation="add/remove")
    >>> question = NeighbourAverages(targets=np.zeros((100, 8)), t=150, radius=0.5, guarantee=pure)
    >>> f"{question.plan.draws['sums'].scale / question.t * 2**0.5:.3f}"  # privacy.md, section 1b (c)
    '0.889'
    """

    noise: str = "lattice"
    kind: ClassVar[str] = "clustering.nas"
    answered_by: ClassVar[str] = "privada.methods.clustering.owner.answer:answer_neighbours"

    def validate(self) -> None:
        """Check every public parameter by name."""
        super().validate()
        if _check.one_of(NOISES, noise=self.noise) == "k-norm":
            only_pure(self.guarantee)

    @property
    def reach(self) -> float:
        """How far one step of the relation moves all sums together: L1 for Laplace noise, else L2."""
        n, once = len(self.targets), 2 * self.radius * self.exchanged
        if isinstance(self.guarantee, PureDP) and self.noise == "lattice":
            return once * n * math.sqrt(self.width)
        return once * math.sqrt(n)

    @property
    def grid(self) -> Grid:
        """The grid of rows."""
        return fine_grid(self.radius, self.reach / budget_of(self.guarantee))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"sums": (len(self.targets), self.width)}

    def planned(self) -> Plan:
        """One draw of all sums."""
        if self.noise == "k-norm":
            budget, _ = budget_of(self.guarantee), self.grid  # a radius without a grid is refused here
            return Plan(draws={"sums": KNorm(sensitivity=self.reach, budget=budget)})
        return Plan(draws={"sums": lattice(self.guarantee, sensitivity=self.reach, grid=self.grid)})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SourceRadius(_Neighbours):
    """Ask for Δᵗ(S): the mean, over target points, of the mean distance to the t nearest source rows.

    Parameters
    ----------
    targets, t, radius
        As in `NeighbourAverages`. A neighbour that is not there counts as ``|x| + R``, the
        largest possible distance, so that Δᵗ(S) bounds the distance to the source whatever its size.

    Notes
    -----
    The payload is ``total``, one number: Δᵗ(S) times the number of target points times t, of
    distances truncated to the grid.

    Privacy
    -------
    Unit and relation are the guarantee's; add/remove and replace-one cost the same. The total moves
    by at most ``min(m, t) Σ (|x| + R)``, so Δᵗ(S) by at most 2R/t where the target lies in the
    ball. Proof: "Distances" above (privacy.md, section 1b (b)).

    >>> pure = PureDP(epsilon=1, relation="add/remove")
    >>> question = SourceRadius(targets=np.zeros((4, 2)), t=10, radius=0.5, guarantee=pure)
    >>> question.plan.draws["total"].scale / (4 * 10)
    0.05
    """

    kind: ClassVar[str] = "clustering.radius"
    answered_by: ClassVar[str] = "privada.methods.clustering.owner.answer:answer_radius"

    @cached_property
    def _farthest(self) -> list[float]:
        norms = [math.sqrt(math.fsum(value * value for value in row)) for row in self.targets.tolist()]
        return [norm + self.radius for norm in norms]

    @property
    def grid(self) -> Grid:
        """The grid of distances."""
        total = self.exchanged * math.fsum(self._farthest)
        return fine_grid(self.radius, total / budget_of(self.guarantee))

    @cached_property
    def farthest(self) -> IntArray:
        """D_x of each target point in whole grid steps, rounded up: no distance counts for more."""
        steps = [math.ceil(reach / self.grid.step) for reach in self._farthest]
        if self.t * sum(steps) >= 2**62:
            raise InputError("Expected targets nearer to the ball: the sum of their distances overflows.")
        return np.array(steps, dtype=np.int64)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"total": (1,)}

    def planned(self) -> Plan:
        """One draw of one number."""
        reach = self.exchanged * int(self.farthest.sum()) * self.grid.step
        return Plan(draws={"total": lattice(self.guarantee, sensitivity=reach, grid=self.grid)})


__all__ = ["NeighbourAverages", "SourceRadius"]
