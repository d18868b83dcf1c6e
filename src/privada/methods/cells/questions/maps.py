"""Public linear maps: how large they may be, and how many rows are mapped at once.

A learner chooses the map, the owner's rows are private. What a mapped row takes is bounded,
and rows are mapped in chunks whose size follows from the map alone, so the number of rows
does not decide whether an answer fits the owner's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError

LARGEST = 4_000_000  # numbers of all maps of one hypothesis or partition
WIDEST = 65_536  # numbers that a row is mapped to
_NUMBERS = 2**16  # of mapped rows at once: they stay in the processor's cache


def check_map(**named: Any) -> FloatArray:
    """Return a public matrix if rows can be mapped by it."""
    ((name, _),) = named.items()
    matrix = _check.matrix(**named)
    if matrix.shape[1] > WIDEST or matrix.size > LARGEST:
        raise InputError(
            f"Expected {name} to have at most {WIDEST} columns and {LARGEST} numbers, "
            f"got shape {matrix.shape}."
        )
    return matrix


def chunks(length: int, width: int) -> Iterator[slice]:
    """Parts of some rows, so small that they can be mapped to ``width`` numbers each.

    >>> list(chunks(5, 2**15))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, _NUMBERS // width)
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def mapped(rows: FloatArray, width: int, made: Callable[[FloatArray], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The result of ``made`` for each row, chunk by chunk; a row takes ``width`` numbers meanwhile."""
    parts = [made(rows[part]) for part in chunks(len(rows), width)]
    if not parts:
        return made(rows)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


__all__ = ["LARGEST", "WIDEST", "check_map", "chunks", "mapped"]
