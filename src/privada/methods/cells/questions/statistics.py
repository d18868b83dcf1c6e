"""The question for counts and sums over public cells, and its price.

A record touches one cell of each table. With at most m rows per unit, clipping radius R
and d features, the sensitivities of one table are (privacy.md, sections 1 (c), 6.2 and 6.7):

==============  =====================  ==================================================
                add/remove             replace-one (and attribute)
==============  =====================  ==================================================
counts, L1      m                      2 m
counts, L2²     m²                     2 m²
sums, L1        m R √d                 m (2 R √d + g d)
sums, L2        m R                    m (2 R + g √d), g the grid step
both, μ²        m² (1/σₙ² + R²/σᵣ²)    m² max(2/σₙ² + s²/2, s²), s = (2R + g√d)/σᵣ;
                                       by label, where a label may change in its own
                                       cell, m² (2/σₙ² + s²)
==============  =====================  ==================================================

Epsilons and μ² add up over tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, NearestCells, Partition
from privada.privacy.bounds import Grid
from privada.privacy.codec import several_of
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Mechanism, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema, Question

LEAST_COUNT_SHARE = 0.1
LARGEST_ANSWER = 50_000_000  # numbers: the answer to a small file has to fit an owner's memory


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CellStatistics(Question):
    """Ask for noisy counts, optionally by class, and sums of vectors, over public cells.

    Parameters
    ----------
    tables : tuple of Partition
        Each is released as one table; a record touches one cell of each.
    n_classes : int, optional
        Count by label: the number of the schema's classes.
    radius : float, optional
        Release sums as well, of rows clipped to this norm.
    recentred : bool, default=False
        Sum rows relative to their cell's centre (`NearestCells` only): the noise
        is then proportional to the size of the cells, not of the domain.
    width : int, optional
        Number of features, needed for sums.
    count_share : float, optional
        Share of the budget for counts where sums are asked for as well; by default the
        one that minimises the error of the means.

    Privacy
    -------
    Pure guarantees use discrete Laplace noise, others discrete Gaussian.
    Every cell gets noise, empty or not.

    >>> from privada.privacy import PureDP
    >>> q = CellStatistics(tables=(NearestCells(centers=np.eye(2)),),
    ...                    guarantee=PureDP(epsilon=1, relation="add/remove"))
    >>> q.plan.draws["counts"].scale
    1.0
    """

    tables: tuple[Partition, ...] = field(metadata=several_of(Partition, key="partitions", path=""))
    n_classes: int | None = None
    radius: float | None = None
    recentred: bool = False
    width: int | None = None
    count_share: float | None = None
    kind: ClassVar[str] = "cells.statistics"
    answered_by: ClassVar[str] = "privada.methods.cells.owner:answer"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "tables", tuple(self.tables))
        if not self.tables or not all(isinstance(table, Partition) for table in self.tables):
            raise InputError("Expected tables to be at least one partition.")
        if self.n_classes is not None:
            _check.count(least=2, n_classes=self.n_classes)
        width = 0 if self.width is None else _check.count(width=self.width)
        numbers = sum(table.n_cells for table in self.tables) * ((self.n_classes or 1) + width)
        if numbers > LARGEST_ANSWER:
            raise InputError(f"Expected an answer of at most {LARGEST_ANSWER} numbers, got {numbers}.")
        if self.radius is None:
            if self.recentred or self.count_share is not None or self.width is not None:
                raise InputError(
                    "Expected radius together with recentred, width or count_share: they are about sums."
                )
            return
        _check.positive(radius=self.radius)
        _check.count(width=self.width)
        if self.count_share is not None:
            _check.probability(count_share=self.count_share)
        if self.recentred and not all(isinstance(table, NearestCells) for table in self.tables):
            raise InputError("Expected recentred=False: only NearestCells have centres.")

    def fits(self, schema: PublicSchema) -> None:
        """Check features and classes against the owner's schema."""
        for table in self.tables:
            table.fits(schema.width)
        if self.width is not None and self.width != schema.width:
            raise InputError(f"Expected width {schema.width}, got {self.width}.")
        if self.n_classes is not None and self.n_classes != len(schema.classes):
            raise InputError(f"Expected n_classes to be {len(schema.classes)}, got {self.n_classes}.")

    @property
    def needs_label(self) -> bool:
        """Only if counts are by class."""
        return self.n_classes is not None

    @property
    def needed_features(self) -> frozenset[int] | None:
        """The features of the bins, if there are only bins and no sums."""
        bins = [table for table in self.tables if isinstance(table, Bins)]
        if self.radius is not None or len(bins) < len(self.tables):
            return None
        marks = (table.missing for table in bins if table.missing is not None)
        return frozenset([*(table.feature for table in bins), *marks])

    def names(self, index: int) -> tuple[str, str]:
        """Payload names of a table's counts and sums."""
        mark = "" if len(self.tables) == 1 else f".{index}"
        return f"counts{mark}", f"sums{mark}"

    def origins(self, table: Partition) -> FloatArray:
        """The origin of each cell, to which its rows are relative."""
        if self.recentred and isinstance(table, NearestCells):
            return table.centers
        return np.zeros((table.n_cells, self.width or 0))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        shapes: dict[str, tuple[int, ...]] = {}
        for index, table in enumerate(self.tables):
            counts, sums = self.names(index)
            shapes[counts] = (table.n_cells,) if self.n_classes is None else (table.n_cells, self.n_classes)
            if self.width is not None:
                shapes[sums] = (table.n_cells, self.width)
        return shapes

    def answer_axes(self, schema: Any) -> dict[str, tuple[Sequence[str] | None, ...]]:
        """Cells, then classes or features."""
        axes: dict[str, tuple[Sequence[str] | None, ...]] = {}
        classes = () if self.n_classes is None else (tuple(map(str, schema.classes.names)),)
        for index, table in enumerate(self.tables):
            counts, sums = self.names(index)
            cells = table.cell_names(schema.features)
            axes |= {counts: (cells, *classes), sums: (cells, schema.features)}
        return axes

    def planned(self) -> Plan:
        """Split the budget over tables, counts and sums, and calibrate each draw."""
        if isinstance(self.guarantee, PureDP):
            return self._plan_laplace(self.guarantee.epsilon)
        return self._plan_gaussian(self.guarantee.gaussian_mu())

    @property
    def _replaces(self) -> bool:
        return self.guarantee.relation is not Relation.ADD_REMOVE

    def _choose_count_share(self, optimum: float) -> float:
        """Share of the budget for counts: all of it without sums, the caller's, or the optimum, floored."""
        if self.radius is None:
            return 1.0
        return self.count_share if self.count_share is not None else max(LEAST_COUNT_SHARE, optimum)

    def _plan_laplace(self, budget: float) -> Plan:
        """Plan draws of a pure guarantee: epsilons add up over tables and over counts and sums."""
        rows, width = self.guarantee.unit.max_rows, self.width or 1
        share = self._choose_count_share(1 / (1 + math.pow(width, 2 / 3)))
        epsilon = budget / len(self.tables)
        draws: dict[str, Mechanism] = {}
        for index in range(len(self.tables)):
            counts, sums = self.names(index)
            reach = rows * (2.0 if self._replaces else 1.0)
            draws[counts] = Laplace.calibrated(sensitivity=reach, epsilon=epsilon * share)
            if self.radius is not None:
                grid = Grid.finer_than(self.radius * 2.0**-20)
                root = self.radius * math.sqrt(width)
                reach = rows * (2 * root + grid.step * width if self._replaces else root)
                draws[sums] = Laplace.calibrated(sensitivity=reach, epsilon=epsilon * (1 - share), grid=grid)
        return Plan(draws=draws)

    def _plan_gaussian(self, mu: float) -> Plan:
        """Plan draws of other guarantees: squares of μ add up; counts and sums have one joint sensitivity."""
        rows, width = self.guarantee.unit.max_rows, self.width or 1
        # The count's share of μ² minimises the error of a cell's mean, d σᵣ² + R² σₙ², at the worst
        # mean. Under add/remove the optimum is in privacy.md, section 1 (c). Under replace-one the
        # same-cell term binds for every d, and the optimum meets both terms at once: μ² is the sums'
        # alone, half of it the counts'. By label both add up.
        if not self._replaces:
            optimum = 1 / (1 + math.sqrt(width))
        else:
            optimum = 1 / (1 + math.sqrt(2 * width)) if self.n_classes is not None else 1 / 3
        share = self._choose_count_share(optimum)
        alone = mu / math.sqrt(len(self.tables))
        if self.radius is not None:  # split so that the joint μ², not its parts, is the budget
            alone /= math.sqrt(self._join(math.sqrt(share), math.sqrt(1 - share)))
        draws: dict[str, Mechanism] = {}
        joint = 0.0
        for index in range(len(self.tables)):
            counts, sums = self.names(index)
            reach = rows * (math.sqrt(2) if self._replaces else 1.0)
            count = Gaussian.calibrated(sensitivity=reach, mu=alone * math.sqrt(share), whole=True)
            draws[counts] = count
            if self.radius is None:
                joint += count.mu**2
                continue
            # The grid's slack is part of the sensitivity of sums.
            sum_mu = alone * math.sqrt(1 - share)
            grid = Grid.finer_than(self.radius / sum_mu * 2.0**-20)
            reach = rows * (2 * self.radius + grid.step * math.sqrt(width) if self._replaces else self.radius)
            total = Gaussian.calibrated(sensitivity=reach, mu=sum_mu, grid=grid)
            draws[sums] = total
            joint += self._join(count.mu, total.mu)
        return Plan(draws=draws, event=gaussian_event(math.sqrt(joint)))

    def _join(self, count_mu: float, sum_mu: float) -> float:
        """μ² of counts and sums together, from what each would be alone (the table above)."""
        if not self._replaces or self.n_classes is not None:
            return count_mu**2 + sum_mu**2
        return max(count_mu**2 + sum_mu**2 / 2, sum_mu**2)


__all__ = ["CellStatistics"]
