"""What a notebook shows of an object: one small table; everything in it is escaped.

>>> describe("a <b>", [("ε", "1"), ("purpose", "<script>")])[-64:]
'<tr><th>purpose</th><td>&lt;script&gt;</td></tr></tbody></table>'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from privada._text import bounded, escape_in_html, printable_line

_STYLE = "border-collapse:collapse;text-align:left"
_TITLE = "text-align:left;font-weight:600;padding:.2em 0"


def describe(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Write a table of names and values."""
    return _table(
        title, "", ((f"<th>{_escape(name)}</th>", f"<td>{_escape(value)}</td>") for name, value in facts)
    )


def list_rows(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of several rows."""
    head = "".join(f"<th>{_escape(name)}</th>" for name in columns)
    return _table(
        title,
        f"<thead><tr>{head}</tr></thead>",
        ([f"<td>{_escape(cell)}</td>" for cell in row] for row in rows),
    )


def _table(title: str, head: str, rows: Iterable[Iterable[str]]) -> str:
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    caption = f'<caption style="{_TITLE}">{_escape(title)}</caption>'
    return f'<table style="{_STYLE}">{caption}{head}<tbody>{body}</tbody></table>'


def _escape(text: str) -> str:
    return escape_in_html(printable_line(bounded(text)))


__all__ = ["describe", "list_rows"]
