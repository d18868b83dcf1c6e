"""What an experiment shows: figures (numbers compared with a goal), and curves, bands, maps and tables.

``python -m benchmarks.NAME`` and ``privada reproduce NAME`` print figures, one JSON object per line
with ``--json``, else as a table. ``privada reproduce NAME --out FOLDER`` also writes every curve, map and
table as numbers (CSV) and, if matplotlib is installed, as a picture (SVG).
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.report.tables import Table

ROLES: dict[str, dict[str, Any]] = {
    "ours": {"linewidth": 2.6, "zorder": 4},
    "paper": {"linewidth": 1.6, "linestyle": "--"},
    "baseline": {"linewidth": 1.4, "linestyle": ":"},
    "bound": {"linewidth": 1.2, "linestyle": "-."},
}
# Colours that colour-blind readers can tell apart (Okabe and Ito)
COLOURS = {
    "ours": ("#0b6e63", "#56b4e9", "#4b2e83", "#111827"),
    "paper": ("#d55e00", "#cc79a7"),
    "baseline": ("#0072b2", "#e69f00", "#009e73", "#8c6bb1", "#a6761d"),
    "bound": ("#374151", "#9ca3af"),
}
MARKERS = {"ours": "oDPX", "paper": "sp", "baseline": "^v<>*", "bound": ("", "")}
LONGEST_LINE = 56  # characters of a title before it is wrapped
LEGEND_SIZE = 30.0  # smallest size of a point in a legend
MOST_TICKS = 8  # as many settings are written at an axis


@dataclass(frozen=True)
class Figure:
    """One measured number, compared with its goal.

    Attributes
    ----------
    figure : str
        Name, unique over all commands.
    value : float
    goal : float or None
        None if there is no goal.
    better : "lower" or "higher"
        Which side of the goal is better.
    beside : str
        What the value was compared with in the same run, with its version.
    runs : int
        Number of runs behind the value.
    interval : (float, float), default=None
        95 % interval of the value over the runs.

    Examples
    --------
    >>> solver = Figure("solver_time_vs_fasterpam", 0.2134, 0.25, "lower", "kmedoids.fasterpam 0.5.5", 5)
    >>> solver.met
    True
    >>> print(solver.to_json_line())  # doctest: +NORMALIZE_WHITESPACE
    {"figure": "solver_time_vs_fasterpam", "value": 0.2134, "goal": 0.25, "better": "lower",
     "beside": "kmedoids.fasterpam 0.5.5", "runs": 5}
    """

    figure: str
    value: float
    goal: float | None
    better: str
    beside: str
    runs: int
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check.one_of(("higher", "lower"), better=self.better)
        _check.finite(value=self.value)
        _check.count(runs=self.runs)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.better == "lower" else self.value >= self.goal

    def to_dict(self) -> dict[str, Any]:
        """Plain form with numbers of four digits, or more where rounding would turn a miss into a hit.

        >>> Figure("ratio", 1.0004, 1.0, "lower", "", 30).to_dict()["value"]
        1.0004
        """
        rounded = (replace(self, value=float(f"{self.value:.{digits}g}")) for digits in range(4, 18))
        value = next((figure.value for figure in rounded if figure.met == self.met), self.value)
        plain = asdict(self) | {"value": value}
        if plain.pop("interval") is not None:
            plain["interval"] = [float(f"{end:.4g}") for end in self.interval or ()]
        return plain

    def to_json_line(self) -> str:
        """Write one JSON object."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def figures_table(title: str, figures: Iterable[Figure]) -> Table:
    """Make a table of figures."""
    rows = []
    for figure in figures:
        plain = figure.to_dict()
        low, high = plain.get("interval", (None, None))
        spread = "" if low is None else f"{low:g} to {high:g}"
        sign = "≤" if figure.better == "lower" else "≥"
        goal = "none set" if figure.goal is None else f"{sign} {figure.goal:g}"
        met = {None: "", True: "yes", False: "no"}[figure.met]
        value = f"{plain['value']:g}"
        rows.append((figure.figure, value, spread, goal, met, figure.beside, str(figure.runs)))
    columns = ("figure", "value", "95 % interval", "goal", "met", "beside", "runs")
    return Table(title=title, columns=columns, rows=tuple(rows)).without_empty_columns()


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One line of `Curves`: means and standard errors over runs.

    Attributes
    ----------
    role : "ours", "paper", "baseline" or "bound"
        How it is drawn; a bound is a limit of all methods, such as the result with all data, or with none.
    """

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    error: Sequence[float]
    role: str = "baseline"

    @classmethod
    def over_runs(
        cls, name: str, x: Sequence[float], values: npt.ArrayLike, role: str = "baseline"
    ) -> Series:
        """Compute means and standard errors of values of shape (runs, points)."""
        runs = np.asarray(values, dtype=np.float64)
        error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else 0 * runs[0]
        return cls(name=name, x=list(x), mean=runs.mean(axis=0).tolist(), error=error.tolist(), role=role)


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """Means over runs against a setting, with error bars of two standard errors."""

    title: str
    xlabel: str
    ylabel: str
    series: tuple[Series, ...]
    logx: bool = False
    logy: bool = False

    def table(self) -> Table:
        """Make a table of the numbers."""
        rows = tuple(
            (line.name, f"{x:g}", f"{mean:.6g}", f"{error:.2g}")
            for line in self.series
            for x, mean, error in zip(line.x, line.mean, line.error, strict=True)
        )
        columns = ("method", self.xlabel, self.ylabel, "standard error")
        return Table(title=self.title, columns=columns, rows=rows)

    def draw(self, figure: Any) -> None:
        """Draw into a matplotlib figure."""
        axes = figure.add_subplot()
        looks = {role: cycle(zip(COLOURS[role], MARKERS[role], strict=True)) for role in ROLES}
        for line in self.series:
            colour, marker = next(looks[line.role])
            look = ROLES[line.role] | {"color": colour, "marker": marker, "capsize": 2, "elinewidth": 1}
            axes.errorbar(line.x, line.mean, yerr=2 * np.asarray(line.error), label=line.name, **look)
        axes.set(xlabel=self.xlabel, ylabel=self.ylabel, title=self.title)
        axes.set_xscale("log" if self.logx else "linear")
        axes.set_yscale("log" if self.logy else "linear")
        settings = sorted({float(x) for line in self.series for x in line.x})
        if len(settings) <= MOST_TICKS:
            axes.set_xticks(settings, [f"{x:g}" for x in settings])
            axes.set_xticks([], minor=True)
        figure.legend(frameon=False, fontsize="small", loc="outside lower center", ncols=2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """Points of one kind on a `Map`, drawn in the order given."""

    name: str
    points: FloatArray
    marker: str = "."
    color: str = "#6b7280"
    size: float = 6.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Map:
    """Points in the plane: the first two features of each layer."""

    title: str
    layers: tuple[Layer, ...]

    def table(self) -> Table:
        """Make a table of the points."""
        rows = tuple(
            (layer.name, f"{point[0]:.6g}", f"{point[1]:.6g}")
            for layer in self.layers
            for point in layer.points
        )
        return Table(title=self.title, columns=("kind", "x", "y"), rows=rows)

    def draw(self, figure: Any) -> None:
        """Draw into a matplotlib figure."""
        axes = figure.add_subplot()
        for layer in self.layers:
            x, y = layer.points[:, 0], layer.points[:, 1]
            look = {"marker": layer.marker, "color": layer.color, "s": layer.size}
            axes.scatter(x, y, label=layer.name, linewidths=0.8, rasterized=True, **look)
        axes.set(title=self.title, aspect="equal", xticks=[], yticks=[])
        legend = axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        for handle, layer in zip(legend.legend_handles, self.layers, strict=True):
            handle.set_sizes([max(LEGEND_SIZE, layer.size)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Dots:
    """Values of several methods at named places, one line per place; NaN where a method was not measured."""

    title: str
    xlabel: str
    places: tuple[str, ...]
    methods: Mapping[str, Sequence[float]]

    def table(self) -> Table:
        """Make a table of the numbers."""
        rows = tuple(
            (place, name, f"{value:.6g}")
            for name, values in self.methods.items()
            for place, value in zip(self.places, values, strict=True)
            if math.isfinite(value)
        )
        return Table(title=self.title, columns=("place", "method", self.xlabel), rows=rows)

    def draw(self, figure: Any) -> None:
        """Draw into a matplotlib figure."""
        axes = figure.add_subplot()
        looks = cycle([(c, m) for role in COLOURS for c, m in zip(COLOURS[role], "oDPX*", strict=False)])
        heights = -np.arange(len(self.places))
        for (name, values), (colour, marker) in zip(self.methods.items(), looks, strict=False):
            axes.scatter(values, heights, label=name, color=colour, marker=marker, s=30, alpha=0.85)
        axes.set(xlabel=self.xlabel, title=self.title)
        axes.set_yticks(heights, self.places, fontsize="small")
        axes.grid(axis="y", color="#e5e7eb")
        axes.set_axisbelow(True)
        figure.set_figheight(max(3.0, 1.8 + 0.32 * len(self.places)))
        figure.legend(frameon=False, fontsize="small", loc="outside lower center", ncols=2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bands:
    """Outcomes against their forecasts, each with the band in which it was expected.

    Attributes
    ----------
    places : tuple of str
        Where each outcome was measured.
    expected, low, high, outcome : sequence of float
        Above 0: both axes are logarithmic.
    """

    title: str
    label: str
    places: tuple[str, ...]
    expected: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    outcome: Sequence[float]

    def table(self) -> Table:
        """Make a table of the numbers."""
        numbers = zip(self.expected, self.low, self.high, self.outcome, strict=True)
        rows = tuple(
            (place, *(f"{value:.6g}" for value in values))
            for place, values in zip(self.places, numbers, strict=True)
        )
        return Table(title=self.title, columns=("place", "forecast", "low", "high", "outcome"), rows=rows)

    def draw(self, figure: Any) -> None:
        """Draw into a matplotlib figure: a grey line is a band, a dot an outcome."""
        axes = figure.add_subplot()
        is_inside = (np.asarray(self.low) <= self.outcome) & (np.asarray(self.outcome) <= self.high)
        axes.vlines(self.expected, self.low, self.high, color="#d1d5db", linewidth=1.2, label="band")
        for inside, colour, name in (
            (True, COLOURS["ours"][0], "in"),
            (False, COLOURS["paper"][0], "out of"),
        ):
            chosen = is_inside == inside
            x, y = np.asarray(self.expected)[chosen], np.asarray(self.outcome)[chosen]
            axes.scatter(x, y, s=14, color=colour, label=f"{name} its band ({chosen.sum()})", zorder=3)
        axes.axline((1, 1), slope=1, color=COLOURS["bound"][1], linewidth=1)
        axes.set(xscale="log", yscale="log", title=self.title)
        axes.set(xlabel=f"forecast: {self.label}", ylabel="outcome")
        figure.legend(frameon=False, fontsize="small", loc="outside lower center", ncols=3)


Exhibit = Bands | Curves | Dots | Map | Table


def file_stem(exhibit: Exhibit) -> str:
    """Turn the title into the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", exhibit.title.lower()).strip("-")


def write(exhibit: Exhibit, folder: Path) -> list[Path]:
    """Write an exhibit's numbers and, if matplotlib is installed, its picture; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / file_stem(exhibit)
    table = exhibit if isinstance(exhibit, Table) else exhibit.table()
    numbers = stem.with_suffix(".csv")
    with numbers.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([table.columns, *table.rows])
    return [numbers] if isinstance(exhibit, Table) else [numbers, *draw(exhibit, stem.with_suffix(".svg"))]


def draw(exhibit: Bands | Curves | Dots | Map, path: Path) -> list[Path]:
    """Write a picture if matplotlib is installed; return the file.

    In it, the points of maps are pixels, letters are text, and the rest is lines.
    """
    try:
        from matplotlib import figure as matplotlib_figure
        from matplotlib import rc_context
    except ImportError:
        return []
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "privada"}):
        figure = matplotlib_figure.Figure(figsize=(6.4, 4.2), layout="constrained")
        exhibit.draw(figure)
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_title(fill(axes.get_title(), LONGEST_LINE, break_on_hyphens=False))
        figure.savefig(path, metadata={"Date": None}, dpi=150)
    return [path]


__all__ = [
    "Bands",
    "Curves",
    "Dots",
    "Exhibit",
    "Figure",
    "Layer",
    "Map",
    "Series",
    "draw",
    "figures_table",
    "file_stem",
    "write",
]
