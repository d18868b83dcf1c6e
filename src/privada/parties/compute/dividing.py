"""Divide Parquet files into parts that can be read at once: row groups, small ones together."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from privada.exceptions import SourceError
from privada.parties.tables import raise_if_out_of_reach

BUFFER = 1 << 20  # bytes of a column that are read at a time
PART_ROWS = 250_000  # of a part at least, where row groups are smaller


@dataclass(frozen=True, eq=False, repr=False)
class Piece:
    """The address of some rows: a file and row groups of it. It is opened when it is read.

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
    categories: tuple[str, ...]

    def __repr__(self) -> str:
        return "<Piece>"

    def to_batches(self, *, columns: list[str], batch_size: int, **_: Any) -> Iterator[Any]:
        """Arrow batches in the order of the rows, as those of a data set; read by the thread that asks."""
        with self._opened() as file:
            if absent := set(columns) - set(file.schema_arrow.names):
                raise SourceError(f"One of the files lacks columns: {', '.join(sorted(absent))}.")
            batches = file.iter_batches(
                batch_size=batch_size, row_groups=list(self.groups), columns=columns, use_threads=False
            )
            for batch in batches:
                yield self._alike(batch.select(columns))

    def _opened(self) -> Any:
        import pyarrow.parquet as pq

        options = {"read_dictionary": list(self.categories), "pre_buffer": False, "buffer_size": BUFFER}
        try:
            return pq.ParquetFile(self.path, filesystem=self.filesystem, **options)
        except KeyError:  # a column that is no leaf of the file's tree
            names = ", ".join(self.categories)
            raise SourceError(
                f"One of the files lacks a column of {names}, or has lists or structures in it."
            ) from None

    def _alike(self, batch: Any) -> Any:
        """A batch with the types of the first file; those of categories are read by their values."""
        import pyarrow as pa

        columns = [
            column if pa.types.is_dictionary(column.type) else column.cast(self.schema.field(name).type)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def divide_dataset(dataset: Any) -> list[Any]:
    """Pieces of the same rows in the same order. What is not in Parquet files stays as it is.

    Nothing but the files' footers is read.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not isinstance(dataset, ds.FileSystemDataset) or not isinstance(dataset.format, ds.ParquetFileFormat):
        return [dataset]
    categories = tuple(sorted(dataset.format.read_options.dictionary_columns))
    try:
        return [
            Piece(fragment.path, dataset.filesystem, dataset.schema, groups, categories)
            for fragment in dataset.get_fragments()
            for groups in _groups(fragment)
        ] or [dataset]
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise_if_out_of_reach(error, "The table")
        raise SourceError(f"The table cannot be read, it may be damaged: {type(error).__name__}.") from None


def _groups(fragment: Any) -> Iterator[tuple[int, ...]]:
    """The file's row groups, small ones together."""
    groups, rows = list[int](), 0
    for group in fragment.row_groups:
        groups.append(group.id)
        rows += group.num_rows
        if rows >= PART_ROWS:
            yield tuple(groups)
            groups, rows = [], 0
    if groups:
        yield tuple(groups)


def is_parquet(dataset: Any) -> bool:
    """Whether a data set is in Parquet files that another process can open by their address."""
    import pyarrow.dataset as ds

    if not isinstance(dataset, ds.FileSystemDataset) or not isinstance(dataset.format, ds.ParquetFileFormat):
        return False
    try:
        pickle.dumps(dataset.filesystem)
    except Exception:  # whatever a file system of another library raises
        return False
    return True


__all__ = ["PART_ROWS", "Piece", "divide_dataset", "is_parquet"]
