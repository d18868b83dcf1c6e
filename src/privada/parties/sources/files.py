"""Rows in Parquet and CSV files, how they are divided, and what tells the files of two moments apart."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError, SourceError, SourceOutageError
from privada.parties.csv_files import CsvFile, Dialect, is_csv
from privada.parties.schema import Schema
from privada.parties.sources.source import COLUMN_ROWS, Source, WatchedSource, join_values
from privada.parties.tables import Table, check_names, raise_if_out_of_reach, read_batch, read_values

TICK_NS = 100_000_000  # far more than any file system's clock needs for a tick
BUFFER = 1 << 20  # bytes of a column that are read at a time
PART_ROWS = 250_000  # of a part at least, where row groups are smaller


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

    @property
    def scheme(self) -> str:
        """The scheme of a URL; empty for a path."""
        scheme, mark, _ = os.fspath(self.place).partition("://")
        return scheme if mark else ""


def data_files(path: Path) -> list[Path]:
    """The files of rows that a path names: itself, those of a folder, or those of a pattern as ``*.csv``.

    Names of files and folders that begin with a dot or an underscore are marks of other programs.
    """
    files = []
    for file in _list_files(path):
        inside = file.relative_to(path).parts if path.is_dir() else (file.name,) if is_pattern(path) else ()
        if file.is_file() and not any(part.startswith((".", "_")) for part in inside):
            files.append(file)
    return files


def is_pattern(path: Path) -> bool:
    """Whether the last part of a path stands for several names."""
    return any(mark in path.name for mark in "*?[") and not path.exists()


def _list_files(path: Path) -> list[Path]:
    """All files that a path names, those of other programs as well."""
    if is_pattern(path):
        return sorted(path.parent.glob(path.name))
    if not path.is_dir():
        return [path]
    return sorted(Path(folder) / name for folder, _, names in os.walk(path) for name in names)


def identify(path: Path) -> str:
    """What tells a file, or all files of a folder, from those of another moment."""
    return identify_files(_list_files(path))


def identify_files(files: Iterable[Path]) -> str:
    """What tells some files from those of another moment; one that does not exist is left out.

    Names, sizes, inodes, and times of the last change of content and of status: the last one cannot be set
    by hand, so a file that is exchanged for one of the same size and time is noticed, too.
    """
    lines = []
    for file in files:
        try:
            status = file.stat()
        except FileNotFoundError:
            continue
        except OSError as fault:
            raise SourceOutageError(f"{file.name} is out of reach: {fault.strerror}.", part="files") from None
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        lines.append(f"{file} {status.st_size} {times} {status.st_ino} {status.st_dev}")
    return "\n".join(lines)


def check_readable(files: Iterable[Path]) -> None:
    """Raise `SourceOutageError` if a file cannot be opened; no row is read."""
    for file in files:
        try:
            os.close(os.open(file, os.O_RDONLY))
        except OSError as fault:
            raise SourceOutageError(f"{file.name} is out of reach: {fault.strerror}.", part="files") from None


def are_settled(files: Iterable[Path]) -> bool:
    """Whether no file changed just now: two changes within one tick of the clock would look like one."""
    latest = max((file.stat().st_ctime_ns for file in files if file.exists()), default=0)
    return time.time_ns() - latest > TICK_NS


@dataclass(frozen=True, eq=False, repr=False)
class Piece:
    """The address of some rows: a Parquet file and row groups of it. It is opened when it is read.

    It is read by `ParquetFile.iter_batches`, not as a fragment of a data set. Workers that read pickled
    fragments have crashed. The cause is not known: with pyarrow 26 it could not be repeated, neither on
    workers nor by giving up readings midway. Users report hangs and ``std::terminate`` in processes that
    leave ``Fragment.to_batches`` before its end, but not with ``iter_batches`` (apache/arrow 45214,
    huggingface/huggingface_hub 4178).
    """

    path: str
    filesystem: Any
    schema: Any
    groups: tuple[int, ...]
    coded: tuple[str, ...]

    def __repr__(self) -> str:
        return "<Piece>"

    def to_batches(self, *, columns: list[str], batch_size: int, **_: Any) -> Iterator[Any]:
        """Arrow batches in the order of the rows, as those of a data set; read by the thread that asks."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        options = {"read_dictionary": list(self.coded), "pre_buffer": False, "buffer_size": BUFFER}
        try:
            opened = pq.ParquetFile(self.path, filesystem=self.filesystem, **options)
        except KeyError:  # a column that is no leaf of the file's tree
            names = ", ".join(self.coded)
            raise SourceError(
                f"One of the files lacks a column of {names}, or has lists or structures in it."
            ) from None
        with opened as file:
            if absent := set(columns) - set(file.schema_arrow.names):
                raise SourceError(f"One of the files lacks columns: {', '.join(sorted(absent))}.")
            for batch in file.iter_batches(
                batch_size=batch_size, row_groups=list(self.groups), columns=columns, use_threads=False
            ):
                # The types of the first file; coded columns are read by their values whatever their type.
                arrays = [
                    array if pa.types.is_dictionary(array.type) else array.cast(self.schema.field(name).type)
                    for name, array in zip(columns, batch.select(columns).columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=columns)


def divide_dataset(dataset: Any) -> list[Any]:
    """Pieces of the same rows in the same order. Rows that are not in Parquet files stay as they are.

    Nothing but the files' footers is read.
    """
    import pyarrow as pa

    if not _is_parquet(dataset):
        return [dataset]
    coded = tuple(sorted(dataset.format.read_options.dictionary_columns))
    pieces = []
    try:
        for fragment in dataset.get_fragments():
            groups, rows = list[int](), 0
            last = len(fragment.row_groups) - 1
            for number, group in enumerate(fragment.row_groups):
                groups.append(group.id)
                rows += group.num_rows
                if rows >= PART_ROWS or number == last:  # small row groups make a part together
                    pieces.append(
                        Piece(fragment.path, dataset.filesystem, dataset.schema, tuple(groups), coded)
                    )
                    groups, rows = [], 0
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise_if_out_of_reach(error, "The table")
        raise SourceError(f"The table cannot be read, it may be damaged: {type(error).__name__}.") from None
    return pieces or [dataset]


def _is_parquet(dataset: Any) -> bool:
    import pyarrow.dataset as ds

    return isinstance(dataset, ds.FileSystemDataset) and isinstance(dataset.format, ds.ParquetFileFormat)


class ArrowSource(Source):
    """Anything that Arrow can scan in batches: Parquet files, tables, data sets."""

    def __init__(self, dataset: Any, schema: Schema) -> None:
        check_names(dataset.schema.names, schema.needed)
        self._dataset, self._names, self._coded = dataset, list(schema.needed), schema.coded

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for batch in self._batches(list(names or self._names), size):
            yield read_batch(batch, coded=self._coded)

    def column(self, name: str) -> npt.NDArray[Any]:
        return join_values(read_values(batch.column(0)) for batch in self._batches([name], COLUMN_ROWS))

    def _batches(self, names: list[str], size: int) -> Iterator[Any]:
        import pyarrow as pa

        try:
            for batch in self._dataset.to_batches(
                columns=names,
                batch_size=size,
                use_threads=False,
                batch_readahead=1,  # rows that wait to be looked at fill the memory
                fragment_readahead=1,
            ):
                if batch.num_rows:
                    yield batch
        except SourceError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:  # its message shows a value
            raise_if_out_of_reach(error, "The table")
            raise SourceError(
                f"The table cannot be read to its end, it may be damaged: {type(error).__name__}."
            ) from None

    def parts(self) -> list[Source]:
        parts: list[Source] = []
        for dataset in divide_dataset(self._dataset):
            part = copy(self)
            part._dataset = dataset
            parts.append(part)
        return parts

    @property
    def travels(self) -> bool:
        """Parquet files do, if another process can open their file system; what is in memory stays there."""
        if not _is_parquet(self._dataset):
            return False
        try:
            pickle.dumps(self._dataset.filesystem)
        except Exception:  # whatever a file system of another library raises
            return False
        return True

    @property
    def is_held(self) -> bool:
        """Tables and frames are; files are not."""
        from pyarrow.dataset import InMemoryDataset

        return isinstance(self._dataset, InMemoryDataset)

    def __getstate__(self) -> dict[str, Any]:
        # Dask may move a partition of a data frame from one worker of the owner's to another. Arrow cannot
        # pickle a data set in memory, and Dask would try for ever.
        return vars(self) | ({"_dataset": self._dataset.to_table()} if self.is_held else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.dataset as ds

        vars(self).update(state)
        if isinstance(self._dataset, pa.Table):
            self._dataset = ds.dataset(self._dataset)


class CsvSource(Source):
    """Rows of one CSV file, typed by the schema: no type is guessed from rows."""

    def __init__(self, file: CsvFile, schema: Schema, *, travels: bool = False) -> None:
        check_names(file.names(), schema.needed)
        self._file, self._schema, self._travels = file, schema, travels

    @property
    def csv_files(self) -> list[CsvFile]:
        return [self._file]

    @property
    def travels(self) -> bool:
        """If it is a file that another process finds by its path."""
        return self._travels

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for batch in self._file.batches(names or self._schema.needed, size):
            yield read_batch(batch, coded=self._schema.coded)

    def column(self, name: str) -> npt.NDArray[Any]:
        return join_values(read_values(batch.column(0)) for batch in self._file.batches((name,), COLUMN_ROWS))


class CsvFiles(Source):
    """Rows of several CSV files, one after another in the order of their names.

    Each has its own header, if any, and its columns in whatever order. A file is read by one thread or one
    worker: a quoted field may have line ends, so no other place in it is known to begin a record.
    """

    def __init__(self, sources: Sequence[CsvSource]) -> None:
        self._sources = list(sources)

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        for source in self._sources:
            yield from source.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([source.column(name) for source in self._sources])

    def parts(self) -> list[Source]:
        return list(self._sources)

    @property
    def csv_files(self) -> list[CsvFile]:
        return [file for source in self._sources for file in source.csv_files]

    @property
    def travels(self) -> bool:
        """If all files do."""
        return all(source.travels for source in self._sources)


def open_csv(
    streams: Mapping[str, Callable[[], Any]],
    dialect: Dialect | None,
    schema: Schema,
    *,
    travels: bool = False,
) -> Source:
    """One CSV file, or several as one table, by name; an error in one of several says in which."""
    sources = []
    for name, stream in streams.items():
        try:
            file = CsvFile(name, stream, dialect or Dialect(), schema.described)
            sources.append(CsvSource(file, schema, travels=travels))
        except SourceError:
            raise
        except SchemaError as error:
            raise SchemaError(str(error) if len(streams) == 1 else f"{name}: {error}") from None
    return sources[0] if len(sources) == 1 else CsvFiles(sources)


def open_parquet(paths: Path | list[str], name: str, schema: Schema, filesystem: Any = None) -> Source:
    """A Parquet file, or a folder of them as one table."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    # Without the buffer ahead of the reader, which grows to more than the file. Text of coded columns is read
    # as the dictionary that it mostly is in the file.
    options = ds.ParquetFragmentScanOptions(pre_buffer=False)
    parquet = ds.ParquetFileFormat(dictionary_columns=schema.coded, default_fragment_scan_options=options)
    try:
        dataset = ds.dataset(paths, format=parquet, filesystem=filesystem, exclude_invalid_files=False)
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise_if_out_of_reach(error, name)
        raise SourceError(f"{name} cannot be read as parquet: {type(error).__name__}.") from None
    return ArrowSource(dataset, schema)


class LocalFiles(WatchedSource):
    """Rows in files of this machine: a file, a folder, or the files of a pattern."""

    def __init__(self, rows: StoredRows, schema: Schema) -> None:
        path = Path(rows.place)
        if not (path.is_file() or path.is_dir() or is_pattern(path)):
            raise SourceError(f"There is no data at {path.name}, or it is neither a plain file nor a folder.")
        files = data_files(path)
        if is_pattern(path) and not files:
            raise SourceError(f"No file has a name like {path.name}.")
        csv = rows.csv or (path.is_dir() and bool(files) and all(is_csv(file.name) for file in files))
        super().__init__(
            _open_csv_files(files, rows, schema) if csv else open_parquet(path, path.name, schema),
            lambda: identify(path),
            lambda: are_settled(_list_files(path)),
            reach=lambda: check_readable(files),
            reopen=lambda: LocalFiles(rows, schema),
        )

    @classmethod
    def claims(cls, data: Any) -> bool:
        return isinstance(data, StoredRows) and not data.scheme


def _open_csv_files(files: list[Path], rows: StoredRows, schema: Schema) -> Source:
    import pyarrow as pa

    if not files:
        raise SourceError(f"{Path(rows.place).name} has no files.")
    streams = {file.name: partial(pa.OSFile, str(file)) for file in files}
    if len(streams) < len(files):
        raise SourceError(f"{Path(rows.place).name} has files of one name; expected each name once.")
    return open_csv(streams, rows.dialect, schema, travels=True)


__all__ = [
    "PART_ROWS", "ArrowSource", "CsvFiles", "CsvSource", "LocalFiles", "Piece", "StoredRows",
    "are_settled", "check_readable", "data_files", "divide_dataset", "identify", "identify_files",
    "is_pattern", "open_csv", "open_parquet",
]  # fmt: skip
