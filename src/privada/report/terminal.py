"""Tables in a terminal: side by side where there is room, else a block for each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text

from privada._text import printable, printable_line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

    from privada.report.tables import Table

READABLE_WIDTH = 16  # a column of longer texts is not squeezed below this
LONGEST_WORD = 40


@dataclass(frozen=True)
class Fitting:
    """A table that looks at the width it is given."""

    table: Table

    @classmethod
    def of(cls, table: Table) -> Self:
        """The table with control characters written out: cells may contain text from other parties."""
        shown = replace(
            table,
            title=printable_line(table.title),
            columns=tuple(map(printable_line, table.columns)),
            rows=tuple(tuple(map(printable_line, row)) for row in table.rows),
            note=printable(table.note),
        )
        return cls(shown)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        yield Text(self.table.title, style="bold")
        if self.least_width <= options.max_width:
            yield self._grid()
        else:
            yield from self._blocks()
        yield Text(f"{self.table.note}\n" if self.table.note else "", style="dim")

    @property
    def least_width(self) -> int:
        """The width below which words would be cut or columns squeezed."""
        return sum(self._widths()) + 2 * (len(self.table.columns) - 1)

    def _widths(self) -> Iterator[int]:
        for i, _ in enumerate(self.table.columns):
            texts = [row[i] for row in (self.table.columns, *self.table.rows)]
            word = max((len(word) for text in texts for word in text.split()), default=0)
            yield min(max(map(len, texts)), max(min(word, LONGEST_WORD), READABLE_WIDTH))

    def _grid(self) -> RichTable:
        made = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for i, (column, width) in enumerate(zip(self.table.columns, self._widths(), strict=True)):
            side: Any = "right" if self.table.is_number(i) else "left"
            made.add_column(Text(column), justify=side, overflow="fold", min_width=width)
        for row in self.table.rows:
            made.add_row(*(Text(cell) for cell in row))
        return made

    def _blocks(self) -> Iterator[Any]:
        for row in self.table.rows:
            block = RichTable.grid(padding=(0, 2, 0, 0))
            block.add_column(no_wrap=True)
            block.add_column(overflow="fold")
            for column, cell in zip(self.table.columns, row, strict=True):
                if cell:
                    block.add_row(Text(column, style="dim"), Text(cell))
            yield Text("")
            yield block


__all__ = ["Fitting"]
