"""``privada demo``: the results of all methods as a table, as JSON, as a page, and their pictures.

Each part of a picture is an SVG of its own, which a phone shows one below the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from math import ceil
from typing import Any

import numpy as np

from privada.methods.example import DemoRow
from privada.methods.pictures import Curve, Picture, Plane, Tiles
from privada.report.ledger import all_lines, budgets_table, lines_table
from privada.report.page import ACCENT, INK, LINE, PLAIN, SOFT, Page, Panel, Score, svg
from privada.report.tables import Table

TITLE = "What private data can still teach"
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


def demo_table(rows: Sequence[DemoRow]) -> Table:
    """Make a table with one row for each method."""
    columns = (
        *("method", "who holds what", "guarantee", "score"),
        *("without the private data", "ours", "no privacy"),
    )
    body = tuple(
        (
            row.method,
            row.holders,
            "; ".join((str(row.guarantee), *row.stamps)),
            row.score,
            *map(_format_score, (row.without, row.ours, row.clear)),
        )
        for row in rows
    )
    return Table(title=TITLE, columns=columns, rows=body)


def demo_lines(rows: Sequence[DemoRow]) -> tuple[Table, ...]:
    """Make a table of the ledger lines that were written, for each method."""
    return tuple(lines_table(row.ledger, title=f"Ledger lines of {row.method}") for row in rows)


def demo_plain(row: DemoRow) -> dict[str, Any]:
    """Return the plain form of a method's result."""
    return {
        "method": row.method,
        "title": row.title,
        "holders": row.holders,
        "guarantee": row.guarantee.to_dict(),
        "score": row.score,
        "without": row.without,
        "ours": row.ours,
        "clear": row.clear,
        "better": row.better,
        "surprise": row.surprise if row.is_surprising else "",
        "stamps": list(row.stamps),
        "ledger": dict(row.ledger),
    }


def demo_page(rows: Sequence[DemoRow]) -> Page:
    """Make the page: all results at a glance, a panel for each method, one ledger."""
    glance = replace(demo_table(rows).without("who holds what"), title="At a glance")
    panels = [Panel(title=glance.title, tables=(glance,))]
    for row in rows:
        explained = row.is_surprising and row.surprise
        panels.append(
            Panel(
                title=f"{row.method}: {row.title}",
                text=f"{row.holders} The score: {row.score}.",
                guarantee=str(row.guarantee),
                stamps=row.stamps,
                scores=(
                    Score(label="without the private data", value=_format_score(row.without)),
                    Score(label="ours, private", value=_format_score(row.ours), ours=True),
                    Score(label="without privacy", value=_format_score(row.clear)),
                ),
                note=f"Why the private score is the better one here: {row.surprise}" if explained else "",
                picture=draw(row.picture),
                caption=row.picture.caption if row.picture else "",
            )
        )
    ledger = Panel(
        title="The ledger",
        text=(
            "What every owner paid for the numbers above. Each line was written before the rows were opened, "
            "is signed, and names the digest of the line before it."
        ),
        tables=(
            _join_tables("Budgets", rows, [budgets_table(row.ledger) for row in rows]),
            _join_tables("Lines", rows, [all_lines(row.ledger) for row in rows]),
        ),
    )
    lead = (
        "Each method learns from data that it cannot see. Its result is shown with the results without the "
        "private data and without privacy."
    )
    return Page(title=TITLE, lead=lead, panels=(*panels, ledger))


def _join_tables(title: str, rows: Sequence[DemoRow], tables: Sequence[Table]) -> Table:
    pairs = zip(rows, tables, strict=True)
    body = tuple((row.method, *cells) for row, table in pairs for cells in table.rows)
    return Table(title=title, columns=("story", *tables[0].columns), rows=body).without_empty_columns()


def _format_score(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def draw(picture: Picture | None) -> str:
    """Write the parts as SVG, one after the other; "" without a picture or without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    parts = []
    for part in () if picture is None else picture.parts:
        figure = Figure(figsize=(WIDTH, 3.5), layout="constrained")
        draw_part(part, figure)
        parts.append(svg(figure, label=part.title))
    return "".join(parts)


@singledispatch
def draw_part(part: Any, figure: Any) -> None:
    """Draw one part into a matplotlib figure."""
    del figure
    raise TypeError(f"Expected a Plane, a Curve or Tiles, got a {type(part).__name__}.")


@draw_part.register
def _(part: Plane, figure: Any) -> None:
    axes = _add_axes(figure, part.title)
    for layer in part.layers:
        look = MARKS[layer.role]
        if not layer.names:
            axes.scatter(layer.at[:, 0], layer.at[:, 1], label=layer.name, **look)
            continue
        axes.scatter([], [], label=layer.name, **(look | {"marker": "$0$"}))  # for the legend alone
        for (x, y), name in zip(layer.at, layer.names, strict=True):
            font: dict[str, Any] = {"color": look["color"], "fontsize": 15, "fontweight": "bold"}
            axes.text(x, y, name, ha="center", va="center", parse_math=False, **font)
        axes.update_datalim(layer.at)  # matplotlib does not count text when it chooses the limits
    axes.set(aspect="equal", xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    _add_legend(figure)


@draw_part.register
def _(part: Curve, figure: Any) -> None:
    axes = _add_axes(figure, part.title)
    for line in part.lines:
        look = LINES[line.role]
        if len(line.low):
            axes.fill_between(line.x, line.low, line.high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(line.x, line.y, label=line.name, **look)
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
    _add_legend(figure)


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


def _add_axes(figure: Any, title: str) -> Any:
    axes = figure.add_subplot()
    axes.set_title(title, color=INK, fontsize="medium", parse_math=False)
    return axes


def _add_legend(figure: Any) -> None:
    figure.legend(frameon=False, fontsize="small", loc="outside lower center", ncols=2, labelcolor=SOFT)


__all__ = ["demo_lines", "demo_page", "demo_plain", "demo_table", "draw", "draw_part"]
