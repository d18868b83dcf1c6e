"""Cells: private counts, sums and histograms over public cells.

Other methods build on this one: clustering needs counts and sums in the cells of
target points, marginals needs counts by bin and outcome.

*Who holds what.* An owner holds private rows, labelled or not. The learner
knows public cells: centres, bins of features, or grids of them.

*Threat.* An observer who sees the releases, and knows every row except those of
one unit, learns no more about that unit than the guarantee allows. Cells, bounds, classes, width and
the number of tables are public. Under add/remove the number of rows is not.

======  ======================================  ==========================
symbol  meaning                                 parameter
======  ======================================  ==========================
n_x     rows in cell x                          payload ``counts``
r_x     sum of clipped rows of cell x           payload ``sums``
R       clipping radius                         ``radius``
o_x     origin of cell x                        ``recentred``
η       share of the budget for counts          ``count_share``
======  ======================================  ==========================

References: privacy.md, sections 1 (c), 6.2 and 6.7.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "method": ("Cells",),
    "estimator": ("CellClassifier", "CellMeans"),
    "learner": ("CellEstimates", "CellTable", "estimate", "learn"),
    "questions.partition": ("Bins", "NearestCells", "Partition", "GridCells", "Projected"),
    "questions.statistics": ("CellStatistics",),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
