"""Read a CSV file in batches of typed columns; what cannot be read is named with its column and line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError, SourceError
from privada.parties.columns import Category, Column, Date, Number
from privada.parties.csv.dialect import Dialect
from privada.parties.csv.parsing import FALSE_WORDS, TRUE_WORDS, arrow_type, parse_fields, what_is_wrong
from privada.parties.outages import raise_if_out_of_reach

BLOCK = 1 << 22  # bytes that are parsed at a time
RECORDS = 8192  # that are looked at one by one, at a time


@dataclass(frozen=True, eq=False, repr=False)
class Fields:
    """Some records as text: the line each begins in, and its fields by column.

    ``ragged`` are the lines of records with more or fewer fields than there are columns.
    """

    lines: npt.NDArray[np.int64]
    columns: Mapping[str, Any]
    ragged: list[int]


@dataclass(frozen=True, eq=False, repr=False)
class CsvFile:
    """A CSV file of one dialect whose columns are typed by what is public about them.

    Attributes
    ----------
    name : str
        Of the file, for errors.
    opened : callable
        A new stream of the file's bytes from the beginning, as Arrow's ``NativeFile``.
    dialect : Dialect
    columns : sequence of Column
        The described columns. Any other column that is read is text.
    """

    name: str
    opened: Callable[[], Any]
    dialect: Dialect
    columns: Sequence[Column]

    def __post_init__(self) -> None:
        for column in self.columns:
            if isinstance(column, Category):
                self.dialect.check_categories(column.name, column.values)

    def names(self) -> list[str]:
        """Names of the columns: declared, or those of the header line. No value is read."""
        if self.dialect.names is not None:
            return list(self.dialect.names)
        try:
            with self._text() as text:
                header: list[str] = next(self._records(text), [])
        except UnicodeError:
            raise SchemaError(f"{self.name} is not text in the encoding {self.dialect.encoding}.") from None
        except (csv.Error, OSError, EOFError) as error:
            raise_if_out_of_reach(error, self.name)
            raise SchemaError(
                f"{self.name} cannot be read: it does not begin with a line of names, {type(error).__name__}."
            ) from None
        if not header:
            raise SchemaError(f"{self.name} is empty: it has not even a header line.")
        return header

    def batches(self, names: Sequence[str], size: int) -> Iterator[Any]:
        """Arrow batches of some columns, of at most ``size`` rows."""
        import pyarrow as pa

        try:
            for batch in _regrouped(self._blocks(names), size):
                yield self._parsed(batch)
        except SourceError:
            raise
        except (pa.ArrowException, OSError, ValueError, UnicodeError) as error:  # its message shows a value
            raise_if_out_of_reach(error, self.name)
            if not self._is_header_alone():
                raise self._explained(type(error).__name__) from None

    def _blocks(self, names: Sequence[str]) -> Iterator[Any]:
        from pyarrow import csv as arrow_csv

        dialect = self.dialect
        with (
            self._bytes() as stream,
            arrow_csv.open_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    encoding="utf8"
                    if dialect.is_utf8
                    else dialect.encoding,  # Arrow drops the mark of "utf8"
                    block_size=BLOCK,
                    column_names=dialect.names,
                    use_threads=False,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=self._types(names),
                    include_columns=list(names),
                    decimal_point=dialect.decimal,
                    null_values=list(dialect.null),
                    strings_can_be_null=True,
                    true_values=list(TRUE_WORDS),
                    false_values=list(FALSE_WORDS),
                ),
            ) as blocks,
        ):
            yield from blocks

    def _types(self, names: Sequence[str]) -> dict[str, Any]:
        import pyarrow as pa

        described = {column.name: column for column in self.columns}
        by_hand = {column.name for column in self._by_hand}
        typed = {name: arrow_type(described[name]) for name in names if name in described}
        return {name: pa.string() if name in by_hand else typed.get(name, pa.string()) for name in names}

    @property
    def _by_hand(self) -> list[Column]:
        """Columns that Arrow does not read, or not exactly: digits in groups, and dates of a given form."""
        numbers, dates = self.dialect.thousands is not None, self.dialect.date_format is not None
        wanted = {Number: numbers, Date: dates, Category: False}
        return [column for column in self.columns if wanted[type(column)]]

    def _parsed(self, batch: Any) -> Any:
        for column in self._by_hand:
            if column.name in batch.schema.names:
                parsed, wrong = parse_fields(column, batch.column(column.name), self.dialect)
                if wrong.any():
                    raise ValueError
                batch = batch.set_column(batch.schema.names.index(column.name), column.name, parsed)
        return batch

    def fields(self) -> Iterator[Fields]:
        """All records as text with their lines, slowly: to find and count what is wrong."""
        names = self.names()
        with self._text() as text:
            records = self._records(text)
            if self.dialect.names is None:
                next(records, None)
            found = list[tuple[int, list[str]]]()
            begin = records.line_num + 1
            for record in records:
                if record:
                    found.append((begin, record))
                begin = records.line_num + 1
                if len(found) == RECORDS:
                    yield _as_fields(found, names)
                    found = []
            yield _as_fields(found, names)

    def find_fault(self) -> str | None:
        """The first field that cannot be read: its column, its line and why, but not what it holds."""
        names = self.names()
        described = {column.name: column for column in self.columns if column.name in names}
        for part in self.fields():
            if part.ragged:
                return f"line {part.ragged[0]} has more or fewer fields than the {len(names)} of the header"
            first: dict[int, Column] = {}
            for name, column in described.items():
                _, wrong = parse_fields(column, part.columns[name], self.dialect)
                if wrong.any():
                    first.setdefault(int(part.lines[np.argmax(wrong)]), column)
            if first:
                line = min(first)
                place = names.index(first[line].name) + 1
                return f"column {place} {first[line].name!r}: {what_is_wrong(first[line])} at line {line}"
        return None

    def _is_header_alone(self) -> bool:
        """Whether the file is a header without even a line end, which Arrow takes for no CSV."""
        try:
            return self.dialect.names is None and not any(
                len(part.lines) or part.ragged for part in self.fields()
            )
        except SourceError:
            raise
        except (SchemaError, csv.Error, OSError, ValueError, EOFError):
            return False

    def _explained(self, kind: str) -> SchemaError:
        """What is wrong with a file that Arrow could not read."""
        try:
            fault = self.find_fault()
        except SourceError:
            raise
        except SchemaError as error:
            return error
        except UnicodeError:
            return SchemaError(f"{self.name} is not text in the encoding {self.dialect.encoding}.")
        except (csv.Error, OSError, ValueError, EOFError):
            fault = None
        long = f"a line may be longer than {BLOCK >> 20} MB, or a quote not closed"
        return SchemaError(f"{self.name}: {fault or f'it cannot be read to its end ({kind}): {long}'}.")

    def _records(self, text: Any) -> Any:
        return csv.reader(text, delimiter=self.dialect.delimiter, quotechar=self.dialect.quote)

    @contextmanager
    def _bytes(self) -> Iterator[Any]:
        import pyarrow as pa

        compression = self.dialect.compression_of(self.name)
        with self.opened() as stream:
            if compression is None:
                yield stream
                return
            with pa.CompressedInputStream(stream, compression) as plain:
                yield plain

    @contextmanager
    def _text(self) -> Iterator[Any]:
        encoding = "utf-8-sig" if self.dialect.is_utf8 else self.dialect.encoding
        with self._bytes() as stream, io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
            yield text


def _as_fields(records: list[tuple[int, list[str]]], names: list[str]) -> Fields:
    import pyarrow as pa

    whole = [(line, record) for line, record in records if len(record) == len(names)]
    ragged = [line for line, record in records if len(record) != len(names)]
    by_column = [[record[place] for _, record in whole] for place in range(len(names))]
    columns = {name: pa.array(each, pa.string()) for name, each in zip(names, by_column, strict=True)}
    return Fields(np.array([line for line, _ in whole], dtype=np.int64), columns, ragged)


def _regrouped(blocks: Iterator[Any], size: int) -> Iterator[Any]:
    """Batches of ``size`` rows, and a smaller last one."""
    import pyarrow as pa

    waiting, rows = list[Any](), 0
    for block in blocks:
        waiting.append(block)
        rows += block.num_rows
        if rows >= size:
            *whole, rest = _cut(pa.Table.from_batches(waiting), size)
            yield from whole
            waiting, rows = [rest], rest.num_rows
    if rows:
        yield from (batch for batch in _cut(pa.Table.from_batches(waiting), size) if batch.num_rows)


def _cut(table: Any, size: int) -> Iterator[Any]:
    """Batches of a table; the last one has fewer than ``size`` rows, perhaps none."""
    import pyarrow as pa

    for start in range(0, table.num_rows + 1, size):
        part = table.slice(start, size).combine_chunks()
        yield (part.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)])[0]


__all__ = ["CsvFile", "Fields"]
