"""What an experiment shows beside its figures: curves with error bars, bands, maps of points, tables.

`privada reproduce NAME --out FOLDER` writes each as numbers (CSV) and, where matplotlib is
there, as a picture (SVG).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.report.tables import Table

ROLES: dict[str, dict[str, Any]] = {
    "ours": {"linewidth": 2.6, "zorder": 4},
    "paper": {"linewidth": 1.6, "linestyle": "--"},
    "baseline": {"linewidth": 1.4, "linestyle": ":"},
    "bound": {"linewidth": 1.2, "linestyle": "-."},
}
COLOURS = {  # that colour-blind readers tell apart (Okabe and Ito)
    "ours": ("#0b6e63", "#56b4e9", "#4b2e83", "#111827"),
    "paper": ("#d55e00", "#cc79a7"),
    "baseline": ("#0072b2", "#e69f00", "#009e73", "#8c6bb1", "#a6761d"),
    "bound": ("#374151", "#9ca3af"),
}
MARKERS = {"ours": "oDPX", "paper": "sp", "baseline": "^v<>*", "bound": ("", "")}
LONGEST_LINE = 56  # of a title: what is longer goes on below
LEGEND_SIZE = 30.0  # least size of a point in a legend
MOST_TICKS = 8  # settings on an axis that are written out


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
        """From values of shape (runs, points)."""
        found = np.asarray(values, dtype=np.float64)
        spread = found.std(axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0 * found[0]
        return cls(name=name, x=list(x), mean=found.mean(axis=0).tolist(), error=spread.tolist(), role=role)


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
        """The numbers."""
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
        """The points."""
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
        """The numbers."""
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
    """Outcomes against what was forecast, each with the band that it was to lie in.

    Attributes
    ----------
    places : tuple of str
        Of each outcome: where it was measured.
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
        """The numbers."""
        numbers = zip(self.expected, self.low, self.high, self.outcome, strict=True)
        rows = tuple(
            (place, *(f"{value:.6g}" for value in values))
            for place, values in zip(self.places, numbers, strict=True)
        )
        return Table(title=self.title, columns=("place", "forecast", "low", "high", "outcome"), rows=rows)

    def draw(self, figure: Any) -> None:
        """Draw into a matplotlib figure: a grey line is a band, a dot what came."""
        axes = figure.add_subplot()
        held = (np.asarray(self.low) <= self.outcome) & (np.asarray(self.outcome) <= self.high)
        axes.vlines(self.expected, self.low, self.high, color="#d1d5db", linewidth=1.2, label="band")
        for inside, colour, name in (
            (True, COLOURS["ours"][0], "in"),
            (False, COLOURS["paper"][0], "out of"),
        ):
            chosen = held == inside
            x, y = np.asarray(self.expected)[chosen], np.asarray(self.outcome)[chosen]
            axes.scatter(x, y, s=14, color=colour, label=f"{name} its band ({chosen.sum()})", zorder=3)
        axes.axline((1, 1), slope=1, color=COLOURS["bound"][1], linewidth=1)
        axes.set(xscale="log", yscale="log", title=self.title)
        axes.set(xlabel=f"forecast: {self.label}", ylabel="outcome")
        figure.legend(frameon=False, fontsize="small", loc="outside lower center", ncols=3)


Exhibit = Bands | Curves | Dots | Map | Table


def file_stem(exhibit: Exhibit) -> str:
    """The title as the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", exhibit.title.lower()).strip("-")


def write(exhibit: Exhibit, folder: Path) -> list[Path]:
    """Write an exhibit's numbers and, if matplotlib is there, its picture; say which files."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / file_stem(exhibit)
    table = exhibit if isinstance(exhibit, Table) else exhibit.table()
    numbers = stem.with_suffix(".csv")
    with numbers.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([table.columns, *table.rows])
    drawn = [] if isinstance(exhibit, Table) else draw(exhibit, stem.with_suffix(".svg"))
    return [numbers, *drawn]


def draw(exhibit: Bands | Curves | Dots | Map, path: Path) -> list[Path]:
    """Write a picture, if matplotlib is there; say which file.

    Points are pixels in it, letters are text, and the rest is lines.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return []
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "privada"}):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        exhibit.draw(figure)
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_title(fill(axes.get_title(), LONGEST_LINE, break_on_hyphens=False))
        figure.savefig(path, metadata={"Date": None}, dpi=150)
    return [path]


__all__ = ["Bands", "Curves", "Dots", "Exhibit", "Layer", "Map", "Series", "draw", "file_stem", "write"]
