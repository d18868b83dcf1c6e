"""Open rows wherever they are: arrays, frames, Arrow data, files, object stores and databases."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privada.exceptions import SchemaError, SourceError
from privada.parties.csv.dialect import Dialect, is_csv
from privada.parties.csv.reading import CsvFile
from privada.parties.schema import Schema
from privada.parties.sources.arrays import ArraySource
from privada.parties.sources.arrow import ArrowSource
from privada.parties.sources.csv_source import CsvSource
from privada.parties.sources.dask_frames import Collection, is_collection
from privada.parties.sources.databases import Database, DatabaseSource
from privada.parties.sources.files import identify, is_settled
from privada.parties.sources.lazy_frames import LazyFrameSource
from privada.parties.sources.source import Source, WatchedSource
from privada.parties.sources.stores import StoredFiles
from privada.parties.tables import as_arrow


@dataclass(frozen=True)
class StoredRows:
    """Rows in a file, a folder or an object store, and how their CSV is written.

    Parameters
    ----------
    place : str or path
        A path, or a URL such as ``s3://bucket/rows.parquet``.
    dialect : Dialect, optional
        Makes the file CSV whatever its name. By default it is CSV by its name and of the default dialect.
    """

    place: str | os.PathLike[str]
    dialect: Dialect | None = None

    @property
    def csv(self) -> bool:
        """Whether it is CSV."""
        return self.dialect is not None or is_csv(os.fspath(self.place))


def open_source(data: Any, schema: Schema, y: Any, person: Any) -> Source:
    """Rows from an array, a frame, Arrow data, a path, a URL or a database; the rest accompanies an array."""
    if isinstance(data, (str, os.PathLike)):
        data = StoredRows(data)
    if isinstance(data, StoredRows):
        return _open_stored(data, schema) if "://" in os.fspath(data.place) else _open_local(data, schema)
    if isinstance(data, Database):
        return DatabaseSource(data, schema)
    if is_collection(data):
        return Collection(data, schema)
    if isinstance(data, np.ndarray) or (isinstance(data, (list, tuple)) and y is None) or y is not None:
        return ArraySource(data, schema, y, person)
    if hasattr(data, "collect_schema") and hasattr(data, "collect_batches"):
        return LazyFrameSource(data, schema)
    return ArrowSource(_as_dataset(data), schema)


def _open_local(rows: StoredRows, schema: Schema) -> Source:
    path = Path(rows.place)
    if not (path.is_file() or path.is_dir()):
        raise SourceError(f"There is no data at {path.name}, or it is neither a plain file nor a folder.")
    source = _open_csv(rows, path, schema) if rows.csv else ArrowSource(_scan(path, schema), schema)
    return WatchedSource(source, lambda: identify(path), lambda: is_settled(path))


def _open_csv(rows: StoredRows, path: Path, schema: Schema) -> Source:
    import pyarrow as pa

    if path.is_dir():
        raise SourceError(f"{path.name} is a folder; expected one CSV file.")
    return _csv(path.name, lambda: pa.OSFile(str(path)), rows, schema)


def _csv(name: str, opened: Callable[[], Any], rows: StoredRows, schema: Schema) -> Source:
    file = CsvFile(name, opened, rows.dialect or Dialect(), schema.described)
    return CsvSource(file, schema)


def _open_stored(rows: StoredRows, schema: Schema) -> Source:
    stored = StoredFiles(os.fspath(rows.place))
    paths = stored.paths()
    if not rows.csv:
        return WatchedSource(ArrowSource(_scan(paths, schema, stored), schema), stored.identity)
    if len(paths) != 1:
        raise SourceError(f"{stored.name} is a folder; expected one CSV file.")
    source = _csv(stored.name, lambda: stored.open(paths[0]), rows, schema)
    return WatchedSource(source, stored.identity)


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
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"{name} cannot be read as parquet: {type(error).__name__}.") from None


def _streaming_parquet(schema: Schema) -> Any:
    """Parquet without the buffer ahead of the reader, which grows to more than the file.

    Text of categories is read as the dictionary that it mostly is in the file.
    """
    import pyarrow.dataset as ds

    options = ds.ParquetFragmentScanOptions(pre_buffer=False)
    return ds.ParquetFileFormat(dictionary_columns=schema.categories, default_fragment_scan_options=options)


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
