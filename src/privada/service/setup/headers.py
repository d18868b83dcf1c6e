"""What a file or a table declares of its columns: names and types, never a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privada.exceptions import InputError, SchemaError

if TYPE_CHECKING:
    from privada.parties.csv_files import Dialect
    from privada.parties.sources.databases import Database


@dataclass(frozen=True)
class ColumnHeader:
    """A column's name, and the kind that its declared type suggests (None: no type is declared)."""

    name: str
    kind: str | None = None


def read_header(path: Path, dialect: Dialect | None = None) -> list[ColumnHeader]:
    """The columns of a file or a folder. No value is read."""
    from privada.parties.csv_files import is_csv
    from privada.parties.sources.files import data_files

    if not (path.is_file() or path.is_dir()):
        raise InputError(f"--data: there is nothing at {path}, or it is neither a file nor a folder.")
    files = data_files(path)
    csv = dialect is not None or (bool(files) and all(is_csv(file.name) for file in files))
    return _csv_header(files[0] if files else path, dialect) if csv else _parquet_header(path)


def read_table_header(database: Database) -> list[ColumnHeader]:
    """The columns of a table or a query. No row is read."""
    from privada.parties.sources.databases import ENGINES

    with ENGINES[database.engine](database) as session:
        declared = session.declared(database.select(()))
    return [ColumnHeader(name, None if kind is None else _kind(kind)) for name, kind in declared.items()]


def _csv_header(path: Path, dialect: Dialect | None) -> list[ColumnHeader]:
    import pyarrow as pa

    from privada.parties.csv_files import CsvFile, Dialect

    file = CsvFile(path.name, lambda: pa.OSFile(str(path)), dialect or Dialect(), ())
    try:
        return [ColumnHeader(name) for name in file.names()]
    except SchemaError as error:
        raise InputError(f"--data: {error} Say how it is written: --encoding, --delimiter.") from None


def _parquet_header(path: Path) -> list[ColumnHeader]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        fields: Any = ds.dataset(path, format="parquet").schema
    except (pa.ArrowInvalid, OSError) as error:
        kind = type(error).__name__
        raise InputError(f"--data: {path.name} is neither CSV nor Parquet ({kind}).") from None
    return [ColumnHeader(field.name, _kind(field.type)) for field in fields]


def _kind(declared: Any) -> str:
    """The kind that an Arrow type suggests; what is no number, date or boolean is a category."""
    from pyarrow import types

    for kind, holds in {
        "integer": (types.is_integer,),
        "number": (types.is_floating, types.is_decimal),
        "date": (types.is_date, types.is_timestamp),
        "boolean": (types.is_boolean,),
    }.items():
        if any(each(declared) for each in holds):
            return kind
    return "category"


__all__ = ["ColumnHeader", "read_header", "read_table_header"]
