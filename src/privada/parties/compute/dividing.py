"""Divide a set of Parquet files into parts that can be read at once: row groups, small ones together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from privada.exceptions import SourceError

PART_ROWS = 250_000  # of a part at least, where row groups are smaller


def divide_dataset(dataset: Any) -> list[Any]:
    """Data sets of the same rows in the same order. One that is not made of Parquet files stays whole.

    Nothing but the files' footers is read.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not isinstance(dataset, ds.FileSystemDataset) or not isinstance(dataset.format, ds.ParquetFileFormat):
        return [dataset]
    try:
        pieces = [piece for fragment in dataset.get_fragments() for piece in _pieces(fragment)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"The table cannot be read, it may be damaged: {type(error).__name__}.") from None
    if len(pieces) < 2:
        return [dataset]
    return [
        ds.FileSystemDataset([piece], dataset.schema, dataset.format, dataset.filesystem) for piece in pieces
    ]


def _pieces(fragment: Any) -> Iterator[Any]:
    """The file's row groups, small ones together."""
    groups, rows = list[int](), 0
    for group in fragment.row_groups:
        groups.append(group.id)
        rows += group.num_rows
        if rows >= PART_ROWS:
            yield fragment.subset(row_group_ids=groups)
            groups, rows = [], 0
    if groups:
        yield fragment.subset(row_group_ids=groups)


__all__ = ["PART_ROWS", "divide_dataset"]
