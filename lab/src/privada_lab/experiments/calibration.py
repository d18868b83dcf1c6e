"""Whether forecasts came true: how many outcomes lay in their band, and whether they are ordered alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from privada.report.exhibit import Figure

COVERAGE_GOAL, CORRELATION_GOAL = 0.75, 0.7
FEWEST_CORRELATED = 5


def calibration_figures(
    name: str, *, covered: Sequence[bool], pairs: Sequence[tuple[float, float]], runs: int
) -> Iterator[Figure]:
    """Coverage of 80 % bands, and the rank correlation of (forecast, outcome) where there are enough.

    >>> [each.figure for each in calibration_figures("cells", covered=[True], pairs=[(0.1, 0.2)], runs=1)]
    ['forecast_coverage_cells']
    """
    from scipy.stats import spearmanr

    if covered:
        said = f"of {len(covered)} outcomes lay in the 80 % band"
        value = float(np.mean(covered))
        yield Figure(f"forecast_coverage_{name}", value, COVERAGE_GOAL, "higher", said, runs)
    if len(pairs) >= FEWEST_CORRELATED and len({forecast for forecast, _ in pairs}) > 1:
        value = float(spearmanr(*zip(*pairs, strict=True)).statistic)
        said = "forecast and outcome, by rank"
        yield Figure(f"forecast_correlation_{name}", value, CORRELATION_GOAL, "higher", said, runs)


__all__ = ["CORRELATION_GOAL", "COVERAGE_GOAL", "calibration_figures"]
