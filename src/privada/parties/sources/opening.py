"""Open rows wherever they are: arrays, frames, Arrow data, files, object stores and databases."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privada.exceptions import SchemaError, SourceError
from privada.parties.csv_files import CsvFile, Dialect, is_csv
from privada.parties.schema import Schema
from privada.parties.sources.arrays import ArraySource
from privada.parties.sources.arrow import ArrowSource
from privada.parties.sources.csv_source import CsvFiles, CsvSource
from privada.parties.sources.dask_frames import Collection, is_collection
from privada.parties.sources.databases import Database, DatabaseSource
from privada.parties.sources.files import check_readable, data_files, identify, is_pattern, is_settled
from privada.parties.sources.lazy_frames import LazyFrameSource
from privada.parties.sources.source import Source, WatchedSource
from privada.parties.sources.stores import StoredFiles
from privada.parties.sources.vintage_source import VintageSource, check_dividable, with_dates
from privada.parties.tables import as_arrow, raise_if_out_of_reach
from privada.privacy.accounting.filters import Vintage


@dataclass(frozen=True)
class StoredRows:
    """Rows in a file, a folder or an object store, and how their CSV is written.

    Parameters
    ----------
    place : str or path
        A path, or a URL such as ``s3://bucket/rows.parquet``. A folder of Parquet files or of CSV files is
        one table; so are CSV files whose names are like ``exports/*.csv``.
    dialect : Dialect, optional
        Makes the file CSV whatever its name. By default it is CSV by its name and of the default dialect.
    """

    place: str | os.PathLike[str]
    dialect: Dialect | None = None

    @property
    def csv(self) -> bool:
        """Whether it is CSV."""
        return self.dialect is not None or is_csv(os.fspath(self.place))


def open_source(data: Any, schema: Schema, y: Any, person: Any, vintage: Vintage | None = None) -> Source:
    """Rows from an array, a frame, Arrow data, a path, a URL, a database or a source of one's own.

    ``y`` and ``person`` accompany an array. Of a vintage, only its rows are read.
    """
    if vintage is None:
        return _open(data, schema, y, person)
    check_dividable(data, y, person)
    return VintageSource(_open(data, with_dates(schema, vintage), None, None), vintage, schema)


def _open(data: Any, schema: Schema, y: Any, person: Any) -> Source:
    if isinstance(data, Source):
        if y is not None or person is not None:
            raise SchemaError("A source has labels and persons among its columns; pass none beside it.")
        return data
    if isinstance(data, (str, os.PathLike)):
        data = StoredRows(data)
    if isinstance(data, StoredRows):
        return _open_stored(data, schema) if "://" in os.fspath(data.place) else _open_local(data, schema)
    if isinstance(data, Database):
        return DatabaseSource(data, schema)
    return _open_memory(data, schema, y, person)


def _open_memory(data: Any, schema: Schema, y: Any, person: Any) -> Source:
    """Rows, or plans of them, that are objects of this process."""
    if is_collection(data):
        return Collection(data, schema)
    if isinstance(data, np.ndarray) or (isinstance(data, (list, tuple)) and y is None) or y is not None:
        return ArraySource(data, schema, y, person)
    if hasattr(data, "collect_schema") and hasattr(data, "collect_batches"):
        return LazyFrameSource(data, schema)
    return ArrowSource(_as_dataset(data), schema)


def _open_local(rows: StoredRows, schema: Schema) -> Source:
    path = Path(rows.place)
    if not (path.is_file() or path.is_dir() or is_pattern(path)):
        raise SourceError(f"There is no data at {path.name}, or it is neither a plain file nor a folder.")
    files = data_files(path)
    if is_pattern(path) and not files:
        raise SourceError(f"No file has a name like {path.name}.")
    csv = rows.csv or (path.is_dir() and bool(files) and all(is_csv(file.name) for file in files))
    source = _open_csv(files, rows, schema) if csv else ArrowSource(_scan(path, schema), schema)
    return WatchedSource(
        source,
        lambda: identify(path),
        lambda: is_settled(path),
        reach=lambda: check_readable(files),
        reopen=lambda: _open_local(rows, schema),
    )


def _open_csv(files: list[Path], rows: StoredRows, schema: Schema) -> Source:
    import pyarrow as pa

    if not files:
        raise SourceError(f"{Path(rows.place).name} has no files.")
    opened = {file.name: partial(pa.OSFile, str(file)) for file in files}
    if len(opened) < len(files):
        raise SourceError(f"{Path(rows.place).name} has files of one name; expected each name once.")
    return _csv(opened, rows, schema, travels=True)


def _csv(
    opened: Mapping[str, Callable[[], Any]], rows: StoredRows, schema: Schema, *, travels: bool = False
) -> Source:
    """One file, or several as one table; an error in one of several says in which."""
    dialect, sources = rows.dialect or Dialect(), []
    for name, stream in opened.items():
        try:
            sources.append(
                CsvSource(CsvFile(name, stream, dialect, schema.described), schema, travels=travels)
            )
        except SourceError:
            raise
        except SchemaError as error:
            raise SchemaError(str(error) if len(opened) == 1 else f"{name}: {error}") from None
    return sources[0] if len(sources) == 1 else CsvFiles(sources)


def _open_stored(rows: StoredRows, schema: Schema) -> Source:
    stored = StoredFiles(os.fspath(rows.place))
    paths = stored.paths()
    if not rows.csv:
        source: Source = ArrowSource(_scan(paths, schema, stored), schema)
    else:
        source = _csv({path: partial(stored.open, path) for path in paths}, rows, schema)
    return WatchedSource(source, stored.identity, reopen=lambda: _open_stored(rows, schema))


def _scan(path: Path | list[str], schema: Schema, stored: StoredFiles | None = None) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    name = path.name if isinstance(path, Path) else stored and stored.name
    try:
        return ds.dataset(
            path,
            format=_streaming_parquet(schema),
            filesystem=None if stored is None else stored.filesystem(),
            exclude_invalid_files=False,
        )
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise_if_out_of_reach(error, str(name))
        raise SourceError(f"{name} cannot be read as parquet: {type(error).__name__}.") from None


def _streaming_parquet(schema: Schema) -> Any:
    """Parquet without the buffer ahead of the reader, which grows to more than the file.

    Text of categories is read as the dictionary that it mostly is in the file.
    """
    import pyarrow.dataset as ds

    options = ds.ParquetFragmentScanOptions(pre_buffer=False)
    return ds.ParquetFileFormat(dictionary_columns=schema.coded, default_fragment_scan_options=options)


def _as_dataset(data: Any) -> Any:
    import pyarrow.dataset as ds

    if isinstance(data, ds.Dataset):
        return data
    table = as_arrow(data)
    names = table.schema.names
    if len(set(names)) != len(names):
        raise SchemaError("The table has columns of one name.")
    return ds.dataset(table)


__all__ = ["StoredRows", "open_source"]
