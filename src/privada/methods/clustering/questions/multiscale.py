"""The default questions: counts of the source in nested grids, or counts and means in nested shells.

In few dimensions nothing tells more about where the source is than counts alone (`GridPyramid`): a record
touches one cell of each level whatever its coordinates, so the noise grows neither with the dimension nor
with the size of the domain. In many dimensions a grid has too many cells, and shells around public points
take its place (`LocalMeans`). Coarse cells see the sparse parts of the source; fine cells place the dense
parts.

**Price of shells.** In units of the shell's radius a row has v with ``|v| <= 1`` and touches one
(cell, shell) by (1, v, m), where m is nothing, ``|v|²``, or ``vv'`` packed so that its L2 norm is the
Frobenius norm (off-diagonal entries times √2). With d features, at most k rows a unit,
``a = 1/σᵥ²`` and ``b = 1/σₘ²``:

=============  ====================  ======================================
               add/remove            replace-one (and attribute)
=============  ====================  ======================================
pure, counts   k                     2 k
pure, sums     k √d                  k (2 √d + g d)
pure, moments  k L                   k (2 L + g D)
Gaussian, μ²   k² (1/σₙ² + a + b)    k² (√max(2/σₙ² + 2a + 2b, c) + slack)²
=============  ====================  ======================================

*L* is 1 for the trace. For the packed triangle it is ``1 + (d-1)/√2``: ``Σ vᵢ² + √2 Σ |vᵢ vⱼ|``
with ``Σ |vᵢ| <= √d``. (In unpacked units, as privacy.md writes it, (d+1)/2.)

*c* is the move inside one shell, ``a |v-w|² + b |m-m'|²``. Without moments 4a. With the
triangle, both norms are 1 at the worst and with ``v·w = t`` it is ``2a(1-t) + 2b(1-t²)``: 4a if
``a >= 2b``, else ``2a + 2b + a²/(2b)``. With the trace, v and w are opposite, one of norm 1 and the
other of norm s: ``(1+s)² (a + b (1-s)²)``, at most 4a if ``a >= b/2``, and else less than ``2a + 2b``,
which two shells cost anyway.

Pooled moments are triangles that all cells share. Two rows in one shell of different cells
then move counts and sums apart, ``2/σₙ² + 2a`` at most, and the triangle by ``b |m-m'|² <= 2b``: no
more than two shells cost anyway. All else is as with the triangle.

*slack*: truncation to a grid of step g lets a difference of D numbers grow by g√D, so
``slack² = a gᵥ² d + b gₘ² D`` (Minkowski).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, GridCells, NearestCells
from privada.methods.cells.questions.statistics import LEAST_COUNT_SHARE, CellStatistics
from privada.methods.clustering.questions.means import (
    SourceQuestion,
    check_answer_size,
    check_radius,
    freeze_points,
)
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Lattice, Mechanism, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema, Release

PARTS = ("counts", "sums", "moments")
MOMENTS = ("none", "trace", "full", "pooled")
POOLED_SHARE = 0.1  # of the budget: enough for moments that all rows of a shell share

Three = tuple[float, float, float]  # one number each for counts, sums and moments
Grids = tuple[Grid, Grid, Grid]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GridPyramid(SourceQuestion):
    """Ask for noisy counts of the source in nested grids over the public cube.

    Parameters
    ----------
    levels : tuple of int
        Increasing; level L cuts each axis into ``2**L`` equal parts.
    domain : float
        Half the side of the public cube around 0; rows beyond it fall into its outermost cells.
    width : int
        Number of features.

    Notes
    -----
    The payload is one array of counts for each level, as `CellStatistics` names them; `counts`
    gives them back as cubes.

    Privacy
    -------
    Unit and relation are the guarantee's. A row touches one count of each level, and every count
    is noised, empty or not: with h levels L1 is h under add/remove and 2h under replace-one, squared
    L2 is h and 2h. Priced as in `privada.methods.cells.CellStatistics`. Proof: privacy.md, section 6.7.

    >>> from privada.privacy import PureDP
    >>> question = GridPyramid(levels=(1, 2), domain=0.5, width=2,
    ...                        guarantee=PureDP(epsilon=1, relation="add/remove"))
    >>> [draw.scale for draw in question.plan.draws.values()]
    [2.0, 2.0]
    """

    levels: tuple[int, ...]
    domain: float
    width: int
    kind: ClassVar[str] = "clustering.pyramid"
    answered_by: ClassVar[str] = "privada.methods.clustering.owner:answer_pyramid"

    def validate(self) -> None:
        """Check every public parameter by name."""
        levels = tuple(_check.count(level=level) for level in self.levels)
        if not levels or any(a >= b for a, b in pairwise(levels)):
            raise InputError("Expected levels to be whole numbers >= 1, strictly increasing.")
        object.__setattr__(self, "levels", levels)
        check_radius(domain=self.domain)
        _check.count(width=self.width)
        check_answer_size(sum(2 ** min(level * self.width, 64) for level in levels), "the answer")

    def fits(self, schema: PublicSchema) -> None:
        """Check the features against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected width {schema.width}, got {self.width}.")

    @cached_property
    def statistics(self) -> CellStatistics:
        """The same question over cells, where it is planned and answered."""
        half, grids = float(self.domain), []
        for level in self.levels:
            edges = np.linspace(-half, half, 2**level + 1)[1:-1]
            grids.append(GridCells(factors=tuple(Bins(feature=j, edges=edges) for j in range(self.width))))
        return CellStatistics(tables=tuple(grids), guarantee=self.guarantee, salt=self.salt)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return self.statistics.answer_shapes()

    def planned(self) -> Plan:
        """As over cells."""
        return self.statistics.plan

    def counts(self, release: Release) -> dict[int, FloatArray]:
        """Noisy counts of each level, as a cube of ``2**level`` cells a side."""
        names = [self.statistics.names(index)[0] for index in range(len(self.levels))]
        return {
            level: release[name].reshape((2**level,) * self.width)
            for level, name in zip(self.levels, names, strict=True)
        }

    @property
    def noise(self) -> Lattice:
        """The noise on each count, the same at every level."""
        return self.plan.lattice(self.statistics.names(0)[0])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LocalMeans(SourceQuestion):
    """Ask for counts, sums and second moments of source rows in shells around public points.

    Parameters
    ----------
    cells : array of shape (cells, features)
        Public coreset points. A row belongs to the nearest one, the first on ties, and within its
        cell to the first shell that holds it.
    shells : array of shape (shells,)
        Public radii, increasing. A row beyond the last one contributes nothing.
    domain : float
        Radius of the public ball around 0 that holds source and target; sanitised points are
        projected onto it.
    moments : "none", "trace", "full" or "pooled", default="none"
        Second moments: none, the sum of squared norms, the whole triangle, or one triangle for
        each shell over all cells together, which so many rows share that its noise hardly counts.
    count_share, moment_share : float, optional
        Shares of the budget (epsilon, or μ²); sums get the rest. By default those of `shares`.

    Notes
    -----
    Payload, in units of the shell's radius: ``counts`` (cells, shells), ``sums`` (cells, shells,
    features), ``moments`` (cells, shells), (cells, shells, triangle) or, pooled,
    (shells, triangle).

    Privacy
    -------
    Unit and relation are the guarantee's. A row touches one (cell, shell) with three parts of norm
    at most 1, enforced by clipping; all are noised, empty or not. The noise on a
    sum is proportional to the shell's radius, not the domain's. Pure guarantees use discrete
    Laplace noise, others discrete Gaussian. Sensitivities: the table in the module's docstring. Proof:
    privacy.md, section 6.1.

    >>> from privada.privacy import PureDP
    >>> question = LocalMeans(cells=np.zeros((1, 4)), shells=np.array([0.1, 0.2]), domain=0.5,
    ...                       guarantee=PureDP(epsilon=1, relation="add/remove"))
    >>> [f"{question.plan.draws[name].epsilon:.3f}" for name in ("counts", "sums")]
    ['0.284', '0.716']
    """

    cells: FloatArray
    shells: FloatArray
    domain: float
    moments: str = "none"
    count_share: float | None = None
    moment_share: float | None = None
    kind: ClassVar[str] = "clustering.local"
    answered_by: ClassVar[str] = "privada.methods.clustering.owner:answer_local"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "cells", freeze_points(cells=self.cells))
        object.__setattr__(self, "shells", _freeze_shells(self.shells))
        check_radius(domain=self.domain)
        _check.one_of(MOMENTS, moments=self.moments)
        for name in ("count_share", "moment_share"):
            if getattr(self, name) is not None:
                _check.probability(**{name: getattr(self, name)})
        if self.moment_share is not None and self.moments == "none":
            raise InputError("Expected no moment_share with moments='none'.")
        if (self.count_share or 0.0) + (self.moment_share or 0.0) >= 1:
            raise InputError("Expected count_share and moment_share to leave something for the sums.")
        check_answer_size(self.n_shells * (1 + self.width) + math.prod(self.moments_shape), "the answer")

    def fits(self, schema: PublicSchema) -> None:
        """Check the features against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected cells of {schema.width} features, got {self.width}.")

    @property
    def width(self) -> int:
        """Number of features d."""
        return int(self.cells.shape[1])

    @cached_property
    def partition(self) -> NearestCells:
        """The cells that rows belong to."""
        return NearestCells(centers=self.cells)

    @property
    def n_shells(self) -> int:
        """Number of (cell, shell) pairs, over which thresholds take their union."""
        return len(self.cells) * len(self.shells)

    @property
    def triangle(self) -> int:
        """Second moments of one shell: none, one, or D = d(d+1)/2 numbers."""
        return {"none": 0, "trace": 1}.get(self.moments, self.width * (self.width + 1) // 2)

    @property
    def moments_shape(self) -> tuple[int, ...]:
        """Shape of the second moments in the payload."""
        shape = (len(self.cells), len(self.shells))
        shapes: dict[str, tuple[int, ...]] = {
            "none": (0,),
            "trace": shape,
            "full": (*shape, self.triangle),
            "pooled": (len(self.shells), self.triangle),
        }
        return shapes[self.moments]

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        shape = (len(self.cells), len(self.shells))
        moments = {} if self.moments == "none" else {"moments": self.moments_shape}
        return {"counts": shape, "sums": (*shape, self.width)} | moments

    @property
    def shares(self) -> Three:
        """Shares of the budget for counts, sums and moments: the caller's, the others in the best proportion.

        The best ones make the error of a shell, seen as a Gaussian, least to first order in its
        squared Wasserstein distance: with mean c and covariance s²I it is, times the squared count,
        ``|c|² σₙ² + d σᵥ² + D σₘ²/(4 s²)`` for the triangle and ``σₘ²/(4 d s²)`` in its last term
        for the trace. At the worst ``|c| = 1``; rows that fill the shell have ``s² = 1/(d+2)``. Under
        ``Σ 1/σ² = const`` shares go with the square roots of these weights; under Laplace noise,
        ``Σ L/b = const``, with the cube roots of weight times L². Counts get at least a tenth: a
        threshold needs them. Under replace-one, Gaussian, sums get at most half: from there on the
        move inside one shell costs more than one between two. Pooled moments get a tenth.
        """
        spread = (self.width + 2) / 4
        moment_weight = {"trace": spread / self.width, "full": spread * self.triangle}.get(self.moments, 0.0)
        weights = (1.0, float(self.width), moment_weight)
        if isinstance(self.guarantee, PureDP):
            parts = [math.cbrt(weight * reach**2) for weight, reach in zip(weights, self._l1, strict=True)]
        else:
            parts = [math.sqrt(weight) for weight in weights]
            if self._replaces:
                parts[1] = min(parts[1], parts[0] + parts[2])
        counts, sums, moments = (part / sum(parts) for part in parts)
        if counts < LEAST_COUNT_SHARE:
            rest = (1 - LEAST_COUNT_SHARE) / (sums + moments)
            counts, sums, moments = LEAST_COUNT_SHARE, sums * rest, moments * rest
        # The caller's shares are kept; the others fill up what they leave, in the best proportion.
        best = (counts, sums, moments)
        pooled = POOLED_SHARE if self.moments == "pooled" else None
        fixed = (self.count_share, None, self.moment_share or pooled)
        free = sum(share for share, own in zip(best, fixed, strict=True) if own is None)
        rest = 1 - sum(own for own in fixed if own is not None)
        counts, sums, moments = (
            share / free * rest if own is None else own for share, own in zip(best, fixed, strict=True)
        )
        return counts, sums, moments

    @property
    def _replaces(self) -> bool:
        return self.guarantee.relation is not Relation.ADD_REMOVE

    @property
    def _l1(self) -> Three:
        """Largest L1 norm of a row's parts (*L* in the module's docstring)."""
        d = self.width
        moments = {"none": 0.0, "trace": 1.0}.get(self.moments, 1 + (d - 1) / math.sqrt(2))
        return 1.0, math.sqrt(d), moments

    def planned(self) -> Plan:
        """Split the budget over counts, sums and moments, and calibrate each draw."""
        if not isinstance(self.guarantee, PureDP):
            return self._plan_gaussian()
        # Pure: epsilons add over counts, sums and moments.
        rows, times = self.guarantee.unit.max_rows, 2 if self._replaces else 1
        draws: dict[str, Mechanism] = {}
        truncated = (0, self.width, self.triangle)  # numbers that truncation can move; counts are whole
        for name, numbers, reach, share in zip(PARTS, truncated, self._l1, self.shares, strict=True):
            if not share:
                continue
            epsilon = self.guarantee.epsilon * share
            grid = Grid() if name == "counts" else Grid.finer_than_both(1.0, rows * times * reach / epsilon)
            l1 = rows * (times * reach + (times - 1) * grid.step * numbers)
            draws[name] = Laplace.calibrated(sensitivity=l1, epsilon=epsilon, grid=grid)
        return Plan(draws=draws)

    def _plan_gaussian(self) -> Plan:
        """One joint μ, split by shares of 1/σ²."""
        rows, shares = self.guarantee.unit.max_rows, self.shares
        mu = self.guarantee.gaussian_mu() / rows
        # First with grids of step 1, to learn the sizes of the noises that the real grids have to suit.
        unit = self._joint_mu(shares, (Grid(), Grid(), Grid())) / mu
        rough = [unit / math.sqrt(share or 1.0) for share in shares]
        count_grid = Grid(min(0, Grid.finer_than_both(1.0, rough[0]).exponent))  # counts are whole steps
        grids = (count_grid, Grid.finer_than_both(1.0, rough[1]), Grid.finer_than_both(1.0, rough[2]))
        root = mu / self._joint_mu(shares, grids)
        reaches = (float(rows),) * 3  # of one unit in counts, sums and moments, each by itself, in L2
        if self._replaces:
            sums = 2 + grids[1].step * math.sqrt(self.width)
            moments = math.sqrt(2) + grids[2].step * math.sqrt(self.triangle)
            reaches = rows * math.sqrt(2), rows * sums, rows * moments
        draws = {
            name: Gaussian.calibrated(sensitivity=reach, mu=reach * root * math.sqrt(share), grid=grid)
            for name, share, grid, reach in zip(PARTS, shares, grids, reaches, strict=True)
            if share
        }
        # Calibration rounds scales to the lattice, so the event is priced anew at the 1/σ² that came out.
        counts, total, second = (
            (draws[name].mu / draws[name].sensitivity) ** 2 if name in draws else 0.0 for name in PARTS
        )
        spent = rows * self._joint_mu((counts, total, second), grids)
        return Plan(draws=draws, event=gaussian_event(spent))

    def _joint_mu(self, precisions: Three, grids: Grids) -> float:
        """μ of one row at these 1/σ²: the last line of the table in the module's docstring."""
        total, (_, a, b) = sum(precisions), precisions
        if not self._replaces:
            return math.sqrt(total)
        inside = 4 * a
        if self.moments in ("full", "pooled") and a < 2 * b:
            inside = 2 * a + 2 * b + a**2 / (2 * b)
        slack = math.sqrt(a * grids[1].step ** 2 * self.width + b * grids[2].step ** 2 * self.triangle)
        return math.sqrt(max(2 * total, inside)) + slack


def _freeze_shells(shells: npt.ArrayLike) -> FloatArray:
    """Radii, checked, as a read-only copy."""
    radii = np.array(shells, dtype=np.float64)
    positive = radii.ndim == 1 and radii.size > 0 and bool(np.isfinite(radii).all()) and radii[0] > 0
    if not positive or np.any(np.diff(radii) <= 0):
        raise InputError("Expected shells to be positive radii, finite and strictly increasing.")
    check_radius(shells=float(radii[0]))
    check_radius(shells=float(radii[-1]))
    radii.flags.writeable = False
    return radii


__all__ = ["GridPyramid", "LocalMeans"]
