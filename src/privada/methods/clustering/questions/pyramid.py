"""Counts of the source in a pyramid of grids: what is asked, and what it costs.

In few dimensions nothing tells more of where the source is than counts alone:
a record touches one cell of each level whatever its coordinates, so the noise
neither grows with the dimension nor with the size of the domain. Coarse levels
see the sparse parts of the source, fine ones place the dense parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, GridCells
from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.clustering.questions.calibration import few_numbers, sized
from privada.privacy.mechanism import Lattice, Plan
from privada.privacy.release import PublicSchema, Question, Release


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GridPyramid(Question):
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
    answered_by: ClassVar[str] = "privada.methods.clustering.owner.answer:answer_pyramid"

    @property
    def needs_label(self) -> bool:
        """Never: rows count whatever their label."""
        return False

    def validate(self) -> None:
        """Check every public parameter by name."""
        levels = tuple(_check.count(level=level) for level in self.levels)
        if not levels or any(a >= b for a, b in pairwise(levels)):
            raise InputError("Expected levels to be whole numbers >= 1, strictly increasing.")
        object.__setattr__(self, "levels", levels)
        sized(domain=self.domain)
        _check.count(width=self.width)
        few_numbers(sum(2 ** min(level * self.width, 64) for level in levels), "the answer")

    def fits(self, schema: PublicSchema) -> None:
        """Check the features against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected width {schema.width}, got {self.width}.")

    @cached_property
    def statistics(self) -> CellStatistics:
        """The same question over cells, where it is planned and answered."""
        return CellStatistics(
            tables=tuple(self._grid(level) for level in self.levels), guarantee=self.guarantee, salt=self.salt
        )

    def _grid(self, level: int) -> GridCells:
        half = float(self.domain)
        edges = np.linspace(-half, half, 2**level + 1)[1:-1]
        return GridCells(factors=tuple(Bins(feature=j, edges=edges) for j in range(self.width)))

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


__all__ = ["GridPyramid"]
