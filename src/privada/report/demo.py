"""``privada demo``: the rows of all methods as a table and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from privada.methods.registry import DemoRow
from privada.report import demo_pictures
from privada.report.ledger import all_lines, budgets_table, lines_table
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
        "better": row.better,
        "surprise": row.surprise if _has_surprise(row) else "",
        "stamps": list(row.stamps),
        "ledger": dict(row.ledger),
    }


def demo_page(rows: Sequence[DemoRow]) -> Page:
    """The page: all results at a glance, one story for each method, one ledger."""
    glance = replace(demo_table(rows).without("who holds what"), title="At a glance")
    return Page(
        title="What private data can still teach",
        lead=_LEAD,
        panels=(Panel(title=glance.title, tables=(glance,)), *(_panel(row) for row in rows), _ledger(rows)),
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
        note=f"Why the private score is the better one here: {row.surprise}" if _has_surprise(row) else "",
        picture=demo_pictures.draw(row.picture),
        caption=row.picture.caption if row.picture else "",
    )


def _has_surprise(row: DemoRow) -> bool:
    return row.is_surprising and bool(row.surprise)


def _ledger(rows: Sequence[DemoRow]) -> Panel:
    """All that was paid, in one place."""
    return Panel(
        title="The ledger",
        text=(
            "What every owner paid for the numbers above. Each line was written before the rows were opened, "
            "is signed, and names the digest of the line before it."
        ),
        tables=(
            _joined("Budgets", rows, [budgets_table(row.ledger) for row in rows]),
            _joined("Lines", rows, [all_lines(row.ledger) for row in rows]),
        ),
    )


def _joined(title: str, rows: Sequence[DemoRow], tables: Sequence[Table]) -> Table:
    pairs = zip(rows, tables, strict=True)
    body = tuple((row.method, *cells) for row, table in pairs for cells in table.rows)
    return Table(title=title, columns=("story", *tables[0].columns), rows=body).without_empty_columns()


def _promise(row: DemoRow) -> str:
    return "; ".join((str(row.guarantee), *row.stamps))


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


__all__ = ["demo_lines", "demo_page", "demo_plain", "demo_table"]
