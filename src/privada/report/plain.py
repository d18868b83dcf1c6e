"""Tables of anything that has a plain form: nested mappings, lists and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from privada.report.tables import Table

MOST_COLUMNS = 8  # of named rows; a wider table is turned
LONGEST_LINE = 20  # words that are written one after another; a longer list is a table


def tables_of(plain: Mapping[str, Any], *, title: str) -> list[Table]:
    """One table of single values, then one for each list and each nested mapping.

    >>> [t.title for t in tables_of({"total": 3.0, "counts": [1, 2], "tables": [{"a": [[1, 2]]}]}, title="r")]
    ['r', 'counts', 'tables: a']
    """
    single = {name: value for name, value in plain.items() if _is_single(value)}
    made = []
    if single:
        rows = tuple((_words(name), _text(value)) for name, value in single.items())
        made.append(Table(title=title, columns=("what", "value"), rows=rows))
    for name, value in plain.items():
        if name not in single:
            made += _nested(value, title=_words(name))
    return [table.shortened() for table in made]


def _nested(value: Any, *, title: str) -> Iterator[Table]:
    if isinstance(value, Mapping) and _are_columns(value):
        yield replace(_of_list(list(zip(*value.values(), strict=True)), title=title), columns=("", *value))
    elif isinstance(value, Mapping) and len(value) > 1 and _are_rows(list(value.values())):
        yield _of_rows(value, title=title)
    elif isinstance(value, Mapping):
        for table in tables_of(value, title=title):
            yield table if table.title == title else replace(table, title=f"{title}: {table.title}")
    elif _are_rows(value) and len(value) > 1:
        yield _of_rows({str(i): row for i, row in enumerate(value)}, title=title)
    elif all(isinstance(part, Mapping) for part in value):
        for index, part in enumerate(value, start=1):
            yield from _nested(part, title=title if len(value) == 1 else f"{title} {index}")
    else:
        yield _of_list(value, title=title)


def _are_rows(parts: Sequence[Any]) -> bool:
    """Whether mappings are the rows of one table: the same names, and single values or mappings of them."""
    if not parts or not all(isinstance(part, Mapping) and part for part in parts):
        return False
    flat = [_flat(part) for part in parts]
    single = all(_is_single(value) and not isinstance(value, list) for row in flat for value in row.values())
    return single and all(list(row) == list(flat[0]) for row in flat)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose mappings are columns: ``share: {low, high}`` becomes ``share low`` and ``share high``."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        made |= {f"{name} {key}".strip(): part for key, part in inner.items()}
    return made


def _of_rows(rows: Mapping[str, Mapping[str, Any]], *, title: str) -> Table:
    """A table of named rows; one that is wider than long, with more than a few columns, is turned."""
    flat = {name: _flat(row) for name, row in rows.items()}
    columns = list(next(iter(flat.values())))
    if len(columns) > max(len(flat), MOST_COLUMNS):
        flat, columns = {name: {key: row[name] for key, row in flat.items()} for name in columns}, list(flat)
    body = tuple((name, *map(_text, row.values())) for name, row in flat.items())
    return Table(title=title, columns=("", *columns), rows=body)


def _are_columns(plain: Mapping[str, Any]) -> bool:
    """Whether a mapping is a table by columns: names to lists of numbers of one length."""
    lists = [value for value in plain.values() if isinstance(value, list) and value]
    numbers = all(isinstance(part, (int, float)) for value in lists for part in value)
    return bool(plain) and len(lists) == len(plain) and numbers and len({len(value) for value in lists}) == 1


def _of_list(values: Sequence[Any], *, title: str) -> Table:
    rows = [part if isinstance(part, (list, tuple)) else (part,) for part in values]
    width = max((len(row) for row in rows), default=0)
    columns = ("", *(str(i) for i in range(width))) if width > 1 else ("", "value")
    body = tuple(
        (str(i), *(_text(cell) for cell in row), *("",) * (width - len(row))) for i, row in enumerate(rows)
    )
    return Table(title=title, columns=columns, rows=body)


def _is_single(value: Any) -> bool:
    if isinstance(value, list):
        return not value or (len(value) <= LONGEST_LINE and all(isinstance(part, str) for part in value))
    return not isinstance(value, (Mapping, tuple))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


__all__ = ["tables_of"]
