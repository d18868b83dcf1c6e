"""Fitted models as pictures: a map of what was learnt, or numbers with intervals for their noise.

An estimator says what its panels show (`Map`, `Numbers`); this module draws them, if matplotlib is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from privada import _plot
from privada._arrays import FloatArray
from privada.methods.pictures import Points

MOST_NUMBERS = 30  # whose names can be read below each other
GROUPS = ("#0b6e63", "#c2571a", "#3b5bb5", "#a23b72", "#8a7a12", "#5d6670")
MARKS: dict[str, dict[str, Any]] = {
    "public": {"s": 16, "color": "#6b9c96", "marker": "o", "linewidths": 0},
    "limit": {"s": 14, "color": _plot.SOFT, "marker": "x", "linewidths": 0.8, "alpha": 0.45},
    "result": {"s": 130, "color": _plot.WARM, "marker": "*", "linewidths": 0},
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Map:
    """Layers of points, the last one on top; ``groups`` of them, such as classes, have a colour each."""

    title: str
    layers: Sequence[Points]
    groups: Sequence[Points] = ()
    axes: tuple[str, str] = ("", "")

    def draw(self, axes: Any) -> None:
        """Draw into axes; what is named only is written."""
        for place, layer in enumerate(self.groups):
            look = {**MARKS["public"], "color": GROUPS[place % len(GROUPS)], "alpha": 0.7}
            axes.scatter(layer.at[:, 0], layer.at[:, 1], label=layer.name, **look)
        for layer in self.layers:
            if not layer.names:
                axes.scatter(layer.at[:, 0], layer.at[:, 1], label=layer.name, **MARKS[layer.role])
            for (x, y), name in zip(layer.at, layer.names, strict=False):
                look = {"color": _plot.INK, "fontweight": "bold", "ha": "center", "va": "center"}
                axes.text(x, y, name, parse_math=False, **look)
            axes.update_datalim(layer.at)
        axes.autoscale_view()
        _plot.name_axes(axes, title=self.title, x=self.axes[0], y=self.axes[1])
        _write_legend(axes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """Named numbers below each other, with intervals where they are known; several series side by side.

    Attributes
    ----------
    values : array of shape (numbers, series)
    ends : array of shape (2, numbers, series) or None
        Low and high end of an interval for each.
    """

    title: str
    names: Sequence[str]
    values: FloatArray
    ends: FloatArray | None = None
    series: Sequence[str] = ("",)
    label: str = ""

    def draw(self, axes: Any) -> None:
        """Draw the largest of them into axes, in their order."""
        size = np.abs(self.values).max(axis=1)
        largest = np.sort(np.argsort(-size, kind="stable")[:MOST_NUMBERS])
        places, count = np.arange(len(largest)), len(self.series)
        for at, name in enumerate(self.series):
            y = places + 0.6 * ((at + 0.5) / count - 0.5)
            colour = GROUPS[at % len(GROUPS)]
            value = self.values[largest, at]
            low, high = (np.zeros_like(value), value) if self.ends is None else self.ends[:, largest, at]
            axes.hlines(y, low, high, color=colour, alpha=0.35, linewidth=3)
            axes.plot(value, y, "o", color=colour, markersize=4.5, label=name or None)
        axes.axvline(0, color=_plot.LINE, linewidth=1, zorder=0)
        axes.set_yticks(places, [self.names[place] for place in largest], parse_math=False)
        axes.invert_yaxis()
        note = f" (the largest {MOST_NUMBERS} of {len(self.names)})" if len(largest) < len(self.names) else ""
        _plot.name_axes(axes, title=self.title + note, x=self.label)
        if count > 1:
            _write_legend(axes)


def draw_model(panels: Sequence[Map | Numbers], *, title: str) -> Any:
    """A figure with these panels side by side."""
    tallest = max((len(panel.names) for panel in panels if isinstance(panel, Numbers)), default=0)
    height = max(4.2, 0.25 * min(tallest, MOST_NUMBERS) + 1.2)
    figure, all_axes = _plot.new_figure(len(panels), height=height)
    for axes, panel in zip(all_axes, panels, strict=True):
        panel.draw(axes)
    figure.suptitle(title, color=_plot.INK, fontsize=11, x=0.02, ha="left", parse_math=False)
    return figure


class Flattening:
    """Rows of any width on a plane: as they are, or along the two main directions of public rows.

    >>> Flattening(np.eye(2), ["a", "b"]).names
    ('a', 'b')
    """

    def __init__(self, public: npt.ArrayLike, names: Sequence[str] | None = None) -> None:
        rows = np.asarray(public, dtype=np.float64)
        width = rows.shape[1]
        self._middle, self._turn = np.zeros(width), np.eye(width, 2)
        first, second = ("", "") if names is None else (*names[:2], "")[:2]
        self.names: tuple[str, str] = (str(first), str(second))
        if width > 2:
            self._middle = rows.mean(axis=0)
            main = np.linalg.svd(rows - self._middle, full_matrices=False)[2][:2]
            self._turn = np.vstack([main, np.zeros((2 - len(main), width))]).T
            self.names = ("first main direction", "second main direction")

    def apply(self, rows: npt.ArrayLike) -> FloatArray:
        """Two numbers for each row."""
        return (np.asarray(rows, dtype=np.float64) - self._middle) @ self._turn


class PublicRows(NamedTuple):
    """Public rows to draw, in the features of the model, and what it predicts of each, if it predicts."""

    at: FloatArray
    predicted: npt.NDArray[Any] | None = None


def show_predictions(rows: PublicRows, plane: Flattening, classes: Iterable[Any] | None) -> list[Points]:
    """Public rows by what is predicted: a class, or a third of the numbers."""
    if rows.predicted is None:
        return [Points(name="rows (public)", at=plane.apply(rows.at))]
    labels, names = (rows.predicted, list(classes)) if classes is not None else name_thirds(rows.predicted)
    return group_points(plane.apply(rows.at), labels, names)


def name_thirds(numbers: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], list[Any]]:
    """In which third of all numbers each is, in words, and the words.

    >>> name_thirds(np.arange(7.0))[1]
    ['up to 2', 'up to 4', 'above']
    """
    ends = np.quantile(numbers, (1 / 3, 2 / 3))
    names = [f"up to {ends[0]:.3g}", f"up to {ends[1]:.3g}", "above"]
    return np.asarray(names)[np.searchsorted(ends, numbers)], names


def group_points(at: FloatArray, labels: npt.NDArray[Any], names: Iterable[Any]) -> list[Points]:
    """A group for each label that there is."""
    groups = ((name, at[labels == name]) for name in names)
    return [Points(name=str(name), at=group) for name, group in groups if len(group)]


def _write_legend(axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": min(len(labels), 2)}
        legend = axes.legend(handles, labels, frameon=False, fontsize=8.5, labelcolor=_plot.SOFT, **below)
        for text in legend.get_texts():
            text.set_parse_math(False)


__all__ = [
    "Flattening",
    "Map",
    "Numbers",
    "PublicRows",
    "draw_model",
    "group_points",
    "name_thirds",
    "show_predictions",
]
