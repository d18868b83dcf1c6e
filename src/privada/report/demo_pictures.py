"""The pictures of ``privada demo``: each part an SVG of its own, which a phone shows one below the other."""

from __future__ import annotations

from functools import singledispatch
from math import ceil
from typing import Any

import numpy as np

from privada.methods.pictures import Curve, Line, Picture, Plane, Points, Tiles
from privada.report.pictures import ACCENT, INK, LINE, PLAIN, SOFT, svg

MARKS: dict[str, dict[str, Any]] = {
    "public": {"s": 9, "color": PLAIN, "marker": "o", "linewidths": 0},
    "private": {"s": 16, "color": INK, "marker": "x", "linewidths": 0.9},
    "result": {"s": 150, "color": ACCENT, "marker": "*", "linewidths": 0},
    "limit": {"s": 24, "color": SOFT, "marker": "D", "linewidths": 0},
}
LINES: dict[str, dict[str, Any]] = {
    "public": {"color": PLAIN, "linestyle": "--", "linewidth": 1.6},
    "private": {"color": INK, "linestyle": "-", "linewidth": 1.6},
    "result": {"color": ACCENT, "marker": "o", "markersize": 5, "linewidth": 2.4},
    "limit": {"color": INK, "linestyle": ":", "linewidth": 1.8},
}
WIDTH = 4.6  # inches of a part


def draw(picture: Picture | None) -> str:
    """The parts as SVG, one after the other; "" without a picture or without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    drawn = []
    for part in () if picture is None else picture.parts:
        figure = Figure(figsize=(WIDTH, 3.5), layout="constrained")
        draw_part(part, figure)
        drawn.append(svg(figure, label=part.title))
    return "".join(drawn)


@singledispatch
def draw_part(part: Any, figure: Any) -> None:
    """Draw one part into a matplotlib figure."""
    del figure
    raise TypeError(f"Expected a Plane, a Curve or Tiles, got a {type(part).__name__}.")


@draw_part.register
def _(part: Plane, figure: Any) -> None:
    axes = _axes(figure, part.title)
    for layer in part.layers:
        _scatter(axes, layer)
    axes.set(aspect="equal", xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    _legend(figure)


def _scatter(axes: Any, layer: Points) -> None:
    if not layer.names:
        axes.scatter(layer.at[:, 0], layer.at[:, 1], label=layer.name, **MARKS[layer.role])
        return
    axes.scatter([], [], label=layer.name, **(MARKS[layer.role] | {"marker": "$0$"}))
    for (x, y), name in zip(layer.at, layer.names, strict=True):
        look: dict[str, Any] = {"color": MARKS[layer.role]["color"], "fontsize": 15, "fontweight": "bold"}
        axes.text(x, y, name, ha="center", va="center", parse_math=False, **look)
    axes.update_datalim(layer.at)


@draw_part.register
def _(part: Curve, figure: Any) -> None:
    axes = _axes(figure, part.title)
    for line in part.lines:
        _plot(axes, line)
    axes.set_xlabel(part.xlabel, parse_math=False, color=SOFT)
    axes.set_ylabel(part.ylabel, parse_math=False, color=SOFT)
    if part.log:
        places = sorted({float(x) for line in part.lines for x in line.x})
        axes.set_xscale("log")
        axes.set_xticks(places, [f"{x:g}" for x in places])
        axes.set_xticks([], minor=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(color=LINE, labelcolor=SOFT)
    _legend(figure)


def _plot(axes: Any, line: Line) -> None:
    look = LINES[line.role]
    if len(line.low):
        axes.fill_between(line.x, line.low, line.high, color=look["color"], alpha=0.15, linewidth=0)
    axes.plot(line.x, line.y, label=line.name, **look)


@draw_part.register
def _(part: Tiles, figure: Any) -> None:
    down = ceil(len(part.images) / part.across)
    figure.set_size_inches(WIDTH, 0.4 + WIDTH * down / part.across * (1.35 if part.names else 1.05))
    figure.suptitle(part.title, color=INK, fontsize="medium", parse_math=False)
    grid = figure.subplots(down, part.across, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    top = float(np.max(part.images, initial=0)) or 1.0
    for place, (axes, image) in enumerate(zip(grid.flat, part.images, strict=False)):
        axes.imshow(image, cmap="gray_r", vmin=0, vmax=top)
        if part.names:
            look: dict[str, Any] = {"color": ACCENT, "fontsize": "small", "pad": 1.5}
            axes.set_title(part.names[place], parse_math=False, **look)


def _axes(figure: Any, title: str) -> Any:
    axes = figure.add_subplot()
    axes.set_title(title, color=INK, fontsize="medium", parse_math=False)
    return axes


def _legend(figure: Any) -> None:
    figure.legend(frameon=False, fontsize="small", loc="outside lower center", ncols=2, labelcolor=SOFT)


__all__ = ["draw", "draw_part"]
