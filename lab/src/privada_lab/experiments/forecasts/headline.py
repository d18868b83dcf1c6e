"""What is measured, in which order, and the figures and pictures that are made of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from privada.exceptions import InputError, PrivadaWarning
from privada.report.exhibit import Exhibit, Figure
from privada_lab.datasets.table_split import TablePair
from privada_lab.experiments.forecasts.rooms import METHODS, try_method
from privada_lab.experiments.forecasts.sets import find_sets
from privada_lab.experiments.forecasts.trials import Trial, figures, pictures
from privada_lab.experiments.registry import Track, untracked
from privada_lab.experiments.sharing import shared

EPSILONS, QUICK_EPSILONS = (0.5, 1.0, 2.0, 4.0), (0.5, 4.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """Some work: methods and epsilons on one split of one pair."""

    pair: TablePair
    split: int
    methods: tuple[str, ...]
    epsilons: tuple[float, ...]
    data: Path | None


def run(
    *,
    runs: int,
    data: Path | None = None,
    track: Track = untracked,
    half: str | None = None,
    only: tuple[str, ...] = (),
    quick: bool = False,
) -> Iterator[Figure | Exhibit]:
    """Try every method on every set, then yield coverage and correlation of each, and pictures.

    Parameters
    ----------
    runs : int
        Splits of each set.
    half : "development" or "final", optional
        Of the tables, where there is a data folder; final by default.
    only : tuple of str
        Methods; all by default.
    """
    methods = _choose(only)
    epsilons = QUICK_EPSILONS if quick else EPSILONS
    units = [
        Unit(pair=pair, split=split, methods=methods, epsilons=epsilons, data=data)
        for split in range(runs)
        for pair in find_sets(data, half=half, quick=quick)
    ]
    trials = [trial for found in shared(measure, units, "splits of sets", track) for trial in found]
    yield from figures(trials, runs)
    yield from pictures(trials)


def measure(unit: Unit) -> list[Trial]:
    """All forecasts and outcomes of a unit."""
    split = unit.pair.split(unit.data, unit.split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)  # that little is expected is measured here
        warnings.simplefilter("ignore", UserWarning)  # of scikit-learn's solvers
        return [
            trial
            for method in unit.methods
            for epsilon in unit.epsilons
            for trial in try_method(method, split, epsilon)
        ]


def _choose(only: tuple[str, ...]) -> tuple[str, ...]:
    for name in only:
        if name not in METHODS:
            raise InputError(f"Expected --only to be one of {', '.join(METHODS)}, got {name!r}.")
    return only or tuple(METHODS)


__all__ = ["EPSILONS", "Unit", "measure", "run"]
