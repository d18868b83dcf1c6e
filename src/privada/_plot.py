"""Figures for notebooks and files, if matplotlib is installed (``pip install 'privada[plot]'``).

Figures are made without pyplot: nothing global changes, and no window opens. Save one by ``figure.savefig``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada._extras import require

INK, SOFT, LINE, ACCENT, WARM = "#1f2328", "#5d6670", "#e4e1d9", "#0b6e63", "#c2571a"


def new_figure(columns: int = 1, *, width: float = 5.2, height: float = 4.2) -> tuple[Any, list[Any]]:
    """Make a figure of some panels side by side; returns it with the axes."""
    require("plot", "matplotlib", purpose="A picture")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained", facecolor="white")
    panels = [figure.add_subplot(1, columns, at + 1) for at in range(columns)]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(LINE)
        axes.tick_params(colors=SOFT, length=3)
    return figure, panels


def name_axes(axes: Any, *, title: str, x: str = "", y: str = "") -> None:
    """Set title and names of axes; text is never read as mathematics."""
    axes.set_title(title, color=INK, loc="left", fontsize=10.5, parse_math=False)
    axes.set_xlabel(x, color=SOFT, parse_math=False)
    axes.set_ylabel(y, color=SOFT, parse_math=False)


def draw_intervals(axes: Any, x: npt.ArrayLike, value: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """Draw values with their intervals."""
    places = np.asarray(x, dtype=np.float64)
    axes.vlines(places, low, high, color=ACCENT, alpha=0.35, linewidth=3)
    axes.plot(places, value, "o", color=ACCENT, markersize=4.5)


def draw_table(axes: Any, table: FloatArray, *, rows: list[str] | None = None, columns: Any = None) -> None:
    """Draw a matrix as shades, with its numbers if there are few."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    shades = LinearSegmentedColormap.from_list("privada", ["#ffffff", ACCENT])
    image = axes.imshow(table, cmap=shades, aspect="auto")
    if table.size <= 64:
        middle = (np.min(table) + np.max(table)) / 2
        for (row, column), number in np.ndenumerate(table):
            colour = "white" if number > middle else INK
            axes.text(column, row, f"{number:.4g}", ha="center", va="center", color=colour, fontsize=9)
    else:
        axes.figure.colorbar(image, ax=axes, shrink=0.8)
    for names, axis in ((rows, axes.yaxis), (columns, axes.xaxis)):
        if names is None:
            axis.set_major_locator(MaxNLocator(integer=True))
        else:
            axis.set_ticks(range(len(names)), names, parse_math=False)


__all__ = ["ACCENT", "INK", "LINE", "SOFT", "WARM", "draw_intervals", "draw_table", "name_axes", "new_figure"]
