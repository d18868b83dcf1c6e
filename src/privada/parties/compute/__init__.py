"""Where an answer is computed: in threads of one process, or on a cluster of the owner's own.

An engine is a class that an entry point in the group ``privada.engines`` names, be it of privada or of
another package; ``engine`` under ``[compute]`` of an owner's file chooses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import BoolArray, IntArray
from privada._toml import Section
from privada.exceptions import AnswerError, InputError

if TYPE_CHECKING:
    from privada.parties.compute.batch import Batch
    from privada.parties.schema import Schema
    from privada.parties.sources import Source

T = TypeVar("T")
ENGINES = "privada.engines"
Handles = Sequence[Any]  # parts, or what is made of them, where they are


class Fold(Protocol[T]):
    """Results of batches become one, in whatever order they come."""

    def begin(self, nothing: T) -> T:
        """Where it begins: at the result for no rows."""
        ...

    def join(self, so_far: T, more: T) -> T:
        """One result more; may change the first."""
        ...


class Adding:
    """Arrays of integers, or mappings of names to them, are added modulo 2**64."""

    def begin(self, nothing: Any) -> Any:
        """Zeros, if the result for no rows is zero."""
        if isinstance(nothing, dict):
            return {name: self.begin(array) for name, array in nothing.items()}
        if np.any(nothing):
            raise AnswerError("Sums over no rows are not zero.")
        total = np.zeros(np.shape(nothing), dtype=np.int64)
        _add(total, nothing)  # which checks its type
        return total

    def join(self, so_far: Any, more: Any) -> Any:
        """Add in place."""
        if not isinstance(so_far, dict):
            _add(so_far, more)
            return so_far
        if more.keys() != so_far.keys():
            raise AnswerError("Sums have other names for one batch than for another.")
        for name, total in so_far.items():
            _add(total, more[name])
        return so_far


def _add(total: IntArray, more: IntArray) -> None:
    if np.shape(more) != total.shape or not np.can_cast(np.asarray(more).dtype, np.int64):
        raise AnswerError("Sums are not integers, or have another shape for one batch than for another.")
    total += more


@dataclass(frozen=True)
class Merging(Generic[T]):
    """Results are merged by a function whose result does not depend on their order."""

    merge: Callable[[T, T], T]

    def begin(self, nothing: T) -> T:
        """The result for no rows itself."""
        return nothing

    def join(self, so_far: T, more: T) -> T:
        """Merge two."""
        return self.merge(so_far, more)


class Engine(Protocol):
    """What `Rows` asks of the threads of a process or of a cluster. Results have the same bits everywhere."""

    @classmethod
    def from_section(cls, section: Section, home: Path) -> Engine:
        """Read the rest of ``[compute]``, with paths relative to ``home``; no connection is made yet."""
        ...

    def check_ready(self, kept_bytes: int = 0) -> None:
        """Make sure that an answer can be computed now; called before anything is charged.

        Raises `InputError` if the answer is too large, and `OutageError` if the engine is unavailable.
        ``kept_bytes`` is the memory that the answer keeps for all rows together while it works.
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


def read_engine(section: Section, home: Path) -> Engine:
    """The engine that ``[compute]`` of an owner's file declares; threads by default."""
    entries = {entry.name: entry for entry in metadata.entry_points(group=ENGINES)}
    with section.blaming("engine"):
        name = _check.one_of(tuple(entries), engine=section.string("engine", "threads"))
        try:
            engine_type: type[Engine] = entries[name].load()
        except (ImportError, AttributeError) as error:
            raise InputError(f"The engine {name} cannot be loaded: {error}.") from None
    engine = engine_type.from_section(section, home)
    section.done()
    return engine


__all__ = ["Adding", "Engine", "Fold", "Handles", "Merging", "read_engine"]
