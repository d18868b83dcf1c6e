"""What computes: the few things that `Rows` asks of the threads of a process or of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from privada._arrays import BoolArray
from privada.parties.compute.batch import Batch
from privada.parties.compute.folds import Fold
from privada.parties.schema import Schema
from privada.parties.sources import Source

T = TypeVar("T")
Handles = Sequence[Any]  # parts, or what is made of them, where they are


class Engine(Protocol):
    """Where answers are computed. Results have the same bits everywhere."""

    def check_ready(self, kept_bytes: int = 0) -> None:
        """Make sure that an answer can be computed now; called before anything is charged.

        Raises `InputError` if the answer is too large, and `OutageError` if what computes is away.
        ``kept_bytes`` are those that it keeps of all rows together while it works.
        """
        ...

    def check_source(self, source: Source) -> None:
        """Raise `InputError` if rows of this source cannot be brought to where they are read."""
        ...

    def place(self, source: Source, schema: Schema) -> Handles:
        """Bring parts of a source, or their addresses, to where they are read."""
        ...

    def has(self, parts: Handles) -> bool:
        """Whether these parts are still where they were brought; else they are brought there again."""
        ...

    def narrow(self, parts: Handles, masks: Sequence[BoolArray]) -> Handles:
        """Let only some rows of each part count."""
        ...

    def select(self, parts: Handles, names: tuple[str, ...]) -> Handles:
        """Let only some columns of each part be read."""
        ...

    def remember(self, parts: Handles, name: str) -> tuple[Handles, list[npt.NDArray[Any]]]:
        """Parts that know the person of each row, who must not change any more; and these persons."""
        ...

    def counts(self, parts: Handles) -> list[int]:
        """How many rows of each part count; all are read and checked."""
        ...

    def batches(self, parts: Handles) -> Iterator[Batch]:
        """All rows that count, in their order."""
        ...

    def fold(
        self, parts: Handles, schema: Schema, make: Callable[[Batch], T], fold: Fold[T], numbers: int
    ) -> T:
        """Join what ``make`` makes of every batch, and of no rows."""
        ...

    def prepare(self, parts: Handles, schema: Schema, make: Callable[[Batch], Any]) -> Handles:
        """Keep what ``make`` makes of every batch, and of no rows."""
        ...

    def fold_prepared(self, prepared: Handles, make: Callable[[Any], T], fold: Fold[T]) -> T:
        """Join what ``make`` makes of everything that was prepared."""
        ...

    def map_prepared(self, prepared: Handles, make: Callable[[Any], Any]) -> Handles:
        """Keep what ``make`` makes of each, in place of it."""
        ...


__all__ = ["Engine", "Handles"]
