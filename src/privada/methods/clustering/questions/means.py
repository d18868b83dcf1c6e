"""Means of the source around public target points: the questions of the paper's algorithms, and their price.

Every question names public target (or coreset) points and a public ball. A source row is clipped, put on a
public grid, and touches one cell (`NearestMeans`) or any number of target points (`NeighbourAverages`,
`SourceRadius`). The price of the latter two rests on one lemma.

**Neighbours.** Rows are clipped to the ball of radius R around 0 and put on the grid, which keeps
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
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.cells.questions.statistics import CellStatistics
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import Guarantee, PureDP
from privada.privacy.mechanism import Gaussian, KNorm, KNormCylinder, Laplace, Plan, pure_event
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema, Question, Release

NOISES = ("lattice", "k-norm")
MOST_NUMBERS = 100_000_000  # that an answer may hold: 0.8 GB
SIZES = (1e-100, 1e100)  # of radii, and the largest coordinate: nothing overflows when it is squared


class SourceQuestion(Question):
    """A question about the rows of a source, whatever their labels."""

    @property
    def needs_label(self) -> bool:
        """Always false: labels are not read."""
        return False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NearestMeans(SourceQuestion):
    """Ask for the noisy count and sum of the source rows nearest to each target point (NNA, Alg. 2).

    Parameters
    ----------
    cells : array of shape (cells, features)
        Public target or coreset points. A row belongs to the nearest one, the first on ties.
    radius : float
        Public radius R to which rows are clipped, around 0 or, if ``recentred``, around their cell.
    recentred : bool, default=False
        Sum rows relative to their cell.
    domain : float, optional
        Radius of the public ball around 0 onto which sanitised points are projected: ``radius``
        by default. Required if ``recentred``.
    noise : "lattice" or "k-norm", default="lattice"
        Discrete Laplace (pure) or discrete Gaussian noise, exact; or, pure only, K-norm noise
        on the cylinder: less noise up to about 30 features, but in idealised arithmetic.
    count_share : float, optional
        Share of the budget for the counts under lattice noise; by default the best one.

    Notes
    -----
    The payload is ``counts`` and ``sums``, or under K-norm noise ``table``, whose rows are
    (count, sum / R) divided by `moves`: one step of the relation moves it by at most one.
    `estimates` reads both.

    Privacy
    -------
    Unit and relation are the guarantee's. A row touches one cell by (1, v), ``|v| <= R``, and every
    cell is noised, empty or not. Lattice noise is priced as in
    `privada.methods.cells.CellStatistics`. K-norm: neighbours differ in one cell by a point
    of ±({1} × B_R), inside the cylinder [-1, 1] × B_R, whose norm is ``max(|c|, |s|/R)``; density
    ``exp(-ε norm)`` is ε-private by the triangle inequality. A replacement has norm at most 2: 1 in
    each of two cells, or ``|v - w|/R`` in one; so ε is halved. Truncated to the grid, v and
    w stay in B_R, so these bounds need no slack. Proof: privacy.md, section 1 (c).

    >>> from privada.privacy import PureDP
    >>> pure = PureDP(epsilon=3, relation="add/remove")
    >>> question = NearestMeans(cells=np.eye(2) / 2, radius=0.5, guarantee=pure)
    >>> sorted(question.plan.draws)
    ['counts', 'sums']
    """

    cells: FloatArray
    radius: float
    recentred: bool = False
    domain: float | None = None
    noise: str = "lattice"
    count_share: float | None = None
    kind: ClassVar[str] = "clustering.nna"
    answered_by: ClassVar[str] = "privada.methods.clustering.owner:answer_nearest"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "cells", freeze_points(cells=self.cells))
        check_radius(radius=self.radius)
        check_noise(self.noise, self.guarantee)
        if self.domain is not None:
            check_radius(domain=self.domain)
        elif self.recentred:
            raise InputError("Expected domain, the radius of the public ball, with recentred=True.")
        if self.count_share is not None:
            _check.probability(count_share=self.count_share)
            if self.noise == "k-norm":
                raise InputError("Expected no count_share with noise='k-norm': nothing is split.")

    def fits(self, schema: PublicSchema) -> None:
        """Check the features against the owner's schema."""
        self.statistics.fits(schema)

    @cached_property
    def statistics(self) -> CellStatistics:
        """The same question over cells; lattice noise is planned and answered there."""
        return CellStatistics(
            tables=(NearestCells(centers=self.cells),),
            radius=self.radius,
            recentred=self.recentred,
            width=self.cells.shape[1],
            count_share=self.count_share,
            guarantee=self.guarantee,
            salt=self.salt,
        )

    @property
    def origins(self) -> FloatArray:
        """The point of each cell that its rows are summed relative to."""
        return self.statistics.origins(self.statistics.tables[0])

    @property
    def ball(self) -> float:
        """Radius of the public ball around 0 onto which sanitised points are projected."""
        return self.radius if self.domain is None else self.domain

    @property
    def moves(self) -> int:
        """How many units one step of the relation moves the K-norm table."""
        return self.guarantee.unit.max_rows * (1 if self.guarantee.relation is Relation.ADD_REMOVE else 2)

    @property
    def grid(self) -> Grid:
        """The grid of sums under K-norm noise."""
        return Grid.finer_than_both(self.radius, self.radius)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        if self.noise == "lattice":
            return self.statistics.answer_shapes()
        return {"table": (len(self.cells), 1 + self.cells.shape[1])}

    def planned(self) -> Plan:
        """Lattice noise as over cells, or one K-norm draw of the whole table."""
        if self.noise == "lattice":
            return self.statistics.plan
        _ = self.grid  # a radius that has no grid is refused here, before the charge
        epsilon = noise_budget(self.guarantee)
        draw = KNormCylinder(sensitivity=1.0, budget=epsilon)
        return Plan(draws={"table": draw}, event=pure_event(epsilon), epsilon=epsilon)

    def estimates(self, release: Release) -> tuple[FloatArray, FloatArray]:
        """Noisy counts and sums of a release, unbiased."""
        if self.noise == "lattice":
            return release["counts"], release["sums"]
        table = release["table"] * self.moves
        return table[:, 0], table[:, 1:] * self.radius


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Neighbours(SourceQuestion):
    """What both questions about neighbours share: public target points, t, and the ball."""

    targets: FloatArray
    t: int
    radius: float

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "targets", freeze_points(targets=self.targets))
        _check.count(t=self.t)
        check_radius(radius=self.radius)
        numbers = len(self.targets) * self.t * (self.width + 1)
        check_answer_size(numbers, "the neighbours of all target points")

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
        """The grid of the numbers that are summed."""


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
    noise : "lattice" or "k-norm", default="lattice"
        Discrete Laplace (pure) or discrete Gaussian noise, exact; or, pure only, noise of density
        ``exp(-ε |z|₂ / Δ)`` on all numbers together: less noise, but in idealised arithmetic.

    Notes
    -----
    The payload is ``sums`` (targets, features): t times the averages.

    Privacy
    -------
    Unit and relation are the guarantee's; add/remove and replace-one cost the same. With n target
    points and m rows a unit the sums move by at most ``2R min(m, t) √n`` in L2 and
    ``2R min(m, t) n √d`` in L1. Proof: the module's lemma (privacy.md, section 1b, for add/remove).

    >>> pure = PureDP(epsilon=3, relation="add/remove")
    >>> question = NeighbourAverages(targets=np.zeros((100, 8)), t=150, radius=0.5, guarantee=pure)
    >>> f"{question.plan.draws['sums'].scale / question.t * 2**0.5:.3f}"  # privacy.md, section 1b (c)
    '0.889'
    """

    noise: str = "lattice"
    kind: ClassVar[str] = "clustering.nas"
    answered_by: ClassVar[str] = "privada.methods.clustering.owner:answer_neighbours"

    def validate(self) -> None:
        """Check every public parameter by name."""
        super().validate()
        check_noise(self.noise, self.guarantee)

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
        return Grid.finer_than_both(self.radius, self.reach / noise_budget(self.guarantee))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"sums": (len(self.targets), self.width)}

    def planned(self) -> Plan:
        """One draw of all sums."""
        grid = self.grid  # a radius that has no grid is refused here, before the charge
        if self.noise == "k-norm":
            return Plan(draws={"sums": KNorm(sensitivity=self.reach, budget=noise_budget(self.guarantee))})
        return Plan(draws={"sums": calibrate_lattice(self.guarantee, sensitivity=self.reach, grid=grid)})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SourceRadius(_Neighbours):
    """Ask for Δᵗ(S): the mean, over target points, of the mean distance to the t nearest source rows.

    Parameters
    ----------
    targets, t, radius
        As in `NeighbourAverages`. A neighbour that does not exist counts as ``|x| + R``, the
        largest possible distance, so that Δᵗ(S) bounds the distance to the source whatever its size.

    Notes
    -----
    The payload is ``total``, one number: Δᵗ(S) times the number of target points times t, of
    distances truncated to the grid.

    Privacy
    -------
    Unit and relation are the guarantee's; add/remove and replace-one cost the same. The total moves
    by at most ``min(m, t) Σ (|x| + R)``, so Δᵗ(S) by at most 2R/t where the target lies in the
    ball. Proof: "Distances" in the module's docstring (privacy.md, section 1b (b)).

    >>> pure = PureDP(epsilon=1, relation="add/remove")
    >>> question = SourceRadius(targets=np.zeros((4, 2)), t=10, radius=0.5, guarantee=pure)
    >>> question.plan.draws["total"].scale / (4 * 10)
    0.05
    """

    kind: ClassVar[str] = "clustering.radius"
    answered_by: ClassVar[str] = "privada.methods.clustering.owner:answer_radius"

    @cached_property
    def _farthest(self) -> list[float]:
        # fsum: D_x has to be the same float wherever owner and learner work it out
        norms = [math.sqrt(math.fsum(value * value for value in row)) for row in self.targets.tolist()]
        return [norm + self.radius for norm in norms]

    @property
    def grid(self) -> Grid:
        """The grid of distances."""
        total = self.exchanged * math.fsum(self._farthest)
        return Grid.finer_than_both(self.radius, total / noise_budget(self.guarantee))

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
        return Plan(draws={"total": calibrate_lattice(self.guarantee, sensitivity=reach, grid=self.grid)})


def noise_budget(guarantee: Guarantee) -> float:
    """Sensitivity over scale that a guarantee allows: ε of Laplace noise, or μ of Gaussian noise."""
    return guarantee.epsilon if isinstance(guarantee, PureDP) else guarantee.gaussian_mu()


def calibrate_lattice(guarantee: Guarantee, *, sensitivity: float, grid: Grid) -> Laplace | Gaussian:
    """The least exact noise that keeps a guarantee; the sensitivity is L1 if it is pure, else L2."""
    if isinstance(guarantee, PureDP):
        return Laplace.calibrated(sensitivity=sensitivity, epsilon=guarantee.epsilon, grid=grid)
    return Gaussian.calibrated(sensitivity=sensitivity, mu=guarantee.gaussian_mu(), grid=grid)


def check_radius(**named: Any) -> float:
    """A public radius that floats can be scaled by: neither tiny nor huge."""
    ((name, value),) = named.items()
    if not SIZES[0] <= _check.positive(**named) <= SIZES[1]:
        raise InputError(f"Expected {name} between {SIZES[0]:g} and {SIZES[1]:g}, got {value!r}.")
    return float(value)


def freeze_points(**named: Any) -> FloatArray:
    """A public matrix, checked, as a read-only copy."""
    points = np.array(_check.matrix(**named), dtype=np.float64, order="C")
    if np.abs(points).max() > SIZES[1]:
        raise InputError(f"Expected {next(iter(named))} within ±{SIZES[1]:g}.")
    points.flags.writeable = False
    return points


def check_noise(noise: str, guarantee: Guarantee) -> None:
    """Refuse an unknown noise, and K-norm noise under a guarantee that is not pure."""
    if _check.one_of(NOISES, noise=noise) == "k-norm" and not isinstance(guarantee, PureDP):
        raise InputError(f"Expected a pure guarantee with noise='k-norm', got {guarantee}.")


def check_answer_size(total: int, what: str) -> None:
    """Refuse a question whose answer would not fit into memory, before it is charged."""
    if total > MOST_NUMBERS:
        raise InputError(f"Expected at most {MOST_NUMBERS:,} numbers in {what}, got {total:,}.")


__all__ = ["NearestMeans", "NeighbourAverages", "SourceQuestion", "SourceRadius"]
