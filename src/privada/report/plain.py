"""Tables of anything that has a plain form: nested mappings, lists and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from privada.report.tables import Table

MOST_COLUMNS = 8  # of named rows; a wider table is turned
ENDS = ("low", "high")
ESTIMATE = {"value", "low", "high"}
LONGEST_LINE = 20  # words that are written one after another; a longer list is a table


def tables_of(plain: Mapping[str, Any], *, title: str) -> list[Table]:
    """One table of single values, then one for each list and each nested mapping.

    A number with its interval is one cell; a long list of words is counted.

    >>> [t.title for t in tables_of({"total": 3.0, "counts": [1, 2], "tables": [{"a": [[1, 2]]}]}, title="r")]
    ['r', 'counts', 'tables: a']
    >>> tables_of({"rate": {"value": 0.5, "low": 0.4, "high": 0.6, "confidence": 0.95}}, title="r")[0].rows
    (('rate', '0.5 (0.4 to 0.6)'), ('confidence of each interval', '0.95'))
    """
    sure = sorted({*_confidences(plain)})
    return _tables_of(join_intervals(plain) | _say_confidence(sure), title=title)


def _tables_of(plain: Mapping[str, Any], *, title: str) -> list[Table]:
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
        for table in _tables_of(value, title=title):
            yield table if table.title == title else replace(table, title=f"{title}: {table.title}")
    elif _are_rows(value) and len(value) > 1:
        yield _of_rows({str(i): row for i, row in enumerate(value)}, title=title)
    elif all(isinstance(part, Mapping) for part in value):
        for index, part in enumerate(value, start=1):
            yield from _nested(part, title=title if len(value) == 1 else f"{title} {index}")
    elif all(isinstance(part, str) for part in value):
        yield _count_words(value, title=title)
    else:
        yield _of_list(value, title=title)


def join_intervals(plain: Any) -> Any:
    """The same, with ends beside their number: ``{value, low, high}``, or tables of each, become text.

    >>> join_intervals({"counts": {"ill": 5.0}, "low": {"ill": 2.0}, "high": {"ill": 8.0}})
    {'counts': {'ill': '5 (2 to 8)'}}
    """
    if isinstance(plain, list):
        return [join_intervals(part) for part in plain]
    if not isinstance(plain, Mapping):
        return plain
    if set(plain) >= ESTIMATE:
        return _with_ends(*(plain[name] for name in ("value", "low", "high")))
    low, high = (plain.get(name) for name in ENDS)
    between = {name for name, value in plain.items() if _has_ends(value, low, high) and name not in ENDS}
    return {
        name: _join(value, low, high) if name in between else join_intervals(value)
        for name, value in plain.items()
        if not (between and name in ENDS)
    }


def _has_ends(value: Any, low: Any, high: Any) -> bool:
    return isinstance(value, Mapping) and _alike(value, low) and _alike(value, high)


def _alike(one: Any, other: Any) -> bool:
    """Whether two nested mappings have the same names, down to numbers."""
    if not isinstance(one, Mapping):
        return isinstance(one, (int, float)) and isinstance(other, (int, float))
    return (
        isinstance(other, Mapping)
        and list(one) == list(other)
        and all(map(_alike, one.values(), other.values()))
    )


def _join(value: Any, low: Any, high: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _join(part, low[name], high[name]) for name, part in value.items()}
    return _with_ends(value, low, high)


def _with_ends(value: float, low: float, high: float) -> str:
    return f"{_text(value)} ({_text(low)} to {_text(high)})"


def _confidences(plain: Any) -> Iterator[float]:
    """Of all numbers with an interval of their own."""
    if isinstance(plain, Mapping) and set(plain) >= ESTIMATE:
        yield from (plain["confidence"],) if "confidence" in plain else ()
    elif isinstance(plain, (Mapping, list)):
        for part in plain.values() if isinstance(plain, Mapping) else plain:
            yield from _confidences(part)


def _say_confidence(sure: Sequence[float]) -> dict[str, Any]:
    return {"confidence of each interval": ", ".join(map(_text, sure))} if sure else {}


def _count_words(words: Sequence[str], *, title: str) -> Table:
    """How often each word stands in a long list."""
    rows = tuple((word, str(count)) for word, count in Counter(words).most_common())
    return Table(title=title, columns=("", "how many"), rows=rows, note=f"All {len(words)} are in the JSON.")


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
