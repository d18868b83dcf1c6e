"""``privada demo``: the rows of all methods as a table and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privada.methods.registry import DemoRow
from privada.report import pictures
from privada.report.ledger import budgets_table, lines_table
from privada.report.page import Page, Panel, Score
from privada.report.tables import Table

_COLUMNS = (
    "method",
    "who holds what",
    "guarantee",
    "score",
    "without the private data",
    "ours",
    "no privacy",
)
_LEAD = (
    "Each method learns from data that it cannot see. Beside its result are the results without the "
    "private data and without privacy."
)


def demo_table(rows: Sequence[DemoRow]) -> Table:
    """One row for each method."""
    body = tuple(
        (
            row.method,
            row.holders,
            _promise(row),
            row.score,
            _number(row.without),
            _number(row.ours),
            _number(row.clear),
        )
        for row in rows
    )
    return Table(title="What private data can still teach", columns=_COLUMNS, rows=body)


def demo_lines(rows: Sequence[DemoRow]) -> tuple[Table, ...]:
    """The ledger lines that were written, one table for each method."""
    return tuple(lines_table(row.ledger, title=f"Ledger lines of {row.method}") for row in rows)


def demo_plain(row: DemoRow) -> dict[str, Any]:
    """The JSON twin of a row."""
    return {
        "method": row.method,
        "title": row.title,
        "holders": row.holders,
        "guarantee": row.guarantee.to_dict(),
        "score": row.score,
        "without": row.without,
        "ours": row.ours,
        "clear": row.clear,
        "stamps": list(row.stamps),
        "ledger": dict(row.ledger),
    }


def demo_page(rows: Sequence[DemoRow]) -> Page:
    """The page: one panel for each method, a picture of all, the ledgers."""
    overview = Panel(title="Between knowing nothing and seeing everything", picture=_picture(rows))
    panels = (overview,) if overview.picture else ()
    return Page(
        title="What private data can still teach",
        lead=_LEAD,
        panels=(*(_panel(row) for row in rows), *panels, *(_ledger(row) for row in rows)),
    )


def _panel(row: DemoRow) -> Panel:
    scores = (
        Score(label="without the private data", value=_number(row.without)),
        Score(label="ours, private", value=_number(row.ours), ours=True),
        Score(label="without privacy", value=_number(row.clear)),
    )
    return Panel(
        title=f"{row.method}: {row.title}",
        text=f"{row.holders} The score: {row.score}.",
        guarantee=str(row.guarantee),
        stamps=row.stamps,
        scores=scores,
    )


def _ledger(row: DemoRow) -> Panel:
    return Panel(
        title=f"Ledger of {row.method}",
        text="Every line is signed and names the digest of the line before it.",
        tables=(budgets_table(row.ledger, title="Budget"), lines_table(row.ledger, title="Lines")),
    )


def _picture(rows: Sequence[DemoRow]) -> str:
    made = [
        pictures.Span(name=row.method, without=row.without, ours=row.ours, clear=row.clear) for row in rows
    ]
    scores = sorted({row.score for row in rows})
    return pictures.spans(made, xlabel=scores[0] if len(scores) == 1 else "score")


def _promise(row: DemoRow) -> str:
    return "; ".join((str(row.guarantee), *row.stamps))


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


__all__ = ["demo_lines", "demo_page", "demo_plain", "demo_table"]
