"""Columns of frames and Arrow tables as arrays: one way for an owner's rows and for a learner's."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError, SchemaError
from privada.parties.columns import Coded

Table = dict[str, Any]  # columns as arrays; those of categories may be `Coded`


def read_frame(frame: Any, names: tuple[str, ...], *, categories: Container[str]) -> Table:
    """Some columns of a frame, all rows at once."""
    if isinstance(frame, Mapping):
        return _read_mapping(frame, names)
    if isinstance(frame, (np.ndarray, list, tuple)):
        return _read_matrix(frame, names)
    table = as_arrow(frame)
    check_names(table.schema.names, names)
    columns = table.select(list(names)).combine_chunks()
    return {name: read_column(name, _whole(columns[name]), coded=name in categories) for name in names}


def _whole(column: Any) -> Any:
    """A chunked column as one array."""
    import pyarrow as pa

    combined = column.combine_chunks()
    if not isinstance(combined, pa.ChunkedArray):
        return combined
    return combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)


def _read_mapping(columns: Mapping[str, Any], names: tuple[str, ...]) -> Table:
    check_names(list(columns), names)
    found = {name: np.asarray(columns[name]) for name in names}
    if len({array.shape for array in found.values()}) > 1 or any(a.ndim != 1 for a in found.values()):
        raise SchemaError("Expected columns of one length.")
    return found


def _read_matrix(rows: Any, names: tuple[str, ...]) -> Table:
    array = np.asarray(rows)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise SchemaError(
            f"Expected rows of {len(names)} columns, got an array of shape (rows, {array.shape[1:]})."
        )
    return {name: array[:, place] for place, name in enumerate(names)}


def check_names(found: Iterable[str], needed: Iterable[str]) -> None:
    """Refuse a table that lacks a column or has two of one name."""
    names = list(found)
    doubled = sorted({name for name in names if names.count(name) > 1})
    absent = [name for name in needed if name not in names]
    if doubled:
        raise SchemaError(f"The table has columns of one name: {', '.join(doubled)}.")
    if absent:
        raise SchemaError(f"The table lacks columns of the schema: {', '.join(absent)}.")


def as_arrow(data: Any) -> Any:
    """A pandas or polars frame, a record batch, a reader or any Arrow stream as an Arrow table.

    What can be read only once, as a reader, is read into memory here.
    """
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if hasattr(data, "iloc"):
        return _from_pandas(data)
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if not hasattr(data, "__arrow_c_stream__"):
        raise SchemaError(
            "Expected an array, a pandas or polars frame, an Arrow table, dataset or stream, or a path, "
            f"got {type(data).__name__}."
        )
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, OSError, ValueError) as error:  # its message may show a value
        raise SchemaError(f"The stream cannot be read to its end: {type(error).__name__}.") from None


def _from_pandas(frame: Any) -> Any:
    import pyarrow as pa

    if not frame.columns.is_unique:
        raise SchemaError("The table has columns of one name.")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException as error:  # its message shows a value
        raise SchemaError(f"The frame has a column of mixed types: {type(error).__name__}.") from None


def make_arrow(columns: Mapping[str, npt.NDArray[Any]]) -> Any:
    """An Arrow table of columns; NaN, None and not-a-time are missing."""
    import pyarrow as pa

    try:
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    except pa.ArrowException:
        raise InputError("A category's values are of several types and fit no column.") from None


def read_batch(batch: Any, *, categories: Container[str]) -> Table:
    """Columns of one Arrow batch."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return {name: read_column(name, column, coded=name in categories) for name, column in columns}


def read_column(name: str, column: Any, *, coded: bool) -> npt.NDArray[Any] | Coded:
    """One Arrow array; that of a category by its distinct values."""
    import pyarrow as pa

    try:
        return _coded(column) if coded else read_values(column)
    except (pa.ArrowException, ValueError, IndexError) as error:  # its message shows a value
        raise SchemaError(
            f"Column {name!r} cannot be read, it may be damaged: {type(error).__name__}."
        ) from None


def read_values(column: Any) -> npt.NDArray[Any]:
    """The values of an Arrow array."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _coded(column: Any) -> npt.NDArray[Any] | Coded:
    """Distinct values and places, found by hashing: only distinct values become Python objects."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:  # of a type that is no category's
            return read_values(column)
    places = column.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    distinct = read_values(column.dictionary)
    if len(places) and (places.min() < -1 or places.max() >= len(distinct)):
        raise IndexError
    return Coded(distinct, places)


__all__ = [
    "Table",
    "as_arrow",
    "check_names",
    "make_arrow",
    "read_batch",
    "read_column",
    "read_frame",
    "read_values",
]
