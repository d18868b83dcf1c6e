"""An owner checks its own rows: what does not fit the schema, and which rows were found right before.

Privacy
-------
Counts are exact. They are shown to the owner, on the owner's machine, and are part of nothing that travels.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError
from privada.parties.columns import Column, is_missing
from privada.parties.csv_files import CsvFile, Fields, parse_fields
from privada.parties.rows import Rows, number_persons
from privada.parties.schema import Schema
from privada.parties.sources import Source
from privada.parties.tables import read_column
from privada.privacy.noise import SecureNoise
from privada.privacy.wire import canonical

if TYPE_CHECKING:
    from privada.parties.owner_file import OwnerFile

BATCH = 65_536
CLIPPED = ("below", "above")  # no faults: such values are clipped
CHECKS = 1  # to be raised when a check becomes stricter
MOST_ENTRIES = 32
LARGEST = 1 << 16


@dataclass
class ColumnCheck:
    """Faults of one column by name: unparsable, infinite, fraction, missing, below, above, outside."""

    column: Column
    label: bool
    counts: Counter[str] = field(default_factory=Counter)
    first_line: int | None = None  # where in a CSV file the first unparsable value is
    first_file: str | None = None  # in which file, if there are several

    @property
    def faults(self) -> int:
        """Values for which the rows cannot be used."""
        needs_class = self.label and self.column.label_role == "classes"
        allowed = {*CLIPPED, *(("missing",) if self.column.missing and not needs_class else ())}
        return sum(number for name, number in self.counts.items() if name not in allowed)

    def add_fields(self, part: Fields, file: CsvFile, file_name: str | None) -> None:
        """Count the faults of some fields of a CSV file."""
        name = self.column.name
        values, wrong = parse_fields(self.column, part.columns[name], file.dialect)
        right = values.filter(~wrong)
        if len(right):
            self.counts.update(self.column.count_faults(read_column(name, right, coded=self.column.is_coded)))
        if wrong.any():
            self.counts["unparsable"] += int(wrong.sum())
            if self.first_line is None:
                self.first_line, self.first_file = int(part.lines[np.argmax(wrong)]), file_name

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        counts = {name: number for name, number in sorted(self.counts.items()) if number}
        place = {"first_line": self.first_line, "first_file": self.first_file}
        stated = {key: value for key, value in place.items() if value is not None}
        return {"name": self.column.name, **counts, **stated, "fits": not self.faults}


@dataclass
class PersonCheck:
    """Persons: how many there are, have no name, or have more rows than the bound."""

    persons: int = 0
    missing: int = 0
    over: int = 0
    dropped: int = 0
    counted: int = 0


@dataclass
class CheckReport:
    """The faults of all rows."""

    rows: int
    columns: list[ColumnCheck]
    persons: PersonCheck | None = None
    ragged: int = 0
    first_ragged_line: int | None = None
    first_ragged_file: str | None = None

    @classmethod
    def begin(cls, schema: Schema) -> CheckReport:
        """A report of no rows."""
        return cls(0, [ColumnCheck(column, column is schema.label) for column in schema.described])

    @property
    def fits(self) -> bool:
        """Whether the rows can be used as they are."""
        all_named = self.persons is None or not self.persons.missing
        return all_named and not self.ragged and not any(column.faults for column in self.columns)

    @property
    def counted(self) -> int:
        """Rows that count: of persons no more than the bound."""
        return self.rows if self.persons is None else self.persons.counted

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        plain: dict[str, Any] = {
            "fits": self.fits,
            "rows": self.rows,
            "columns": [column.to_dict() for column in self.columns],
        }
        if self.persons is not None:
            numbers = dict(vars(self.persons))
            plain["persons"] = numbers | {"kept": numbers.pop("counted")}
        if self.ragged:
            plain |= {"ragged_lines": self.ragged, "first_ragged_line": self.first_ragged_line}
            if self.first_ragged_file is not None:
                plain["first_ragged_file"] = self.first_ragged_file
        return plain


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
        report = CheckReport.begin(schema)
        try:
            for table in now.tables(BATCH):
                report.rows += len(next(iter(table.values())))
                for check in report.columns:
                    check.counts.update(check.column.count_faults(table[check.column.name]))
        except SchemaError:
            if not source.csv_files:
                raise
            return _check_fields(source.csv_files, schema)
        if schema.person_id is not None:
            report.persons = count_persons(now.column(schema.person_id), schema)
        return report


def _check_fields(files: Sequence[CsvFile], schema: Schema) -> CheckReport:
    """Check CSV files field by field, since Arrow cannot read one of them."""
    report = CheckReport.begin(schema)
    people = [np.zeros(0, dtype=object)]
    for file in files:
        file_name = file.name if len(files) > 1 else None
        for part in file.fields():
            report.rows += len(part.lines)
            if part.ragged and not report.ragged:
                report.first_ragged_line, report.first_ragged_file = part.ragged[0], file_name
            report.ragged += len(part.ragged)
            for check in report.columns:
                check.add_fields(part, file, file_name)
            if schema.person_id is not None:
                words = np.array(part.columns[schema.person_id].to_pylist(), dtype=object)
                words[np.isin(words.astype(str), file.dialect.null)] = None
                people.append(words)
    if schema.person_id is not None:
        report.persons = count_persons(np.concatenate(people), schema)
    return report


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
    return PersonCheck(
        persons=len(counts),
        missing=int(absent.sum()),
        over=len(over),
        dropped=int(over.sum() - schema.max_rows * len(over)),
        counted=int(np.minimum(counts, schema.max_rows).sum()),
    )


@dataclass(frozen=True)
class CheckMemory:
    """A file that remembers which rows were read to their end and found right.

    It holds the number of rows that count, under a digest of the schema, of where the rows are and how they
    are written, of what tells them from those of another moment, and of the version of privada. If any of
    these differs, all rows are read again.

    Privacy
    -------
    Only its owner may read the file: it holds exact numbers of rows.
    """

    path: Path
    place: str  # where the rows are and how they are written, in words

    def recall(self, rows: Rows) -> int | None:
        """How many rows count, if these very rows were checked before under this schema."""
        key = self._make_key(rows)
        size = self._read_entries().get(key) if key else None
        return size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None

    def remember(self, rows: Rows, size: int, *, identity: str | None) -> None:
        """Remember how many rows count, if they are still those of ``identity``.

        ``identity`` is what told the rows from others before they were read. A file that cannot be written
        is not an error: rows will be read again.
        """
        if identity is None or rows.identity != identity:
            return
        entries = self._read_entries()
        entries.pop(key := self._make_key(rows) or "", None)
        latest = dict([*entries.items(), (key, size)][-MOST_ENTRIES:])
        with suppress(OSError):
            # Written beside and put in place at once: a reader sees the old file or the new one.
            draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
            try:
                with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                    stream.write(json.dumps(latest).encode())
                draft.replace(self.path)
            finally:
                draft.unlink(missing_ok=True)

    def _make_key(self, rows: Rows) -> str | None:
        """A digest of all that the result depends on; None if nothing tells the rows from others."""
        from privada import __version__

        identity = rows.identity
        if identity is None:
            return None
        about = {"checks": CHECKS, "version": __version__, "schema": rows.schema.to_dict()}
        return hashlib.sha256(canonical(about | {"place": self.place, "identity": identity})).hexdigest()

    def _read_entries(self) -> dict[str, Any]:
        """What the file remembers; nothing of a file that others can read, or that is damaged."""
        try:
            status = self.path.stat()
            if status.st_size > LARGEST or status.st_mode & 0o077:
                return {}
            entries = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return entries if isinstance(entries, dict) else {}


__all__ = [
    "CheckMemory", "CheckReport", "ColumnCheck", "PersonCheck", "check_file", "check_source",
    "count_persons",
]  # fmt: skip
