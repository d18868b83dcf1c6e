"""One forecast beside what came of it, and the figures and pictures of many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from privada.methods.forecast import Forecast
from privada.report.exhibit import Bands, Figure
from privada_lab.experiments.calibration import calibration_figures

TINY = 1e-9  # an outcome of nothing, on a logarithmic axis


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One forecast, and the outcome.

    Attributes
    ----------
    method : str
    place : str
        The set of data.
    epsilon : float
    forecast : Forecast
    outcome : float
        Measured as the forecast says.
    """

    method: str
    place: str
    epsilon: float
    forecast: Forecast
    outcome: float

    @property
    def covered(self) -> bool:
        """Whether the outcome lay in the band."""
        return self.forecast.low <= self.outcome <= self.forecast.high


def figures(trials: Iterable[Trial], runs: int) -> Iterator[Figure]:
    """Coverage over all outcomes, and correlation over the means of each set and epsilon, by method."""
    for method, group in by_method(trials).items():
        cells: dict[tuple[str, float], list[Trial]] = {}
        for trial in group:
            cells.setdefault((trial.place, trial.epsilon), []).append(trial)
        pairs = [
            (
                float(np.mean([each.forecast.ratio for each in cell])),
                float(np.mean([each.outcome for each in cell])),
            )
            for cell in cells.values()
        ]
        covered = [trial.covered for trial in group]
        yield from calibration_figures(method, covered=covered, pairs=pairs, runs=runs)


def pictures(trials: Iterable[Trial]) -> Iterator[Bands]:
    """Outcomes against forecasts, one picture for each method."""
    for method, group in by_method(trials).items():
        forecasts = [trial.forecast for trial in group]
        yield Bands(
            title=f"Forecast and outcome of {method}",
            label="error over doing nothing" if forecasts[0].beside else "error",
            places=tuple(f"{trial.place}, epsilon {trial.epsilon:g}" for trial in group),
            expected=[each.ratio for each in forecasts],
            low=[each.low for each in forecasts],
            high=[each.high for each in forecasts],
            outcome=[max(trial.outcome, TINY) for trial in group],
        )


def by_method(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Trials of each method, in the order of their names."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.method, []).append(trial)
    return dict(sorted(groups.items()))


__all__ = ["Trial", "by_method", "figures", "pictures"]
