"""Pictures as inline SVG, if matplotlib is there (``pip install 'privada[plot]'``), else none.

Colours are written as marks and replaced by the page's own variables, so that
one picture serves light and dark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from privada._text import escape_in_html as escape

_MARKS = {
    "#010203": "var(--ink)",
    "#010204": "var(--soft)",
    "#010205": "var(--line)",
    "#010206": "var(--accent)",
    "#010207": "var(--plain)",
    "#010208": "var(--card)",
}
INK, SOFT, LINE, ACCENT, PLAIN, CARD = _MARKS


@dataclass(frozen=True, kw_only=True)
class Span:
    """One row of `spans`: a score without private data, by a method, and without privacy."""

    name: str
    without: float
    ours: float
    clear: float


def spans(rows: Sequence[Span], *, xlabel: str) -> str:
    """Where each method lies between knowing nothing and seeing everything; "" without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure = Figure(figsize=(7.6, 0.95 + 0.55 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for place, row in enumerate(rows):
        ends = [row.without, row.clear]
        axes.plot(ends, [place, place], color=LINE, linewidth=5, solid_capstyle="round", zorder=1)
        axes.scatter([row.without], [place], s=70, facecolor=CARD, edgecolor=PLAIN, linewidth=2, zorder=2)
        axes.plot([row.clear] * 2, [place - 0.22, place + 0.22], color=INK, linewidth=2.5, zorder=4)
        axes.scatter([row.ours], [place], s=120, color=ACCENT, zorder=3)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], parse_math=False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(xlabel, parse_math=False)
    _quiet(axes)
    _legend(axes)
    return svg(figure, label=f"For each method, three values of {xlabel}; the numbers are in the panels.")


def _legend(axes: Any) -> None:
    from matplotlib.lines import Line2D

    dots: dict[str, dict[str, Any]] = {
        "without the private data": {"markerfacecolor": CARD, "markeredgecolor": PLAIN, "markeredgewidth": 2},
        "private": {"markerfacecolor": ACCENT, "markeredgecolor": ACCENT},
        "without privacy": {"marker": "|", "markeredgecolor": INK, "markeredgewidth": 2.5},
    }
    plain: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 8}
    handles = [Line2D([], [], label=name, **(plain | dot)) for name, dot in dots.items()]
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3, "borderaxespad": 0.2}
    axes.legend(handles=handles, frameon=False, labelcolor=SOFT, handletextpad=0.2, **place)


def _quiet(axes: Any) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(axis="x", color=LINE, labelcolor=SOFT)
    axes.tick_params(axis="y", length=0, labelcolor=INK, pad=10)
    axes.xaxis.label.set_color(SOFT)
    axes.margins(x=0.06)


def svg(figure: Any, *, label: str) -> str:
    """A matplotlib figure as inline SVG in the page's colours; text stays text, ``label`` is read aloud."""
    import matplotlib as mpl

    buffer = StringIO()
    figure.patch.set_visible(False)
    for axes in figure.axes:
        axes.patch.set_visible(False)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "privada", "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]+|font: ([\d.]+px) [^;\"]+", _font, text)
    for mark, colour in _MARKS.items():
        text = text.replace(mark, colour)
    return text.strip().replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


def _font(found: re.Match[str]) -> str:
    return f"font: {found.group(1)} system-ui, sans-serif" if found.group(1) else "font-family: inherit"


__all__ = ["Span", "spans", "svg"]
