"""Columns of frames and Arrow tables as arrays: the same way for an owner's rows and for a learner's."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError, SchemaError, SourceOutageError


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """A column as its distinct values and, for each row, the place of its value among them.

    Place -1 is a missing value. Distinct values that no row has are allowed.
    """

    distinct: npt.NDArray[Any]
    places: npt.NDArray[np.int64]

    def __repr__(self) -> str:
        return "<Coded>"

    def __len__(self) -> int:
        return len(self.places)


Table = dict[str, Any]  # columns as arrays; some may be `Coded`


def read_frame(frame: Any, names: tuple[str, ...], *, coded: Container[str]) -> Table:
    """Some columns of a frame, all rows at once; those of ``coded`` by their distinct values."""
    if isinstance(frame, Mapping):
        check_names(list(frame), names)
        columns = {name: np.asarray(frame[name]) for name in names}
        if any(array.ndim != 1 for array in columns.values()) or len(set(map(len, columns.values()))) > 1:
            raise SchemaError("Expected columns of one length.")
        return columns
    if isinstance(frame, (np.ndarray, list, tuple)):
        array = np.asarray(frame)
        if array.ndim != 2 or array.shape[1] != len(names):
            raise SchemaError(
                f"Expected rows of {len(names)} columns, got an array of shape (rows, {array.shape[1:]})."
            )
        return {name: array[:, place] for place, name in enumerate(names)}
    import pyarrow as pa

    table = as_arrow(frame)
    check_names(table.schema.names, names)
    arrays: Table = {}
    for name in names:
        values = table[name].combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
        arrays[name] = read_column(name, values, coded=name in coded)
    return arrays


def check_names(names: Iterable[str], needed: Iterable[str]) -> None:
    """Refuse a table that lacks a column or has two of one name."""
    present = list(names)
    doubled = sorted({name for name in present if present.count(name) > 1})
    absent = [name for name in needed if name not in present]
    if doubled:
        raise SchemaError(f"The table has columns of one name: {', '.join(doubled)}.")
    if absent:
        raise SchemaError(f"The table lacks columns of the schema: {', '.join(absent)}.")


def as_arrow(data: Any) -> Any:
    """A pandas or polars frame, a record batch, a reader or any Arrow stream as an Arrow table.

    Data that can be read only once, as a reader, are read into memory here.
    """
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "iloc"):
        if not data.columns.is_unique:
            raise SchemaError("The table has columns of one name.")
        try:
            return pa.Table.from_pandas(data, preserve_index=False)
        except pa.ArrowException as error:  # its message shows a value
            raise SchemaError(f"The frame has a column of mixed types: {type(error).__name__}.") from None
    if not hasattr(data, "__arrow_c_stream__"):
        raise SchemaError(
            "Expected an array, a pandas or polars frame, an Arrow table, dataset or stream, or a path, "
            f"got {type(data).__name__}."
        )
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, OSError, ValueError) as error:  # its message may show a value
        raise SchemaError(f"The stream cannot be read to its end: {type(error).__name__}.") from None


def make_arrow(columns: Mapping[str, npt.NDArray[Any]]) -> Any:
    """An Arrow table of columns; NaN, None and not-a-time are missing."""
    import pyarrow as pa

    try:
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    except pa.ArrowException:
        raise InputError("A category's values are of several types and fit no column.") from None


def read_batch(batch: Any, *, coded: Container[str]) -> Table:
    """Columns of one Arrow batch; those of ``coded`` by their distinct values."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return {name: read_column(name, column, coded=name in coded) for name, column in columns}


def read_column(name: str, column: Any, *, coded: bool) -> npt.NDArray[Any] | Coded:
    """One Arrow array, by its distinct values if ``coded``."""
    import pyarrow as pa

    try:
        return _read_coded(column) if coded else read_values(column)
    except (pa.ArrowException, ValueError, IndexError) as error:  # its message shows a value
        raise SchemaError(
            f"Column {name!r} cannot be read, it may be damaged: {type(error).__name__}."
        ) from None


def read_values(column: Any) -> npt.NDArray[Any]:
    """The values of an Arrow array."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.to_numpy(zero_copy_only=False)


def _read_coded(column: Any) -> npt.NDArray[Any] | Coded:
    """Distinct values and places. Arrow hashes the values: only distinct ones become Python objects."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:  # of a type that is no category's
            return read_values(column)
    places = column.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    distinct = read_values(column.dictionary)
    # A damaged file may hold places beyond its dictionary, which Arrow does not check.
    if len(places) and (places.min() < -1 or places.max() >= len(distinct)):
        raise IndexError
    return Coded(distinct, places)


def raise_if_out_of_reach(error: BaseException, name: str) -> None:
    """Raise `SourceOutageError` if the operating system could not open or read a file.

    Rows that are out of reach are told from rows that are wrong by the cause of an error, not by its text.
    An error of the system has a number, as ``EIO``, ``ESTALE`` or ``EACCES``. What a reader raises because of
    the content of a file has none, even where it is an ``OSError``.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise SourceOutageError(f"{name} is out of reach: {error.strerror}.", part="files") from None


__all__ = [
    "Coded", "Table", "as_arrow", "check_names", "make_arrow", "raise_if_out_of_reach", "read_batch",
    "read_column", "read_frame", "read_values",
]  # fmt: skip
