"""Where rows come from: arrays, frames, Arrow tables, Parquet and CSV, all read in tables of columns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError
from privada.parties.compute.dividing import divide_dataset
from privada.parties.schema import Column, Date, Number, Schema
from privada.parties.tables import Table, as_arrow, check_names, read_batch, read_values

COLUMN_ROWS = 65_536  # of one column, read at a time


class Source(Protocol):
    """Rows that can be read again and again, in the same order."""

    def tables(self, size: int) -> Iterator[Table]:
        """Columns of at most ``size`` rows at a time."""
        ...

    def column(self, name: str) -> npt.NDArray[Any]:
        """One whole column, in memory."""
        ...

    def parts(self) -> list[Source]:
        """The same rows in the same order, in parts that can be read at once; itself if there are none."""
        ...


def open_source(data: Any, schema: Schema, y: Any, person: Any) -> Source:
    """Rows from an array, a frame, an Arrow table or a path; ``y`` and ``person`` accompany an array."""
    if isinstance(data, (str, os.PathLike)):
        return _Arrow(_scan(Path(data), schema), schema)
    if isinstance(data, np.ndarray) or (isinstance(data, (list, tuple)) and y is None) or y is not None:
        return _Arrays(data, schema, y, person)
    return _Arrow(_as_dataset(data), schema)


class _Arrays:
    """A NumPy matrix with optional label and person."""

    def __init__(self, data: Any, schema: Schema, y: Any, person: Any) -> None:
        X = np.asarray(data)
        if X.ndim != 2 or X.shape[1] != len(schema.columns):
            wanted = len(schema.columns)
            raise SchemaError(
                f"Expected rows of {wanted} columns, got an array of shape (rows, {X.shape[1:]})."
            )
        self._columns = {column.name: X[:, i] for i, column in enumerate(schema.columns)}
        for name, values, what in _extras(schema, y, person):
            if values is None:
                raise SchemaError(f"The schema has a {what}; pass it beside the array.")
            column = _exactly(values) if what == "person" else np.asarray(values)
            if column.ndim != 1:
                shape = f"(rows, {', '.join(map(str, column.shape[1:]))})" if column.ndim else "()"
                raise SchemaError(f"Expected one {what} for each row, got an array of shape {shape}.")
            if len(column) != len(X):
                raise SchemaError(f"Expected one {what} for each row; the lengths differ.")
            self._columns[name] = column
        self._height = len(X)

    def tables(self, size: int) -> Iterator[Table]:
        for start in range(0, self._height, size):
            yield {name: values[start : start + size] for name, values in self._columns.items()}

    def column(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    def parts(self) -> list[Source]:
        return [self]


class _Arrow:
    """Anything that Arrow can scan in batches."""

    def __init__(self, dataset: Any, schema: Schema) -> None:
        check_names(dataset.schema.names, schema.needed)
        self._dataset, self._names = dataset, list(schema.needed)
        self._categories = schema.categories

    def tables(self, size: int) -> Iterator[Table]:
        for batch in self._batches(self._names, size):
            yield read_batch(batch, categories=self._categories)

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
        except (pa.ArrowException, OSError, ValueError) as error:  # its message shows a value
            raise SchemaError(
                f"The table cannot be read to its end, it may be damaged: {type(error).__name__}."
            ) from None

    def column(self, name: str) -> npt.NDArray[Any]:
        parts = [read_values(batch.column(0)) for batch in self._batches([name], COLUMN_ROWS)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def parts(self) -> list[Source]:
        return [self._of(dataset) for dataset in divide_dataset(self._dataset)]

    def _of(self, dataset: Any) -> Source:
        part = copy(self)
        part._dataset = dataset
        return part


def _described(schema: Schema) -> list[Column]:
    return [*schema.columns, *([schema.label] if schema.label else [])]


def _extras(schema: Schema, y: Any, person: Any) -> list[tuple[str, Any, str]]:
    label = [(schema.label.name, y, "label")] if schema.label else []
    return label + ([(schema.person_id, person, "person")] if schema.person_id else [])


def _scan(path: Path, schema: Schema) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not (path.is_file() or path.is_dir()):
        raise SchemaError(f"There is no data at {path.name}, or it is neither a plain file nor a folder.")
    try:
        form = "csv" if path.suffix.lower() == ".csv" else "parquet"
        reader = _typed_csv(schema) if form == "csv" else _streaming_parquet(schema)
        return ds.dataset(path, format=reader, exclude_invalid_files=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = (
            "it is empty, lacks a header, or names a column twice" if form == "csv" else type(error).__name__
        )
        raise SchemaError(f"{path.name} cannot be read as {form}: {why}.") from None


def _typed_csv(schema: Schema) -> Any:
    """CSV whose columns have the schema's types: no type is guessed from rows; an empty field is missing."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow import csv

    types = {column.name: _arrow_type(column) for column in _described(schema)}
    if schema.person_id:
        types[schema.person_id] = pa.string()
    options = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    return ds.CsvFileFormat(convert_options=options)


def _arrow_type(column: Column) -> Any:
    """The type that holds a column's public values."""
    import pyarrow as pa

    if isinstance(column, Number):
        return pa.float64()
    if isinstance(column, Date):
        return pa.timestamp("us")
    kinds = {type(value) for value in column.values}
    simple = {frozenset({str}): pa.string(), frozenset({bool}): pa.bool_(), frozenset({int}): pa.int64()}
    return simple.get(frozenset(kinds), pa.float64())


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


def _exactly(values: Any) -> npt.NDArray[Any]:
    """An array of what a list holds: without a common type, for which 1 and "1" would be one person."""
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values)


__all__ = ["Source", "Table", "open_source"]
