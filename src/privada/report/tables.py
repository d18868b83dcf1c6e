"""A table: made once, shown in a terminal, on a page, or as JSON; and the tables of a nested plain form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from privada._text import escape_in_html as escape
from privada._text import printable, printable_line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

LONGEST_CELL = 40
SHORT_CELL = 20  # a cell this short stays on one line
READABLE_WIDTH = 16  # in a terminal, a column of longer texts is not squeezed below this
LONGEST_WORD = 40
MOST_COLUMNS = 8  # a table of named rows that is wider is turned
LONGEST_LIST = 20  # as many words are written one after another; a longer list becomes a table


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
        """Leave out the columns that are empty in every row."""
        empty = [name for i, name in enumerate(self.columns) if not any(row[i] for row in self.rows)]
        return self.without(*empty) if self.rows else self

    def without(self, *names: str) -> Self:
        """Leave out some columns."""
        places = [i for i, name in enumerate(self.columns) if name not in names]
        return replace(
            self,
            columns=tuple(self.columns[i] for i in places),
            rows=tuple(tuple(row[i] for i in places) for row in self.rows),
        )

    def shortened(self, most: int = LONGEST_CELL) -> Self:
        """Keep the first rows, with a note on how many more there are."""
        if len(self.rows) <= most:
            return self
        note = f"{self.note} {len(self.rows) - most} more rows are in the JSON.".strip()
        return replace(self, rows=self.rows[:most], note=note)

    def to_dict(self) -> list[dict[str, str]]:
        """Plain form: one mapping per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_rich(self) -> FittedTable:
        """Make a table for a terminal, with control characters escaped: other parties may have sent cells."""
        return FittedTable(
            replace(
                self,
                title=printable_line(self.title),
                columns=tuple(map(printable_line, self.columns)),
                rows=tuple(tuple(map(printable_line, row)) for row in self.rows),
                note=printable(self.note),
            )
        )

    def to_html(self) -> str:
        """Make a table for a page; everything is escaped."""
        kind, body = "", ""
        if self.has_bars:
            # A noisy count may be negative, a bar may not
            heights = [[max(0.0, _parse_number(cell)) for cell in row[1:]] for row in self.rows]
            largest = max(map(max, heights)) or 1
            kind = ' class="bars"'
            for (place, *cells), row in zip(self.rows, heights, strict=True):
                body += f"<tr><th>{escape(place)}</th>"
                for cell, height in zip(cells, row, strict=True):
                    body += f'<td class="n" style="--p:{100 * height / largest:.0f}%">{escape(cell)}</td>'
                body += "</tr>"
        else:
            for texts in self.rows:
                body += "<tr>"
                for cell in texts:
                    style = "n" if is_number(cell) else "s" if len(cell) <= SHORT_CELL else "t"
                    body += f'<td class="{style}">{escape(cell)}</td>'
                body += "</tr>"
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        return f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    @property
    def has_bars(self) -> bool:
        """Whether it is a table of numbers by place, in which a page draws bars."""
        numbers = all(is_number(cell) for row in self.rows for cell in row)
        return len(self.rows) > 2 and self.columns[0] == "" and numbers


def is_number(text: str) -> bool:
    """Whether a cell reads as a number or a percentage."""
    try:
        _parse_number(text)
    except ValueError:
        return False
    return True


def _parse_number(text: str) -> float:
    return float(text.removesuffix("%").replace("−", "-"))


@dataclass(frozen=True)
class FittedTable:
    """A table in a terminal: a grid if it fits into the width, otherwise a block of lines for each row."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        columns, rows = self.table.columns, self.table.rows
        # The widths below which words would be cut or columns squeezed
        widths = []
        for i, _ in enumerate(columns):
            texts = [row[i] for row in (columns, *rows)]
            word = max((len(word) for text in texts for word in text.split()), default=0)
            widths.append(min(max(map(len, texts)), max(min(word, LONGEST_WORD), READABLE_WIDTH)))
        yield Text(self.table.title, style="bold")
        if sum(widths) + 2 * (len(columns) - 1) <= options.max_width:
            grid = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
            for i, (column, width) in enumerate(zip(columns, widths, strict=True)):
                numbers = bool(rows) and all(is_number(row[i]) for row in rows)
                side: Any = "right" if numbers else "left"
                grid.add_column(Text(column), justify=side, overflow="fold", min_width=width)
            for row in rows:
                grid.add_row(*map(Text, row))
            yield grid
        else:
            for row in rows:
                block = RichTable.grid(padding=(0, 2, 0, 0))
                block.add_column(no_wrap=True)
                block.add_column(overflow="fold")
                for column, cell in zip(columns, row, strict=True):
                    if cell:
                        block.add_row(Text(column, style="dim"), Text(cell))
                yield Text("")
                yield block
        yield Text(f"{self.table.note}\n" if self.table.note else "", style="dim")


def tables_of(plain: Mapping[str, Any], *, title: str) -> list[Table]:
    """Make one table of single values, then one for each list and each nested mapping.

    A number with its interval is one cell; a long list of words is counted.

    >>> [t.title for t in tables_of({"total": 3.0, "counts": [1, 2], "tables": [{"a": [[1, 2]]}]}, title="r")]
    ['r', 'counts', 'tables: a']
    >>> tables_of({"rate": {"value": 0.5, "low": 0.4, "high": 0.6, "confidence": 0.95}}, title="r")[0].rows
    (('rate', '0.5 (0.4 to 0.6)'), ('confidence of each interval', '0.95'))
    """
    joined: dict[str, Any] = dict(join_intervals(plain))
    if confidences := sorted(set(_find_confidences(plain))):
        joined["confidence of each interval"] = ", ".join(map(_format_value, confidences))
    return _tabulate(joined, title=title)


def _tabulate(plain: Mapping[str, Any], *, title: str) -> list[Table]:
    single = {name: value for name, value in plain.items() if _is_single(value)}
    tables = []
    if single:
        rows = tuple((name.replace("_", " "), _format_value(value)) for name, value in single.items())
        tables.append(Table(title=title, columns=("what", "value"), rows=rows))
    for name, value in plain.items():
        if name not in single:
            tables += _tabulate_nested(value, title=name.replace("_", " "))
    return [table.shortened() for table in tables]


def _tabulate_nested(value: Any, *, title: str) -> Iterator[Table]:
    if isinstance(value, Mapping):
        lists = [part for part in value.values() if isinstance(part, list) and part]
        lengths = {len(part) for part in lists}
        numbers = all(isinstance(number, (int, float)) for part in lists for number in part)
        if len(lists) == len(value) and len(lengths) == 1 and numbers:  # columns of numbers, by name
            table = _tabulate_list(list(zip(*lists, strict=True)), title=title)
            yield replace(table, columns=("", *value))
        elif len(value) > 1 and _are_rows(list(value.values())):
            yield _tabulate_rows(value, title=title)
        else:
            for table in _tabulate(value, title=title):
                yield table if table.title == title else replace(table, title=f"{title}: {table.title}")
    elif len(value) > 1 and _are_rows(value):
        yield _tabulate_rows({str(i): row for i, row in enumerate(value)}, title=title)
    elif all(isinstance(part, Mapping) for part in value):
        for index, part in enumerate(value, start=1):
            yield from _tabulate_nested(part, title=title if len(value) == 1 else f"{title} {index}")
    elif all(isinstance(part, str) for part in value):
        counts = tuple((word, str(count)) for word, count in Counter(value).most_common())
        note = f"All {len(value)} are in the JSON."
        yield Table(title=title, columns=("", "how many"), rows=counts, note=note)
    else:
        yield _tabulate_list(value, title=title)


def join_intervals(plain: Any) -> Any:
    """Write numbers and the ends of their intervals into one text: ``{value, low, high}``, or tables of each.

    >>> join_intervals({"counts": {"ill": 5.0}, "low": {"ill": 2.0}, "high": {"ill": 8.0}})
    {'counts': {'ill': '5 (2 to 8)'}}
    """
    if isinstance(plain, list):
        return [join_intervals(part) for part in plain]
    if not isinstance(plain, Mapping):
        return plain
    if {"value", "low", "high"} <= set(plain):
        return _join_ends(plain["value"], plain["low"], plain["high"])
    low, high = plain.get("low"), plain.get("high")
    with_ends = {
        name
        for name, value in plain.items()
        if name not in ("low", "high")
        and isinstance(value, Mapping)
        and _are_alike(value, low)
        and _are_alike(value, high)
    }
    return {
        name: _join_ends(value, low, high) if name in with_ends else join_intervals(value)
        for name, value in plain.items()
        if not (with_ends and name in ("low", "high"))
    }


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two nested mappings have the same names, down to numbers."""
    if not isinstance(one, Mapping):
        return isinstance(one, (int, float)) and isinstance(other, (int, float))
    return (
        isinstance(other, Mapping)
        and list(one) == list(other)
        and all(map(_are_alike, one.values(), other.values()))
    )


def _join_ends(value: Any, low: Any, high: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _join_ends(part, low[name], high[name]) for name, part in value.items()}
    return f"{_format_value(value)} ({_format_value(low)} to {_format_value(high)})"


def _find_confidences(plain: Any) -> Iterator[float]:
    """Yield the confidence of every number that has an interval of its own."""
    if isinstance(plain, Mapping) and {"value", "low", "high"} <= set(plain):
        if "confidence" in plain:
            yield plain["confidence"]
    elif isinstance(plain, (Mapping, list)):
        for part in plain.values() if isinstance(plain, Mapping) else plain:
            yield from _find_confidences(part)


def _are_rows(parts: Sequence[Any]) -> bool:
    """Whether mappings are the rows of one table: the same names, and single values or mappings of them."""
    if not parts or not all(isinstance(part, Mapping) and part for part in parts):
        return False
    flat = [_flatten(part) for part in parts]
    single = all(_is_single(value) and not isinstance(value, list) for row in flat for value in row.values())
    return single and all(list(row) == list(flat[0]) for row in flat)


def _flatten(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn mappings in a row into columns: ``share: {low, high}`` becomes ``share low``, ``share high``."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        columns |= {f"{name} {key}".strip(): part for key, part in inner.items()}
    return columns


def _tabulate_rows(rows: Mapping[str, Mapping[str, Any]], *, title: str) -> Table:
    flat = {name: _flatten(row) for name, row in rows.items()}
    columns = list(next(iter(flat.values())))
    # A table that is wider than long, with more than a few columns, is turned
    if len(columns) > max(len(flat), MOST_COLUMNS):
        flat, columns = {name: {key: row[name] for key, row in flat.items()} for name in columns}, list(flat)
    body = tuple((name, *map(_format_value, row.values())) for name, row in flat.items())
    return Table(title=title, columns=("", *columns), rows=body)


def _tabulate_list(values: Sequence[Any], *, title: str) -> Table:
    rows = [part if isinstance(part, (list, tuple)) else (part,) for part in values]
    width = max((len(row) for row in rows), default=0)
    columns = ("", *(str(i) for i in range(width))) if width > 1 else ("", "value")
    body = tuple(
        (str(i), *map(_format_value, row), *("",) * (width - len(row))) for i, row in enumerate(rows)
    )
    return Table(title=title, columns=columns, rows=body)


def _is_single(value: Any) -> bool:
    if isinstance(value, list):
        return not value or (len(value) <= LONGEST_LIST and all(isinstance(part, str) for part in value))
    return not isinstance(value, (Mapping, tuple))


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


__all__ = ["Table", "is_number", "join_intervals", "tables_of"]
