"""Our errors over the best trivial rivals', ranks, and how forecasts came true: figures and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from privada.report.exhibit import Dots, Figure
from privada.report.tables import Table
from privada_lab.datasets.tables import TablePair
from privada_lab.experiments.calibration import calibration_figures
from privada_lab.experiments.tables.contenders import CONTENDERS, NOTHING, Contender
from privada_lab.experiments.tables.results import Record, Results

GOALS = {"reweighting": (1.05, 0.95), "transport": (1.05, 0.95), "marginals": (1.05, 0.97)}
UNBALANCED = 0.8  # share of one class, beyond which balanced errors are shown too
_HERE, _FLIPPED = ("labelled", "unlabelled"), ("transport",)
SHOWN = (  # task, views, number and title of each table
    ("regression", _HERE, "error", "Mean squared errors"),
    ("classification", _HERE, "error", "Shares of wrong classes"),
    ("classification", _HERE, "balanced", "Balanced errors of uneven classes"),
    ("classification", _FLIPPED, "error", "Shares of wrong classes, from a private source"),
    ("classification", _FLIPPED, "balanced", "Balanced errors of uneven classes, from a private source"),
)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One of ours on one pair at one epsilon: means over the splits that it finished.

    Attributes
    ----------
    best : str
        The rival with the least mean error.
    regret : float
        Our mean error over that rival's; where a class error is 0, half a test row counts.
    rank : int
        1 is best.
    forecast, outcome : float or None
        Forecast error over that of doing nothing, and what it came to.
    covered : tuple of bool
        Whether the outcome of each split lay in its band, where there was one.
    """

    figure: str
    pair: str
    epsilon: float
    splits: int
    error: float
    best: str
    regret: float
    rank: int
    forecast: float | None
    outcome: float | None
    covered: tuple[bool, ...]


def cells(results: Results, pairs: Iterable[TablePair], epsilons: Iterable[float]) -> list[Cell]:
    """All that can be compared: ours with an error, and at least one rival on the same splits."""
    levels = tuple(epsilons)
    found = (
        _cell(results, pair, each, epsilon)
        for pair in pairs
        for each in CONTENDERS
        if each.figure and each.task == pair.task
        for epsilon in levels
    )
    return [cell for cell in found if cell is not None]


def _cell(results: Results, pair: TablePair, ours: Contender, epsilon: float) -> Cell | None:
    splits = results.splits(pair.name, ours.name, epsilon)
    error = results.mean(pair.name, ours.name, epsilon, splits)
    means = {each.name: results.mean(pair.name, each.name, epsilon, splits) for each in ours.rivals()}
    rivals = {name: mean for name, mean in means.items() if mean is not None}
    if error is None or not rivals:
        return None
    best = min(rivals, key=lambda name: rivals[name])
    least = _least(results, pair, ours, epsilon, splits)
    nothing = rivals.get(NOTHING.get(ours.figure, ""))
    forecasts = [_record(results, pair, ours, epsilon, split).forecast for split in splits]
    known = [each for each in forecasts if each is not None]
    return Cell(
        figure=ours.figure,
        pair=pair.name,
        epsilon=epsilon,
        splits=len(splits),
        error=error,
        best=best,
        regret=max(error, least) / max(rivals[best], least),
        rank=1 + sum(mean < error for mean in rivals.values()),
        forecast=float(np.mean(known)) if known and nothing else None,
        outcome=error / nothing if nothing else None,
        covered=tuple(_covered(results, pair, ours, epsilon, splits)),
    )


def _least(results: Results, pair: TablePair, ours: Contender, epsilon: float, splits: list[int]) -> float:
    """Half a test row, of a class error; next to nothing otherwise."""
    if pair.task == "regression":
        return 1e-300
    return 0.5 / _record(results, pair, ours, epsilon, splits[0]).tests


def _covered(
    results: Results, pair: TablePair, ours: Contender, epsilon: float, splits: list[int]
) -> Iterator[bool]:
    for split in splits:
        mine = _record(results, pair, ours, epsilon, split)
        nothing = results.get(pair.name, NOTHING.get(ours.figure, ""), epsilon, split)
        if mine.band is not None and mine.error is not None and nothing is not None and nothing.error:
            yield mine.band[0] <= mine.error / nothing.error <= mine.band[1]


def _record(results: Results, pair: TablePair, ours: Contender, epsilon: float, split: int) -> Record:
    found = results.get(pair.name, ours.name, epsilon, split)
    assert found is not None
    return found


def figures(results: Results, pairs: Iterable[TablePair], epsilons: Iterable[float]) -> Iterator[Figure]:
    """Regrets by method and by estimator, forecasts, and the worst rank of any."""
    known = tuple(pairs)
    found = cells(results, known, epsilons)
    groups: dict[str, list[Cell]] = {}
    for cell in found:
        for name in dict.fromkeys((cell.figure.partition("_")[0], cell.figure)):
            groups.setdefault(name, []).append(cell)
    for name, group in groups.items():
        yield from _regrets(name, group, _unfinished(results, name, {pair.name for pair in known}))
        yield from _forecasts(name, group)
    if found:
        worst = max(found, key=lambda cell: (cell.rank, cell.regret))
        said = f"{worst.figure} on {worst.pair} at epsilon {worst.epsilon:g}"
        yield Figure("worst_rank", float(worst.rank), None, "lower", said, worst.splits)


def _unfinished(results: Results, name: str, pairs: set[str]) -> int:
    """How many fits of a method or an estimator gave no error."""
    ours = {each.name for each in CONTENDERS if each.figure and each.figure.startswith(name)}
    return sum(each.error is None and each.contender in ours and each.pair in pairs for each in results)


def dots(found: Iterable[Cell]) -> Iterator[Dots]:
    """Regrets by pair, one picture per epsilon; 1 is the best rival."""
    known = list(found)
    for epsilon in sorted({cell.epsilon for cell in known}):
        here = {(cell.figure, cell.pair): cell.regret for cell in known if cell.epsilon == epsilon}
        pairs = tuple(dict.fromkeys(pair for _, pair in here))
        methods = {
            name: [here.get((name, pair), math.nan) for pair in pairs]
            for name in dict.fromkeys(name for name, _ in here)
        }
        title = f"Regret beside the best trivial rival, epsilon {epsilon:g}"
        yield Dots(title=title, xlabel="our error over the rival's", places=pairs, methods=methods)


def _regrets(name: str, group: list[Cell], unfinished: int) -> Iterator[Figure]:
    worst, splits = max(group, key=lambda cell: cell.regret), min(cell.splits for cell in group)
    goals = GOALS[name.partition("_")[0]]
    at = f"{worst.best} on {worst.pair} at epsilon {worst.epsilon:g}"
    lost = f"; {unfinished} fits gave no result" if unfinished else ""
    behind = sum(cell.regret > 1 for cell in group)
    said = f"behind a trivial rival in {behind} of {len(group)} cells{lost}"
    yield Figure(f"regret_worst_{name}", worst.regret, goals[0], "lower", at + lost, splits)
    mean = math.fsum(cell.regret for cell in group) / len(group)
    yield Figure(f"regret_mean_{name}", mean, goals[1], "lower", said, splits)


def _forecasts(name: str, group: list[Cell]) -> Iterator[Figure]:
    pairs = [
        (cell.forecast, cell.outcome)
        for cell in group
        if cell.forecast is not None and cell.outcome is not None
    ]
    covered = [each for cell in group for each in cell.covered]
    yield from calibration_figures(
        name, covered=covered, pairs=pairs, runs=min(cell.splits for cell in group)
    )


def tables(results: Results, pairs: Iterable[TablePair], epsilons: Iterable[float]) -> Iterator[Table]:
    """Mean errors of every contender on every pair, one table for each task, side and epsilon.

    Where one class has more than 80 % of the test rows, balanced errors are shown as well.
    """
    known = tuple(pairs)
    for task, views, what, title in SHOWN:
        columns = [each for each in CONTENDERS if each.task == task and each.view in views]
        for epsilon in epsilons:
            rows = [_row(results, pair, columns, epsilon, what) for pair in known if pair.task == task]
            shown = tuple(row for row in rows if any(row[2:]))
            if shown:
                yield Table(
                    title=f"{title}, epsilon {epsilon:g}",
                    columns=("pair", "n", *(each.name for each in columns)),
                    rows=shown,
                    note="Means over the splits that each contender finished.",
                ).without_empty_columns()


def _row(
    results: Results, pair: TablePair, columns: list[Contender], epsilon: float, what: str
) -> tuple[str, ...]:
    said, rows = [], ""
    for each in columns:
        splits = results.splits(pair.name, each.name, epsilon)
        mean = results.mean(pair.name, each.name, epsilon, splits, what)
        if what == "balanced":
            largest = results.mean(pair.name, each.name, epsilon, splits, "majority")
            mean = mean if largest is not None and largest > UNBALANCED else None
        if mean is not None:
            rows = str(_record(results, pair, each, epsilon, splits[0]).rows)
        said.append("" if mean is None else f"{mean:.4g}")
    return (pair.name, rows, *said)


__all__ = ["Cell", "cells", "dots", "figures", "tables"]
