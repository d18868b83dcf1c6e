"""One self-contained HTML page: no script, no external load, light and dark.

Text is escaped here and nowhere else; pictures are SVG that `svg` made. The
page forbids itself to load anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from privada._text import escape_in_html as escape
from privada.report.tables import Table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, kw_only=True)
class Score:
    """A large number with a label."""

    label: str
    value: str
    ours: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One block of a page; empty parts are left out.

    Attributes
    ----------
    title, text, guarantee : str
        Plain text.
    stamps : tuple of str
        Warnings such as "rehearsal: not private".
    scores : tuple of Score
        Large numbers, side by side.
    picture, caption : str
        One or more SVG made by `svg`, and what they show.
    note : str
        Plain text in smaller print, below the scores.
    tables : tuple of Table
        Shown one below the other.
    """

    title: str
    text: str = ""
    guarantee: str = ""
    stamps: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    note: str = ""
    picture: str = ""
    caption: str = ""
    tables: tuple[Table, ...] = ()

    def to_html(self) -> str:
        """Write the block."""
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        parts = (
            f"<h2>{escape(self.title)}</h2>",
            badge_row(self.guarantee, self.stamps),
            f"<p>{escape(self.text)}</p>" if self.text else "",
            score_row(self.scores),
            f'<p class="note">{escape(self.note)}</p>' if self.note else "",
            f"<figure>{self.picture}{caption}</figure>" if self.picture else "",
            *(table_block(table, alone=table.title == self.title) for table in self.tables),
        )
        return f"<section>{''.join(parts)}</section>"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page.

    >>> page = Page(title="A & B", lead="", panels=(Panel(title="<one>"),))
    >>> "A &amp; B" in page.to_html(), "&lt;one&gt;" in page.to_html()
    (True, True)
    """

    title: str
    lead: str
    panels: tuple[Panel, ...]
    stamps: tuple[str, ...] = ()
    footer: str = "Only releases left an owner: priced, charged, and with noise."

    def to_html(self) -> str:
        """Write the whole document."""
        title = escape(self.title)
        lead = f'<p class="lead">{escape(self.lead)}</p>' if self.lead else ""
        panels = "".join(panel.to_html() for panel in self.panels)
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="generator" content="written by privada">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{title}</title><style>{CSS}</style></head><body>"
            f'<header><div class="mark">privada</div><h1>{title}</h1>{lead}{badge_row("", self.stamps)}'
            f"</header><main>{panels}</main><footer>{escape(self.footer)}</footer></body></html>\n"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the document; its folder is created if needed."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.to_html(), encoding="utf-8")
        return target


def badge_row(guarantee: str, stamps: Iterable[str] = ()) -> str:
    """Write a guarantee and warnings as badges; nothing if there is neither."""
    badges = f'<span class="badge">{escape(guarantee)}</span>' if guarantee else ""
    badges += "".join(f'<span class="badge warn">{escape(stamp)}</span>' for stamp in stamps)
    return f'<div class="badges">{badges}</div>' if badges else ""


def score_row(scores: Iterable[Score]) -> str:
    """Write large numbers side by side."""
    cells = "".join(
        f'<div class="score{" ours" if score.ours else ""}"><b>{escape(score.value)}</b>'
        f"<span>{escape(score.label)}</span></div>"
        for score in scores
    )
    return f'<div class="scores">{cells}</div>' if cells else ""


def table_block(table: Table, *, alone: bool = False) -> str:
    """Write a table that scrolls within the page, with its note and, unless it stands alone, its title."""
    title = "" if alone else f"<h3>{escape(table.title)}</h3>"
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    scroll = f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}">'
    return f"{title}{scroll}{table.to_html()}</div>{note}"


# Colours are written as these marks, and replaced by the page's own variables, so that one picture serves
# light and dark.
MARKED_COLOURS = {
    "#010203": "var(--ink)",
    "#010204": "var(--soft)",
    "#010205": "var(--line)",
    "#010206": "var(--accent)",
    "#010207": "var(--plain)",
    "#010208": "var(--card)",
}
INK, SOFT, LINE, ACCENT, PLAIN, CARD = MARKED_COLOURS


def svg(figure: Any, *, label: str) -> str:
    """Write a matplotlib figure as inline SVG in the page's colours; screen readers read the label aloud."""
    import matplotlib as mpl

    buffer = StringIO()
    figure.patch.set_visible(False)
    for axes in figure.axes:
        axes.patch.set_visible(False)
    # Without a date, and with a fixed salt of names, the same picture is the same text.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "privada", "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # Text stays text, in the page's font
    text = re.sub(r"font-family: [^;\"]+", "font-family: inherit", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font: \1 system-ui, sans-serif", text)
    for mark, colour in MARKED_COLOURS.items():
        text = text.replace(mark, colour)
    return text.strip().replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


# How a page looks: system fonts, one accent, light and dark
CSS = """
:root{--paper:#fbfaf7;--card:#fff;--ink:#1f2328;--soft:#5d6670;--line:#e4e1d9;--accent:#0b6e63;
--tint:#e3f1ee;--plain:#9aa3ab;--warn:#8a4b00;--warn-tint:#fdf0db}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--card:#1c2024;--ink:#e7e9ea;--soft:#9ba4ad;
--line:#2e343a;--accent:#5cc8b7;--tint:#15332f;--plain:#727c86;--warn:#f2b866;--warn-tint:#38290f}}
*{box-sizing:border-box}
body{margin:0 auto;padding:3rem 1.25rem 4rem;max-width:66rem;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
header{margin-bottom:2rem}
.mark{color:var(--accent);font-weight:650;letter-spacing:.04em}
h1{margin:.2rem 0 .4rem;font-size:2rem;line-height:1.2;letter-spacing:-.015em}
h2{margin:0 0 .35rem;font-size:1.2rem;letter-spacing:-.005em}
h3{margin:1.3rem 0 .4rem;font-size:.95rem;color:var(--soft);font-weight:600}
p{margin:.4rem 0 0;max-width:46rem}
.lead{font-size:1.1rem;color:var(--soft);text-wrap:balance}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.4rem 1.5rem;
margin:0 0 1.25rem}
.badges{display:flex;flex-wrap:wrap;gap:.4rem;margin:.35rem 0}
.badge{background:var(--tint);color:var(--accent);border-radius:99px;padding:.12rem .7rem;font-size:.86rem;
font-weight:550}
.badge.warn{background:var(--warn-tint);color:var(--warn)}
.scores{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.8rem;margin:1.1rem 0 .2rem}
.score{border-top:3px solid var(--line);padding-top:.55rem}
.score b{display:block;font-size:1.75rem;line-height:1.15;font-weight:620;font-variant-numeric:tabular-nums}
.score span{color:var(--soft);font-size:.9rem}
.score.ours{border-color:var(--accent)}
.score.ours b{color:var(--accent)}
figure{margin:1rem 0 .2rem;display:flex;flex-wrap:wrap;gap:.6rem 1.5rem}
figure svg{display:block;flex:1 1 17rem;min-width:0;width:100%;height:auto;max-width:30rem}
figure svg:only-of-type{max-width:38rem}
figcaption{flex:0 0 100%;color:var(--soft);font-size:.9rem;max-width:46rem}
.scroll{overflow-x:auto;margin-top:.6rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th{text-align:left;color:var(--soft);font-weight:600;font-size:.82rem}
th,td{padding:.38rem .9rem .38rem 0;border-bottom:1px solid var(--line);vertical-align:top}
tbody tr:last-child>*{border-bottom:0}
td{font-variant-numeric:tabular-nums}
td.n,td.s{white-space:nowrap}
.bars{width:auto;min-width:24rem}
.bars td{min-width:8rem;background:linear-gradient(to right,var(--tint) var(--p),transparent 0);
padding-left:.4rem}
.note,footer{color:var(--soft);font-size:.86rem}
@media print{body{padding:0}section{break-inside:avoid}}
"""

__all__ = ["CSS", "Page", "Panel", "Score", "badge_row", "score_row", "svg", "table_block"]
