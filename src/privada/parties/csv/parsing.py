"""Fields of a CSV file as values of their columns, and which of them cannot be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from privada._arrays import BoolArray
from privada.parties.columns import Category, Column, Date
from privada.parties.csv.dialect import Dialect

TRUE_WORDS = ("1", "True", "TRUE", "true")
FALSE_WORDS = ("0", "False", "FALSE", "false")


def arrow_type(column: Column) -> Any:
    """The Arrow type that holds a column's public values."""
    import pyarrow as pa

    if isinstance(column, Date):
        return pa.timestamp("us")
    if not isinstance(column, Category):
        return pa.float64()
    kinds = frozenset(type(value) for value in column.values)
    simple = {frozenset({str}): pa.string(), frozenset({bool}): pa.bool_(), frozenset({int}): pa.int64()}
    return simple.get(kinds, pa.float64())


def what_is_wrong(column: Column) -> str:
    """What a field that cannot be parsed is not."""
    names = {"timestamp[us]": "a date", "bool": "true or false", "int64": "a whole number"}
    return f"not {names.get(str(arrow_type(column)), 'a number')}"


def parse_fields(column: Column, texts: Any, dialect: Dialect) -> tuple[Any, BoolArray]:
    """An Arrow array of a column's values, null for what is missing or wrong; and what is wrong."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = arrow_type(column)
    nothing = pa.scalar(None, pa.string())
    words = pc.if_else(pc.is_in(texts, pa.array(dialect.null, pa.string())), nothing, texts)
    parsed = _PARSERS[str(kind)](words, dialect)
    wrong: BoolArray = pc.and_(pc.is_null(parsed), pc.is_valid(words)).to_numpy(zero_copy_only=False)
    return parsed, wrong


def _parse_whole(words: Any, _: Dialect) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return _cast(pc.utf8_trim(words, characters=" \t"), pa.int64())


def _parse_text(words: Any, _: Dialect) -> Any:
    return words


def _parse_numbers(words: Any, dialect: Dialect) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.utf8_trim(words, characters=" \t")
    nothing = pa.scalar(None, pa.string())
    if dialect.thousands is not None:
        words = _without_thousands(words, dialect.thousands, dialect.decimal)
    if dialect.decimal != ".":
        words = pc.if_else(pc.match_substring(words, "."), nothing, words)
        words = pc.replace_substring(words, dialect.decimal, ".")
    return _cast(words, pa.float64())


def _without_thousands(words: Any, separator: str, decimal: str) -> Any:
    """Numbers without the separator; one that does not stand between groups of three makes them none."""
    import re

    import pyarrow as pa
    import pyarrow.compute as pc

    group = re.escape(separator)
    grouped = rf"^[+-]?[0-9]{{1,3}}({group}[0-9]{{3}})+([{re.escape(decimal)}][0-9]*)?$"
    plain = pc.invert(pc.match_substring(words, separator))
    right = pc.or_(plain, pc.match_substring_regex(words, grouped))
    kept = pc.if_else(right, words, pa.scalar(None, pa.string()))
    return pc.replace_substring(kept, separator, "")


def _parse_flags(words: Any, _: Dialect) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    true, false = (pc.is_in(words, pa.array(list(each))) for each in (TRUE_WORDS, FALSE_WORDS))
    return pc.if_else(pc.or_(true, false), true, pa.scalar(None, pa.bool_()))


def _parse_dates(words: Any, dialect: Dialect) -> Any:
    import pyarrow as pa

    if dialect.date_format is None:
        return _cast(words, pa.timestamp("us"))
    coded = words.dictionary_encode()
    times = [_as_time(text, dialect.date_format) for text in coded.dictionary.to_pylist()]
    return pa.array(times, pa.timestamp("us")).take(coded.indices)


def _as_time(text: str, form: str) -> datetime | None:
    """A time by Python's own rules: Arrow takes the 31st of February for a day in March."""
    try:
        moment = datetime.strptime(text, form)  # noqa: DTZ007 - a zone, if any, is in the form
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def _cast(words: Any, kind: Any) -> Any:
    """Words as values, null where one cannot be: found by halves, since most often there are few or none."""
    import pyarrow as pa

    try:
        return words.cast(kind)
    except pa.ArrowInvalid:
        if len(words) == 1:
            return pa.nulls(1, kind)
    middle = len(words) // 2
    return pa.concat_arrays([_cast(words[:middle], kind), _cast(words[middle:], kind)])


_PARSERS: dict[str, Callable[[Any, Dialect], Any]] = {
    "double": _parse_numbers,
    "int64": _parse_whole,
    "string": _parse_text,
    "bool": _parse_flags,
    "timestamp[us]": _parse_dates,
}

__all__ = ["FALSE_WORDS", "TRUE_WORDS", "arrow_type", "parse_fields", "what_is_wrong"]
