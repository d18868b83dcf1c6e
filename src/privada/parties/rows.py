"""Rows of any make, as batches of encoded features.

NumPy arrays, pandas and polars frames, Arrow tables and Parquet files or
directories all become the same `Batch`es, so owner-side statistics are sums
over batches and a Parquet set larger than memory streams through.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError
from privada.parties.schema import Category, Number, Schema, is_missing
from privada.privacy.noise import Noise

FloatArray = npt.NDArray[np.float64]
BATCH = 65_536
AT_ONCE = 2**24  # numbers that an answer makes of some rows before it adds them up: 128 MB


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Some rows: encoded features and, if the schema has one, the label (codes or numbers)."""

    X: FloatArray
    y: npt.NDArray[Any] | None

    def __repr__(self) -> str:
        return "<Batch>"

    def __len__(self) -> int:
        return len(self.X)

    def parts(self, numbers: int) -> Iterator[Batch]:
        """The same rows, so few at a time that ``numbers`` for each of them fit the memory.

        How much an answer takes is then known from the question: without this, a long question would
        fail at an owner of many rows and be answered at one of few.

        >>> batch = Batch(np.zeros((5, 1)), None)
        >>> [len(part) for part in batch.parts(AT_ONCE // 2)]
        [2, 2, 1]
        """
        size = max(1, AT_ONCE // max(1, numbers))
        for start in range(0, len(self), size):
            end = start + size
            yield Batch(self.X[start:end], None if self.y is None else self.y[start:end])


class Rows:
    """All rows of one data set under one schema.

    Parameters
    ----------
    data : array, frame, Arrow table, or path of a Parquet or CSV file or of a Parquet directory
    schema : Schema
    y, person : array, optional
        Label and person of each row, beside a NumPy array.
    noise : Noise, optional
        Needed when the unit is a person: rows beyond ``max_rows`` of one
        person are dropped at random, once, before anything else.
    """

    def __init__(
        self, data: Any, *, schema: Schema, y: Any = None, person: Any = None, noise: Noise | None = None
    ) -> None:
        self.schema = schema
        self._source = _source(data, schema, y, person)
        self._people = np.array(self._source.column(schema.person_id)) if schema.person_id else None
        self._kept = None if self._people is None else _bounded(self._people, schema, noise)

    def __repr__(self) -> str:
        return "<Rows>"

    def batches(self) -> Iterator[Batch]:
        """Encoded rows, at most `BATCH` at a time."""
        start = 0
        for table in self._source.tables():
            size = _height(table)
            batch = self._encoded(table)
            if self._kept is not None:
                self._check_people(table, start)
                keep = self._kept[start : start + size]
                batch = Batch(batch.X[keep], None if batch.y is None else batch.y[keep])
            start += size
            yield batch

    def _check_people(self, table: dict[str, npt.NDArray[Any]], start: int) -> None:
        """Which rows are kept was chosen once: of other rows, one person could have any number."""
        assert self._people is not None
        assert self.schema.person_id is not None
        people = table[self.schema.person_id]
        if not np.array_equal(people, self._people[start : start + len(people)]):
            raise SchemaError("The rows' persons have changed since they were loaded; load the owner anew.")

    def _encoded(self, table: dict[str, npt.NDArray[Any]]) -> Batch:
        X = np.hstack([column.encode(table[column.name]) for column in self.schema.columns])
        label = self.schema.label
        if label is None:
            return Batch(X, None)
        if isinstance(label, Category):
            try:
                return Batch(X, self.schema.classes.encode(table[label.name]))
            except TypeError:
                raise SchemaError(f"Column {label.name!r} mixes types or holds a missing label.") from None
        return Batch(X, label.encode(table[label.name])[:, 0])

    def check(self) -> int:
        """Read everything once: errors come now, at the owner's, before anything is charged.

        Returns the number of rows that count; it never leaves the owner.
        """
        return sum(len(batch) for batch in self.batches())


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

    def tables(self) -> Iterator[dict[str, npt.NDArray[Any]]]:
        for start in range(0, self._height, BATCH):
            yield {name: values[start : start + BATCH] for name, values in self._columns.items()}

    def column(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]


class _Arrow:
    """Anything that Arrow can scan in batches."""

    def __init__(self, dataset: Any, schema: Schema) -> None:
        names = list(dataset.schema.names)
        doubled = sorted({name for name in names if names.count(name) > 1})
        absent = [name for name in schema.needed if name not in names]
        if doubled:
            raise SchemaError(f"The table has columns of one name: {', '.join(doubled)}.")
        if absent:
            raise SchemaError(f"The table lacks columns of the schema: {', '.join(absent)}.")
        self._dataset, self._names = dataset, list(schema.needed)

    def tables(self) -> Iterator[dict[str, npt.NDArray[Any]]]:
        for batch in self._batches():
            if batch.num_rows:
                yield {name: _values(batch.column(i), name) for i, name in enumerate(batch.schema.names)}

    def _batches(self) -> Iterator[Any]:
        import pyarrow as pa

        try:
            yield from self._dataset.to_batches(
                columns=self._names,
                batch_size=BATCH,
                use_threads=False,
                batch_readahead=1,  # rows that wait to be looked at fill the memory
                fragment_readahead=1,
            )
        except (pa.ArrowException, OSError, ValueError) as error:  # its message shows a value
            raise SchemaError(
                f"The table cannot be read to its end, it may be damaged: {type(error).__name__}."
            ) from None

    def column(self, name: str) -> npt.NDArray[Any]:
        parts = [table[name] for table in self.tables()]
        return np.concatenate(parts) if parts else np.zeros(0)


def _values(column: Any, name: str) -> npt.NDArray[Any]:
    import pyarrow as pa

    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    except (pa.ArrowException, ValueError, IndexError) as error:  # its message shows a value
        raise SchemaError(
            f"Column {name!r} cannot be read, it may be damaged: {type(error).__name__}."
        ) from None
    return values


def _extras(schema: Schema, y: Any, person: Any) -> list[tuple[str, Any, str]]:
    label = [(schema.label.name, y, "label")] if schema.label else []
    return label + ([(schema.person_id, person, "person")] if schema.person_id else [])


def _source(data: Any, schema: Schema, y: Any, person: Any) -> _Arrays | _Arrow:
    if isinstance(data, (str, os.PathLike)):
        return _Arrow(_scan(Path(data), schema), schema)
    if isinstance(data, np.ndarray) or (isinstance(data, (list, tuple)) and y is None) or y is not None:
        return _Arrays(data, schema, y, person)
    return _Arrow(_as_dataset(data), schema)


def _scan(path: Path, schema: Schema) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not (path.is_file() or path.is_dir()):
        raise SchemaError(f"There is no data at {path.name}, or it is neither a plain file nor a folder.")
    try:
        form = "csv" if path.suffix.lower() == ".csv" else "parquet"
        reader = _typed_csv(schema) if form == "csv" else _streaming_parquet()
        return ds.dataset(path, format=reader, exclude_invalid_files=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = (
            "it is empty, lacks a header, or names a column twice" if form == "csv" else type(error).__name__
        )
        raise SchemaError(f"{path.name} cannot be read as {form}: {why}.") from None


def _typed_csv(schema: Schema) -> Any:
    """CSV whose columns have the schema's types: none is guessed from rows, and an empty cell is missing."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow import csv

    columns = [*schema.columns, *([schema.label] if schema.label else [])]
    types = {column.name: _arrow_type(column) for column in columns}
    if schema.person_id:
        types[schema.person_id] = pa.string()
    options = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    return ds.CsvFileFormat(convert_options=options)


def _arrow_type(column: Number | Category) -> Any:
    """The type that holds a column's public values."""
    import pyarrow as pa

    if isinstance(column, Number):
        return pa.float64()
    kinds = {type(value) for value in column.values}
    simple = {frozenset({str}): pa.string(), frozenset({bool}): pa.bool_(), frozenset({int}): pa.int64()}
    return simple.get(frozenset(kinds), pa.float64())


def _streaming_parquet() -> Any:
    """Parquet without the buffer ahead of the reader, which grows to more than the file."""
    import pyarrow.dataset as ds

    options = ds.ParquetFragmentScanOptions(pre_buffer=False)
    return ds.ParquetFileFormat(default_fragment_scan_options=options)


def _as_dataset(data: Any) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    if hasattr(data, "to_arrow"):  # polars
        data = data.to_arrow()
    elif hasattr(data, "iloc"):  # pandas
        if not data.columns.is_unique:
            raise SchemaError("The table has columns of one name.")
        try:
            data = pa.Table.from_pandas(data, preserve_index=False)
        except pa.ArrowException as error:  # its message shows a value
            raise SchemaError(f"The frame has a column of mixed types: {type(error).__name__}.") from None
    if not isinstance(data, (pa.Table, pa.RecordBatch)):
        raise SchemaError(
            "Expected an array, a pandas or polars frame, an Arrow table or a Parquet path, "
            f"got {type(data).__name__}."
        )
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    names = table.schema.names
    if len(set(names)) != len(names):
        raise SchemaError("The table has columns of one name.")
    return ds.dataset(table)


def _exactly(values: Any) -> npt.NDArray[Any]:
    """An array of what a list holds: without a common type, for which 1 and "1" would be one person."""
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values)


def _height(table: dict[str, npt.NDArray[Any]]) -> int:
    return len(next(iter(table.values())))


def _bounded(people: npt.NDArray[Any], schema: Schema, noise: Noise | None) -> npt.NDArray[np.bool_]:
    """Which rows are kept so that no person has more than ``max_rows``, chosen at random."""
    assert schema.person_id is not None
    assert schema.max_rows is not None
    if noise is None:
        raise SchemaError("Rows of persons need a noise source to choose which rows are kept.")
    if is_missing(people).any():
        raise SchemaError(f"Column {schema.person_id!r} holds a missing person.")
    codes = _codes(people, schema.person_id)
    order = noise.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    grouped = codes[order]
    first = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]]) if len(grouped) else np.zeros(0, int)
    rank = np.arange(len(grouped)) - np.repeat(first, np.diff(np.r_[first, len(grouped)]))
    kept = np.zeros(len(codes), dtype=np.bool_)
    kept[order[rank < schema.max_rows]] = True
    return kept


def _codes(people: npt.NDArray[Any], name: str) -> npt.NDArray[np.intp]:
    """A number for each person. Two who cannot be told apart would share their rows: refuse such columns."""
    kinds = {_kind(value) for value in people} if people.dtype.kind == "O" else {people.dtype.type}
    if len(kinds) > 1:
        raise SchemaError(f"Column {name!r} holds persons of several types; write all as strings.")
    kind = next(iter(kinds), int)
    if issubclass(kind, (complex, np.complexfloating)):
        raise SchemaError(f"Column {name!r} holds complex numbers; write persons as integers or strings.")
    if issubclass(kind, (float, np.floating)):
        _check_floats(people.astype(kind), name)
    try:
        return np.unique(people, return_inverse=True)[1]
    except (TypeError, ArithmeticError):
        raise SchemaError(
            f"Column {name!r} holds persons that have no order; write them as strings."
        ) from None


def _kind(value: Any) -> type:
    """The type of one person; integers are of one."""
    return int if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else type(value)


def _check_floats(people: npt.NDArray[Any], name: str) -> None:
    """A float is a person only where its type can tell all whole numbers apart: float32 below 2^24."""
    bits = np.finfo(people.dtype).nmant + 1
    if not (np.abs(people) < 2.0**bits).all():
        raise SchemaError(
            f"Column {name!r} holds persons as {people.dtype} too large to tell apart: from 2**{bits} on "
            "one number stands for several; write them as integers or strings."
        )
    if not (people == np.floor(people)).all():
        raise SchemaError(f"Column {name!r} holds fractions; write persons as integers or strings.")


__all__ = ["AT_ONCE", "BATCH", "Batch", "Rows"]
