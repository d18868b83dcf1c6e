"""Read all rows once and count what does not fit: for the owner's eyes, on the owner's machine.

Privacy
-------
The counts are exact. They are shown to the owner and are part of nothing that travels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError
from privada.parties.columns import Category, Column, Date, Number, as_floats, as_times, is_missing
from privada.parties.csv.parsing import parse_fields
from privada.parties.csv.reading import CsvFile
from privada.parties.owner_file import OwnerFile
from privada.parties.persons import number_persons
from privada.parties.rows import Rows
from privada.parties.schema import Schema
from privada.parties.sources.csv_source import CsvFiles, CsvSource
from privada.parties.sources.source import Source, WatchedSource
from privada.parties.tables import read_column
from privada.privacy.noise import SecureNoise

BATCH = 65_536
CLIPPED = ("below", "above")  # what is no fault: such values are clipped


@dataclass
class ColumnCheck:
    """What was found in one column.

    Attributes
    ----------
    counts : mapping of str to int
        Values by what is wrong with them: unparsable, infinite, fraction, missing, below, above, outside.
    first_line : int, optional
        Where in a CSV file the first unparsable value is.
    first_file : str, optional
        In which file, if there are several.
    """

    column: Column
    label: bool
    counts: Counter[str] = field(default_factory=Counter)
    first_line: int | None = None
    first_file: str | None = None

    @property
    def faults(self) -> int:
        """Values for which the rows cannot be used."""
        no_class = self.label and isinstance(self.column, Category)
        allowed = {*CLIPPED, *(("missing",) if self.column.missing and not no_class else ())}
        return sum(number for name, number in self.counts.items() if name not in allowed)

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        counts = {name: number for name, number in sorted(self.counts.items()) if number}
        place = {"first_line": self.first_line, "first_file": self.first_file}
        line = {name: each for name, each in place.items() if each is not None}
        return {"name": self.column.name, **counts, **line, "fits": not self.faults}


@dataclass
class PersonCheck:
    """Persons: how many there are, have no name, or have more rows than the bound."""

    persons: int = 0
    missing: int = 0
    over: int = 0
    dropped: int = 0
    kept: int = 0


@dataclass
class CheckReport:
    """What a whole reading found."""

    rows: int
    columns: list[ColumnCheck]
    persons: PersonCheck | None = None
    ragged: int = 0
    first_ragged_line: int | None = None
    first_ragged_file: str | None = None

    @property
    def fits(self) -> bool:
        """Whether the rows can be used as they are."""
        named = self.persons is None or not self.persons.missing
        return named and not self.ragged and not any(column.faults for column in self.columns)

    @property
    def counted(self) -> int:
        """Rows that count: of persons no more than the bound."""
        return self.rows if self.persons is None else self.persons.kept

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        persons = {} if self.persons is None else {"persons": vars(self.persons)}
        lines: dict[str, Any] = {"ragged_lines": self.ragged, "first_ragged_line": self.first_ragged_line}
        lines |= {} if self.first_ragged_file is None else {"first_ragged_file": self.first_ragged_file}
        columns = [column.to_dict() for column in self.columns]
        plain = {"fits": self.fits, "rows": self.rows, "columns": columns, **persons}
        return plain | (lines if self.ragged else {})


def check_file(file: OwnerFile) -> tuple[CheckReport, bool]:
    """Check the rows that an owner's file names; and whether it is remembered that they fit.

    The result counts for the same rows under the same schema alone, and only where something tells them
    from others: a server's rows may be others the next moment.
    """
    rows = Rows(
        file.source, schema=file.schema, noise=SecureNoise(), compute=file.compute, vintage=file.vintage
    )
    identity = rows.identity
    report = check_source(rows.source, file.schema)
    if report.fits:
        file.memory.remember(rows, report.counted, identity=identity)
    return report, file.memory.recall(rows) is not None


def check_source(source: Source, schema: Schema) -> CheckReport:
    """Read all rows of a source once, of one moment, and count what does not fit."""
    with source.pinned() as now:
        try:
            report = _check_tables(now, schema)
        except SchemaError:
            if not (files := _csv_files(source)):
                raise
            return _check_fields(files, schema)
        if schema.person_id is not None:
            report.persons = count_persons(now.column(schema.person_id), schema)
        return report


def _csv_files(source: Source) -> list[CsvFile]:
    inner = source.source if isinstance(source, WatchedSource) else source
    if isinstance(inner, CsvFiles):
        return inner.files
    return [inner.file] if isinstance(inner, CsvSource) else []


def _begin(schema: Schema) -> CheckReport:
    return CheckReport(0, [ColumnCheck(each, each is schema.label) for each in schema.described])


def _check_tables(source: Source, schema: Schema) -> CheckReport:
    report = _begin(schema)
    for table in source.tables(BATCH):
        report.rows += len(next(iter(table.values())))
        for check in report.columns:
            check.counts.update(count_faults(check.column, table[check.column.name]))
    return report


def _check_fields(files: Sequence[CsvFile], schema: Schema) -> CheckReport:
    """CSV files of which Arrow cannot read one: field by field."""
    report = _begin(schema)
    people = list[npt.NDArray[Any]]()
    for file in files:
        name = file.name if len(files) > 1 else None
        for part in file.fields():
            report.rows += len(part.lines)
            if part.ragged and not report.ragged:
                report.first_ragged_line, report.first_ragged_file = part.ragged[0], name
            report.ragged += len(part.ragged)
            for check in report.columns:
                texts = part.columns[check.column.name]
                line = _check_texts(check, texts, part.lines, file)
                if line is not None and check.first_line is None:
                    check.first_line, check.first_file = line, name
            if schema.person_id is not None:
                people.append(_persons(part.columns[schema.person_id], file))
    if schema.person_id is not None:
        report.persons = count_persons(np.concatenate([np.zeros(0, object), *people]), schema)
    return report


def _check_texts(check: ColumnCheck, texts: Any, lines: npt.NDArray[np.int64], file: CsvFile) -> int | None:
    """Count the faults of some fields; returns the line of the first that cannot be parsed."""
    parsed, wrong = parse_fields(check.column, texts, file.dialect)
    right = parsed.filter(~wrong)
    coded = isinstance(check.column, Category)
    if len(right):
        check.counts.update(count_faults(check.column, read_column(check.column.name, right, coded=coded)))
    if not wrong.any():
        return None
    check.counts["unparsable"] += int(wrong.sum())
    return int(lines[np.argmax(wrong)])


def _persons(texts: Any, file: CsvFile) -> npt.NDArray[Any]:
    words: npt.NDArray[Any] = np.array(texts.to_pylist(), dtype=object)
    words[np.isin(words.astype(str), file.dialect.null)] = None
    return words


def count_faults(column: Column, values: Any) -> Mapping[str, int]:
    """How many values of a column have which fault."""
    return {name: int(np.count_nonzero(flags)) for name, flags in _flags(column, values)}


def _flags(column: Column, values: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(column, Category):
        codes, absent = column.look_up(values)
        yield from (("missing", absent), ("outside", (codes < 0) & ~absent))
        return
    try:
        yield from _number_flags(column, values)
    except SchemaError:
        yield from _each_flag(column, values)


def _number_flags(column: Number | Date, values: Any) -> Iterator[tuple[str, Any]]:
    """Which numbers, or days of dates, are missing, not finite, fractions or beyond the bounds."""
    if isinstance(column, Date):
        absent = np.isnat(as_times(values, column.name))
        numbers = column.count_days(values)
    else:
        numbers = as_floats(values, column.name)
        absent = np.isnan(numbers)
        yield "infinite", np.isinf(numbers)
        if column.whole:
            yield "fraction", numbers[np.isfinite(numbers)] % 1 != 0
    yield "missing", absent
    finite = numbers[~absent]
    yield from (("below", finite < column.low), ("above", finite > column.high))


def _each_flag(column: Number | Date, values: Any) -> Iterator[tuple[str, Any]]:
    """The same, value by value, where some are none of the column's kind."""
    right = [place for place in range(len(values)) if _is_parsable(column, values[place : place + 1])]
    yield "unparsable", np.ones(len(values) - len(right))
    if right:
        yield from _number_flags(column, values[right])


def _is_parsable(column: Number | Date, value: Any) -> bool:
    try:
        column_kind = as_times if isinstance(column, Date) else as_floats
        column_kind(value, column.name)
    except SchemaError:
        return False
    return True


def count_persons(people: npt.NDArray[Any], schema: Schema) -> PersonCheck:
    """How many persons there are and how many have more rows than the bound.

    Persons that cannot be told apart are a `SchemaError`, as they are when the owner is loaded.
    """
    assert schema.max_rows is not None
    assert schema.person_id is not None
    absent = is_missing(people)
    codes = number_persons(people[~absent], schema.person_id)
    counts = np.bincount(codes) if len(codes) else np.zeros(0, dtype=np.int64)
    over = counts[counts > schema.max_rows]
    kept = int(np.minimum(counts, schema.max_rows).sum())
    dropped = int(over.sum() - schema.max_rows * len(over))
    return PersonCheck(len(counts), int(absent.sum()), len(over), dropped, kept)


__all__ = [
    "CheckReport",
    "ColumnCheck",
    "PersonCheck",
    "check_file",
    "check_source",
    "count_faults",
    "count_persons",
]
