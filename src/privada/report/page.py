"""One self-contained HTML page: no script, no external load, light and dark.

Text is escaped here and nowhere else; pictures are SVG that
`privada.report.pictures` made. The page forbids itself to load anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from privada._text import escape_in_html as escape
from privada.report.style import CSS
from privada.report.tables import Table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, kw_only=True)
class Score:
    """One large number with what it is."""

    label: str
    value: str
    ours: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One block of a page; what is empty is left out.

    Attributes
    ----------
    title, text, guarantee : str
        Plain text.
    stamps : tuple of str
        Warnings such as "rehearsal: not private".
    scores : tuple of Score
        Large numbers, side by side.
    picture, caption : str
        SVG of `privada.report.pictures`, one or more, and what it shows.
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
        """The block."""
        parts = (
            f"<h2>{escape(self.title)}</h2>",
            badge_row(self.guarantee, self.stamps),
            f"<p>{escape(self.text)}</p>" if self.text else "",
            score_row(self.scores),
            f'<p class="note">{escape(self.note)}</p>' if self.note else "",
            _figure(self.picture, self.caption),
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
        """The whole document."""
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
    """A guarantee, and warnings beside it; nothing if there is neither."""
    promised = f'<span class="badge">{escape(guarantee)}</span>' if guarantee else ""
    warned = "".join(f'<span class="badge warn">{escape(stamp)}</span>' for stamp in stamps)
    return f'<div class="badges">{promised}{warned}</div>' if promised or warned else ""


def _figure(picture: str, caption: str) -> str:
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{picture}{words}</figure>" if picture else ""


def score_row(scores: Iterable[Score]) -> str:
    """Large numbers, side by side."""
    cells = "".join(
        f'<div class="score{" ours" if score.ours else ""}"><b>{escape(score.value)}</b>'
        f"<span>{escape(score.label)}</span></div>"
        for score in scores
    )
    return f'<div class="scores">{cells}</div>' if cells else ""


def table_block(table: Table, *, alone: bool = False) -> str:
    """A table that scrolls within the page, with its title, unless it stands alone, and its note."""
    title = "" if alone else f"<h3>{escape(table.title)}</h3>"
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    scroll = f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}">'
    return f"{title}{scroll}{table.to_html()}</div>{note}"


__all__ = ["Page", "Panel", "Score", "badge_row", "score_row", "table_block"]
