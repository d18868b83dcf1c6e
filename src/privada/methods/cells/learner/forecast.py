"""How exactly counts over cells will be known, before anything is spent.

The noise has a known law, whatever the rows are: half the sum of its sizes is the number of rows that stand
in a wrong cell. A Gamma law with the sum's mean and variance gives the band; for Laplace noise that is nearly
exact. Its ends are rounded to the grid of the counts.
"""

from __future__ import annotations

import math

from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.forecast import CONFIDENCE, Forecast, say_size

LEAST = 1e-9  # of a share: noise that a number cannot tell from none
MEASURE = "the share of rows that are counted in a wrong cell"


def forecast_counts(question: CellStatistics, *, size: int | None) -> Forecast:
    """Expected share of rows that are counted in a wrong cell or class, the mean over tables.

    Parameters
    ----------
    question : CellStatistics
    size : int or None
        Announced number of rows.

    >>> from privada.methods.cells import Bins
    >>> from privada.privacy import PureDP
    >>> cells = Bins(feature=0, edges=[1.0, 2.0, 3.0])
    >>> ask = CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=0.5, relation="add/remove"))
    >>> f"{forecast_counts(ask, size=400).ratio:.4f}"
    '0.0096'
    """
    rows, said = say_size(size)
    law = _wrong_rows(question)
    low, middle, high = (each / rows for each in law)
    return Forecast(ratio=max(middle, LEAST), low=low, high=max(high, LEAST), measure=f"{MEASURE}, {said}")


def _wrong_rows(question: CellStatistics) -> tuple[float, float, float]:
    """Half the sum of the noise's sizes, the mean over tables: low end, mean and high end."""
    from scipy.stats import gamma

    mean = variance = 0.0
    step = math.inf
    for index in range(len(question.tables)):
        name = question.names(index)[0]
        draw, entries = question.plan.lattice(name), math.prod(question.answer_shapes()[name])
        mean += entries * draw.mean_absolute
        variance += entries * max(draw.variance - draw.mean_absolute**2, 0.0)
        step = min(step, draw.grid.step)
    if mean < LEAST:
        return 0.0, 0.0, 0.0
    levels = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    low, high = gamma.ppf(levels, mean**2 / variance, scale=variance / mean)
    half = 2 * len(question.tables)
    least, most = (round(float(end) / step) * step for end in (low, high))
    return min(least, mean) / half, mean / half, max(most, mean) / half


__all__ = ["forecast_counts"]
