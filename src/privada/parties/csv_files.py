"""CSV as people have it: separators, decimal commas, encodings, compression, dates, words for missing values.

A file is read in batches of typed columns. What cannot be read is named with its column and its line, but not
shown.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from privada._arrays import BoolArray
from privada._toml import Section
from privada.exceptions import InputError, SchemaError, SourceError
from privada.parties.tables import raise_if_out_of_reach

if TYPE_CHECKING:
    from privada.parties.columns import Column

NULL_WORDS = ("", "#N/A", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
TRUE_WORDS = ("1", "True", "TRUE", "true")
FALSE_WORDS = ("0", "False", "FALSE", "false")
COMPRESSIONS = {"gz": "gzip", "gzip": "gzip", "bz2": "bz2", "zst": "zstd", "zstd": "zstd", "none": None}
SUFFIXES = {".gz": "gz", ".bz2": "bz2", ".zst": "zst"}
BLOCK = 1 << 22  # bytes that are parsed at a time
RECORDS = 8192  # that are looked at one by one, at a time


@dataclass(frozen=True, kw_only=True)
class Dialect:
    r"""How a CSV file is written: declared by whoever has it, never guessed from its values.

    Parameters
    ----------
    delimiter : str, default=","
        One character between fields; "\t" for a tab.
    quote : str, default='"'
        One character around fields, twice for itself; a quoted field may have line ends.
    encoding : str, default="utf-8"
        Any that Python knows: "latin-1", "cp1252", "utf-16".
    decimal : str, default="."
        One character before the fraction of a number.
    thousands : str, optional
        One character between groups of three digits.
    date_format : str, optional
        As for ``strptime``: "%d.%m.%Y". By default ISO dates and times.
    null : sequence of str
        Words that mean that a value is missing, exactly as they are written.
    compression : str, optional
        "gz", "bz2", "zst" or "none"; by default what the name of the file ends with.
    names : sequence of str, optional
        Names of the columns of a file without a header line.

    >>> Dialect(delimiter=";", decimal=",", encoding="cp1252").decimal
    ','
    """

    delimiter: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    null: tuple[str, ...] = NULL_WORDS
    compression: str | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "null", tuple(self.null))
        object.__setattr__(self, "names", None if self.names is None else tuple(self.names))
        for name in ("delimiter", "quote", "decimal", "thousands"):
            if name != "thousands" or self.thousands is not None:
                self._check_character(name, getattr(self, name))
        if self.quote in {self.delimiter, self.decimal, self.thousands}:
            raise InputError("Expected quote to differ from delimiter, decimal and thousands.")
        if self.decimal == self.thousands:
            raise InputError("Expected thousands to differ from decimal.")
        self._check_words()
        if self.compression not in {None, *COMPRESSIONS}:
            raise InputError(f"Expected compression to be gz, bz2, zst or none, got {self.compression!r}.")
        try:
            codec = codecs.lookup(self.encoding)
        except (LookupError, ValueError, TypeError):
            raise InputError(
                f"Expected encoding to be one that Python knows, got {self.encoding!r}."
            ) from None
        if not codec._is_text_encoding:
            raise InputError(f"Expected encoding to be one of text, got {self.encoding!r}.")

    @staticmethod
    def _check_character(name: str, character: Any) -> None:
        if not isinstance(character, str) or len(character) != 1 or ord(character) > 127:
            raise InputError(f"Expected {name} to be one ASCII character, got {character!r}.")
        if character.isalnum() or character in "\r\n+-":
            raise InputError(f"Expected {name} to be no letter, digit, sign or line end.")

    def _check_words(self) -> None:
        if not all(isinstance(word, str) for word in self.null):
            raise InputError("Expected null to be a list of words.")
        if self.date_format is not None and "%" not in self.date_format:
            raise InputError(f'Expected date_format as in "%d.%m.%Y", got {self.date_format!r}.')
        if self.names is not None and (len(set(self.names)) != len(self.names) or not all(self.names)):
            raise InputError("Expected names to be those of all columns, each once.")

    @classmethod
    def from_section(cls, section: Section) -> Self:
        """Read ``[data.csv]``."""
        keys = [field.name for field in fields(cls) if field.name in section]
        with section.blaming(*keys or ["delimiter"]):
            header = section.flag("header", "names" not in section)
            if header == ("names" in section):
                section.fail("header", "a file without a header needs names, and one with a header none.")
            settings: dict[str, Any] = {
                key: tuple(section.array(key)) if key in ("null", "names") else section.string(key)
                for key in keys
            }
            dialect = cls(**settings)
        section.done()
        return dialect

    def to_dict(self) -> dict[str, Any]:
        """Plain form: what differs from the default."""
        differing = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return {field.name: getattr(self, field.name) for field in differing}

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8 by any of its names, with a byte order mark or not."""
        return codecs.lookup(self.encoding).name in {"utf-8", "utf-8-sig"}

    def compression_of(self, name: str) -> str | None:
        """Arrow's name of the compression of a file of this name."""
        ending = next((SUFFIXES[end] for end in SUFFIXES if name.lower().endswith(end)), "none")
        return COMPRESSIONS[self.compression or ending]


def is_csv(name: str) -> bool:
    """Whether a file is CSV by its name, in capitals or not, compressed or not.

    >>> is_csv("EXPORT.CSV.GZ"), is_csv("rows.parquet")
    (True, False)
    """
    lower = name.lower()
    for end in SUFFIXES:
        lower = lower.removesuffix(end)
    return lower.endswith(".csv")


def parse_fields(column: Column, texts: Any, dialect: Dialect) -> tuple[Any, BoolArray]:
    """An Arrow array of a column's values, null for what is missing or wrong; and which are wrong."""
    import pyarrow as pa
    import pyarrow.compute as pc

    null_words = pa.array(dialect.null, pa.string())
    words = pc.if_else(pc.is_in(texts, null_words), pa.scalar(None, pa.string()), texts)
    parsed = column.parse_words(words, dialect)
    wrong: BoolArray = pc.and_(pc.is_null(parsed), pc.is_valid(words)).to_numpy(zero_copy_only=False)
    return parsed, wrong


def parse_integers(words: Any, _: Dialect) -> Any:
    """Words as whole numbers; any other word becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return cast_words(pc.utf8_trim(words, characters=" \t"), pa.int64())


def parse_numbers(words: Any, dialect: Dialect) -> Any:
    """Words as numbers; any other word becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.utf8_trim(words, characters=" \t")
    nothing = pa.scalar(None, pa.string())
    if dialect.thousands is not None:
        # A separator that does not stand between groups of three digits makes a word no number.
        group = re.escape(dialect.thousands)
        grouped = rf"^[+-]?[0-9]{{1,3}}({group}[0-9]{{3}})+([{re.escape(dialect.decimal)}][0-9]*)?$"
        plain = pc.invert(pc.match_substring(words, dialect.thousands))
        right = pc.or_(plain, pc.match_substring_regex(words, grouped))
        words = pc.replace_substring(pc.if_else(right, words, nothing), dialect.thousands, "")
    if dialect.decimal != ".":
        words = pc.if_else(pc.match_substring(words, "."), nothing, words)
        words = pc.replace_substring(words, dialect.decimal, ".")
    return cast_words(words, pa.float64())


def parse_flags(words: Any, _: Dialect) -> Any:
    """Words as true or false; any other word becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    true, false = (pc.is_in(words, pa.array(list(accepted))) for accepted in (TRUE_WORDS, FALSE_WORDS))
    return pc.if_else(pc.or_(true, false), true, pa.scalar(None, pa.bool_()))


def parse_times(words: Any, dialect: Dialect) -> Any:
    """Words as times; any other word becomes null."""
    import pyarrow as pa

    if dialect.date_format is None:
        return cast_words(words, pa.timestamp("us"))

    def parse(text: str) -> datetime | None:
        # By Python's own rules: Arrow takes the 31st of February for a day in March.
        try:
            moment = datetime.strptime(text, str(dialect.date_format))  # noqa: DTZ007 - a zone is in the form
            return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
        except (ValueError, OverflowError):
            return None

    return parse_distinct(words, parse, pa.timestamp("us"))


def parse_distinct(words: Any, parse: Callable[[str], Any], arrow_type: Any) -> Any:
    """Words as values by a function that gives None for a wrong word; it sees each distinct word once."""
    import pyarrow as pa

    coded = words.dictionary_encode()
    values = [None if text is None else parse(text) for text in coded.dictionary.to_pylist()]
    return pa.array(values, arrow_type).take(coded.indices)


def cast_words(words: Any, arrow_type: Any) -> Any:
    """Words as values; any other word becomes null. Such words are few, so they are found by halving."""
    import pyarrow as pa

    try:
        return words.cast(arrow_type)
    except pa.ArrowInvalid:
        if len(words) == 1:
            return pa.nulls(1, arrow_type)
    middle = len(words) // 2
    return pa.concat_arrays([cast_words(words[:middle], arrow_type), cast_words(words[middle:], arrow_type)])


@dataclass(frozen=True, eq=False, repr=False)
class Fields:
    """Some records as text."""

    lines: npt.NDArray[np.int64]  # in which each begins
    columns: Mapping[str, Any]
    ragged: list[int]  # lines of records with more or fewer fields than there are columns

    @classmethod
    def of_records(cls, records: list[tuple[int, list[str]]], names: list[str]) -> Self:
        """Fields of records by the names of the columns."""
        import pyarrow as pa

        complete = [(line, record) for line, record in records if len(record) == len(names)]
        columns = {
            name: pa.array([record[place] for _, record in complete], pa.string())
            for place, name in enumerate(names)
        }
        ragged = [line for line, record in records if len(record) != len(names)]
        return cls(np.array([line for line, _ in complete], dtype=np.int64), columns, ragged)


@dataclass(frozen=True, eq=False, repr=False)
class CsvFile:
    """A CSV file of one dialect whose columns are typed by what is public about them; any other is text."""

    name: str  # of the file, for errors
    opened: Callable[[], Any]  # a new stream of the file's bytes, as Arrow's ``NativeFile``
    dialect: Dialect
    columns: Sequence[Column]  # the described ones

    def __post_init__(self) -> None:
        for column in self.columns:
            column.check_dialect(self.dialect)

    def names(self) -> list[str]:
        """Names of the columns: declared, or those of the header line. No value is read."""
        if self.dialect.names is not None:
            return list(self.dialect.names)
        try:
            with self._records() as records:
                header: list[str] = next(records, [])
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

        by_name = {column.name: column for column in self.columns}
        by_hand = [column for column in self.columns if column.needs_parser(self.dialect)]
        types = {
            name: by_name[name].arrow_type()
            if name in by_name and by_name[name] not in by_hand
            else pa.string()
            for name in names
        }
        try:
            for batch in _regroup(self._read_blocks(types), size):
                for column in by_hand:
                    if column.name in batch.schema.names:
                        values, wrong = parse_fields(column, batch.column(column.name), self.dialect)
                        if wrong.any():
                            raise ValueError
                        place = batch.schema.names.index(column.name)
                        batch = batch.set_column(place, column.name, values)  # noqa: PLW2901
                yield batch
        except SourceError:
            raise
        except (pa.ArrowException, OSError, ValueError, UnicodeError) as error:  # its message shows a value
            raise_if_out_of_reach(error, self.name)
            if not self._is_header_alone():
                raise self._explain(type(error).__name__) from None

    def _read_blocks(self, types: Mapping[str, Any]) -> Iterator[Any]:
        from pyarrow import csv as arrow_csv

        dialect = self.dialect
        with (
            self._bytes() as stream,
            arrow_csv.open_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    # Arrow drops the byte order mark of "utf8"
                    encoding="utf8" if dialect.is_utf8 else dialect.encoding,
                    block_size=BLOCK,
                    column_names=dialect.names,
                    use_threads=False,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    decimal_point=dialect.decimal,
                    null_values=list(dialect.null),
                    strings_can_be_null=True,
                    true_values=list(TRUE_WORDS),
                    false_values=list(FALSE_WORDS),
                ),
            ) as blocks,
        ):
            yield from blocks

    def fields(self) -> Iterator[Fields]:
        """All records as text with their lines, slowly: to find and count what is wrong."""
        names = self.names()
        with self._records() as records:
            if self.dialect.names is None:
                next(records, None)
            numbered = list[tuple[int, list[str]]]()
            begin = records.line_num + 1
            for record in records:
                if record:
                    numbered.append((begin, record))
                begin = records.line_num + 1  # a quoted field may have ended lines
                if len(numbered) == RECORDS:
                    yield Fields.of_records(numbered, names)
                    numbered = []
            yield Fields.of_records(numbered, names)

    def find_fault(self) -> str | None:
        """The first field that cannot be read: its column, its line and why, but not what it holds."""
        names = self.names()
        columns = {column.name: column for column in self.columns if column.name in names}
        for part in self.fields():
            if part.ragged:
                return f"line {part.ragged[0]} has more or fewer fields than the {len(names)} of the header"
            first: dict[int, Column] = {}
            for name, column in columns.items():
                _, wrong = parse_fields(column, part.columns[name], self.dialect)
                if wrong.any():
                    first.setdefault(int(part.lines[np.argmax(wrong)]), column)
            if first:
                line = min(first)
                column = first[line]
                place = names.index(column.name) + 1
                return f"column {place} {column.name!r}: not {column.expected} at line {line}"
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

    def _explain(self, kind: str) -> SchemaError:
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

    @contextmanager
    def _bytes(self) -> Iterator[Any]:
        """The file's bytes, decompressed."""
        import pyarrow as pa

        compression = self.dialect.compression_of(self.name)
        with self.opened() as stream:
            if compression is None:
                yield stream
                return
            with pa.CompressedInputStream(stream, compression) as plain:
                yield plain

    @contextmanager
    def _records(self) -> Iterator[Any]:
        """Python's reader of the file's records."""
        encoding = "utf-8-sig" if self.dialect.is_utf8 else self.dialect.encoding
        with self._bytes() as stream, io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
            yield csv.reader(text, delimiter=self.dialect.delimiter, quotechar=self.dialect.quote)


def _regroup(blocks: Iterator[Any], size: int) -> Iterator[Any]:
    """Batches of ``size`` rows, and a smaller last one."""
    import pyarrow as pa

    def cut(table: Any) -> Iterator[Any]:
        # The last batch has fewer rows than the others, perhaps none.
        for start in range(0, table.num_rows + 1, size):
            part = table.slice(start, size).combine_chunks()
            yield (part.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)])[0]

    waiting, rows = list[Any](), 0
    for block in blocks:
        waiting.append(block)
        rows += block.num_rows
        if rows >= size:
            *complete, rest = cut(pa.Table.from_batches(waiting))
            yield from complete
            waiting, rows = [rest], rest.num_rows
    if rows:
        yield from (batch for batch in cut(pa.Table.from_batches(waiting)) if batch.num_rows)


__all__ = [
    "NULL_WORDS", "CsvFile", "Dialect", "Fields", "cast_words", "is_csv", "parse_distinct",
    "parse_fields", "parse_flags", "parse_integers", "parse_numbers", "parse_times",
]  # fmt: skip
