"""Means of the source around public target points: what is asked, and what it costs.

Every question names public target (or coreset) points and a public ball. A
source row is clipped, put on a public grid and touches

====================  ============================================  ======================
question              a row touches                                 proof
====================  ============================================  ======================
`NearestMeans`        one cell: a count and a sum                   privacy.md, section 1 (c)
`LocalMeans`          one shell of one cell: count, sum, moments    privacy.md, section 6.1
`NeighbourAverages`   any number of target points, one place each   privacy.md, section 1b
`SourceRadius`        any number of target points, one place each   privacy.md, section 1b
====================  ============================================  ======================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.clustering.questions.calibration import (
    NOISES,
    budget_of,
    fine_grid,
    frozen,
    only_pure,
    replaces,
    sized,
)
from privada.methods.clustering.questions.local import LocalMeans
from privada.methods.clustering.questions.neighbours import NeighbourAverages, SourceRadius
from privada.privacy.bounds import Grid
from privada.privacy.mechanism import KNormCylinder, Plan, pure_event
from privada.privacy.release import PublicSchema, Question, Release


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NearestMeans(Question):
    """Ask for the noisy count and sum of the source rows nearest to each target point (NNA, Alg. 2).

    Parameters
    ----------
    cells : array of shape (cells, features)
        Public target or coreset points. A row belongs to the nearest one, the first on ties.
    radius : float
        Public radius R to which rows are clipped, around 0 or, if ``recentred``, around their cell.
    recentred : bool
        Sum rows as seen from their cell.
    domain : float, optional
        Radius of the public ball around 0 onto which sanitised points are projected: ``radius``
        itself by default, and needed if ``recentred``.
    noise : "lattice" or "k-norm"
        Discrete Laplace (pure) or discrete Gaussian noise, exact; or, pure only, K-norm noise
        on the cylinder, less of it up to some 30 features, in idealised arithmetic.
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
    answered_by: ClassVar[str] = "privada.methods.clustering.owner.answer:answer_nearest"

    @property
    def needs_label(self) -> bool:
        """Never: rows count whatever their label."""
        return False

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "cells", frozen(cells=self.cells))
        sized(radius=self.radius)
        _check.one_of(NOISES, noise=self.noise)
        if self.domain is not None:
            sized(domain=self.domain)
        elif self.recentred:
            raise InputError("Expected domain, the radius of the public ball, beside recentred=True.")
        if self.count_share is not None:
            _check.probability(count_share=self.count_share)
        if self.noise == "k-norm":
            only_pure(self.guarantee)
            if self.count_share is not None:
                raise InputError("Expected count_share to be absent beside noise='k-norm': nothing is split.")

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
        """Where each cell's rows are seen from."""
        return self.statistics.origins(self.statistics.tables[0])

    @property
    def ball(self) -> float:
        """Radius of the public ball around 0 onto which sanitised points are projected."""
        return self.radius if self.domain is None else self.domain

    @property
    def moves(self) -> int:
        """How many units one step of the relation moves the K-norm table."""
        return self.guarantee.unit.max_rows * (2 if replaces(self.guarantee) else 1)

    @property
    def grid(self) -> Grid:
        """The grid of sums under K-norm noise."""
        return fine_grid(self.radius, self.radius)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        if self.noise == "lattice":
            return self.statistics.answer_shapes()
        return {"table": (len(self.cells), 1 + self.cells.shape[1])}

    def planned(self) -> Plan:
        """Lattice noise as over cells, or one K-norm draw of the whole table."""
        if self.noise == "lattice":
            return self.statistics.plan
        epsilon, _ = (
            budget_of(self.guarantee),
            self.grid,
        )  # without a grid refused before the charge
        draw = KNormCylinder(sensitivity=1.0, budget=epsilon)
        return Plan(draws={"table": draw}, event=pure_event(epsilon), epsilon=epsilon)

    def estimates(self, release: Release) -> tuple[FloatArray, FloatArray]:
        """Noisy counts and sums of a release, unbiased."""
        if self.noise == "lattice":
            return release["counts"], release["sums"]
        table = release["table"] * self.moves
        return table[:, 0], table[:, 1:] * self.radius


__all__ = ["LocalMeans", "NearestMeans", "NeighbourAverages", "SourceRadius"]
