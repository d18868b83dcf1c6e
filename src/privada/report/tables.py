"""A table: made once, shown in a terminal, on a page, or as JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from privada._text import escape_in_html as escape

LONGEST_CELL = 40
SHORT_CELL = 20  # a cell this short stays on one line


@dataclass(frozen=True, kw_only=True)
class Table:
    """A titled table of text.

    >>> Table(title="t", columns=("a", "b"), rows=(("1", "<x>"),)).to_html()[58:-16]
    '<tr><td class="n">1</td><td class="s">&lt;x&gt;</td></tr>'
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def without_empty_columns(self) -> Self:
        """The table without columns that are empty in every row."""
        silent = (name for i, name in enumerate(self.columns) if not any(row[i] for row in self.rows))
        return self.without(*silent) if self.rows else self

    def without(self, *names: str) -> Self:
        """The table without some columns."""
        kept = [i for i, name in enumerate(self.columns) if name not in names]
        return replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            rows=tuple(tuple(row[i] for i in kept) for row in self.rows),
        )

    def shortened(self, most: int = LONGEST_CELL) -> Self:
        """The first rows, with a note on how many more there are."""
        if len(self.rows) <= most:
            return self
        note = f"{self.note} {len(self.rows) - most} more rows are in the JSON.".strip()
        return replace(self, rows=self.rows[:most], note=note)

    def to_dict(self) -> list[dict[str, str]]:
        """Plain form: one mapping per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_rich(self) -> Any:
        """The table for a terminal; one that is too narrow gets a block for each row."""
        from privada.report.terminal import Fitting

        return Fitting.of(self)

    def is_number(self, i: int) -> bool:
        """Whether a column holds numbers only."""
        return bool(self.rows) and all(is_number(row[i]) for row in self.rows)

    def to_html(self) -> str:
        """The table for a page; everything is escaped."""
        if self.has_bars:
            largest = max(_height(cell) for row in self.rows for cell in row[1:])
            body = "".join(_bar_row(row, largest) for row in self.rows)
        else:
            body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in self.rows)
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        kind = ' class="bars"' if self.has_bars else ""
        return f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    @property
    def has_bars(self) -> bool:
        """Whether it is a table of numbers by place, in which a page draws bars."""
        numbers = all(is_number(cell) for row in self.rows for cell in row)
        return len(self.rows) > 2 and self.columns[0] == "" and numbers


def _cell(text: str) -> str:
    kind = "n" if is_number(text) else "s" if len(text) <= SHORT_CELL else "t"
    return f'<td class="{kind}">{escape(text)}</td>'


def _bar_row(row: tuple[str, ...], largest: float) -> str:
    cells = (
        f'<td class="n" style="--p:{100 * _height(cell) / (largest or 1):.0f}%">{escape(cell)}</td>'
        for cell in row[1:]
    )
    return f"<tr><th>{escape(row[0])}</th>{''.join(cells)}</tr>"


def _height(text: str) -> float:
    """Height of a bar: a noisy count may be negative, a bar may not."""
    return max(0.0, float(text.removesuffix("%").replace("−", "-")))


def is_number(text: str) -> bool:
    """Whether a cell reads as a number or a percentage."""
    try:
        float(text.removesuffix("%").replace("−", "-"))
    except ValueError:
        return False
    return True


__all__ = ["Table", "is_number"]
