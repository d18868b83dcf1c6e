"""Answers in threads of this process: each takes rows, computes, and adds to one result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import BoolArray
from privada._threads import MOST_THREADS, count_memory, count_processors, run_each
from privada._toml import Section
from privada.exceptions import InputError
from privada.parties.compute import Fold
from privada.parties.compute.batch import Batch, Part, Raw
from privada.parties.schema import Schema
from privada.parties.sources import Source

T = TypeVar("T")
S = TypeVar("S")
USABLE = 0.8  # of the memory, for what an answer keeps


@dataclass(frozen=True)
class Threads:
    """Compute in this process.

    Parameters
    ----------
    count : int, optional
        Threads at once. By default the processors that this process may use, at most ``OMP_NUM_THREADS``
        if that is set. The result has the same bits for every number.
    """

    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None and _check.count(threads=self.count) > MOST_THREADS:
            raise InputError(f"Expected at most {MOST_THREADS} threads, got {self.count}.")

    @classmethod
    def from_section(cls, section: Section, home: Path) -> Self:  # noqa: ARG003 - there are no paths
        """Read ``threads``."""
        with section.blaming("threads"):
            return cls(section.whole("threads", None))

    def check_ready(self, kept_bytes: int = 0) -> None:
        """Whether this machine has the memory: a process that is stopped for want of it has charged already.

        The whole memory counts, not what is free now: that would depend on the rows.
        """
        if kept_bytes > (most := USABLE * count_memory()):
            raise InputError(
                f"The answer would keep {kept_bytes / 1e9:.1f} GB of prepared rows in memory; this machine "
                f"has {most / 1e9:.1f} GB for them. Ask for fewer features, or have the owner use a cluster."
            )

    def check_source(self, source: Source) -> None:
        """Every source can be read here."""

    def place(self, source: Source, schema: Schema) -> list[Part]:
        """Parts are read where they are."""
        return [Part(part, schema) for part in source.parts()]

    def has(self, parts: Sequence[Part]) -> bool:  # noqa: ARG002 - they are in this process
        """Parts do not get lost."""
        return True

    def narrow(self, parts: Sequence[Part], masks: Sequence[BoolArray]) -> list[Part]:
        return [part.only(mask) for part, mask in zip(parts, masks, strict=True)]

    def select(self, parts: Sequence[Part], names: tuple[str, ...]) -> list[Part]:
        return [part.reading(names) for part in parts]

    def remember(self, parts: Sequence[Part], name: str) -> tuple[list[Part], list[npt.NDArray[Any]]]:
        people = [np.array(part.source.column(name)) for part in parts]
        return [replace(part, people=names) for part, names in zip(parts, people, strict=True)], people

    def batches(self, parts: Sequence[Part]) -> Iterator[Batch]:
        for part in parts:
            yield from part.batches()

    def counts(self, parts: Sequence[Part]) -> list[int]:
        counts = dict.fromkeys(map(id, parts), 0)
        lock = threading.Lock()

        def count(part: Part, batch: Batch) -> None:
            with lock:
                counts[id(part)] += len(batch)

        self._visit(parts, count)
        return [counts[id(part)] for part in parts]

    def fold(
        self, parts: Sequence[Part], schema: Schema, make: Callable[[Batch], T], fold: Fold[T], numbers: int
    ) -> T:
        """Join what ``make`` makes of every batch; the first one has no rows."""
        joined = _Joined(fold, make(Batch.of_none(schema)))

        def work(_: Part, batch: Batch) -> None:
            for piece in batch.parts(numbers):
                joined.take(make(piece))

        self._visit(parts, work)
        return joined.result

    def prepare(self, parts: Sequence[Part], schema: Schema, make: Callable[[Batch], T]) -> list[T]:
        """What ``make`` makes of every batch; the first one has no rows."""
        results = [make(Batch.of_none(schema))]
        self._visit(parts, lambda _, batch: results.append(make(batch)))
        return results

    def fold_prepared(self, prepared: Sequence[S], make: Callable[[S], T], fold: Fold[T]) -> T:
        joined = _Joined(fold, make(prepared[0]))
        run_each(lambda result: joined.take(make(result)), prepared[1:], threads=self.count)
        return joined.result

    def map_prepared(self, prepared: Sequence[S], make: Callable[[S], T]) -> list[T]:
        results: dict[int, T] = {}

        def work(numbered: tuple[int, S]) -> None:
            results[numbered[0]] = make(numbered[1])

        run_each(work, enumerate(prepared), threads=self.count)
        return [results[number] for number in range(len(prepared))]

    def _visit(self, parts: Sequence[Part], work: Callable[[Part, Batch], object]) -> None:
        """Give every encoded batch to ``work``, on several threads.

        Of many parts each is read by one thread; of few, threads take turns to read.
        """
        threads = self.count or count_processors()
        tasks: Iterable[Part | Raw] = (
            parts if len(parts) >= threads else (raw for part in parts for raw in part.read())
        )

        def take(task: Part | Raw) -> None:
            if isinstance(task, Raw):
                work(task.part, task.encode())
                return
            for batch in task.batches():
                work(task, batch)

        run_each(take, tasks, threads=threads)


class _Joined(Generic[T]):
    """One result, to which threads add theirs."""

    def __init__(self, fold: Fold[T], nothing: T) -> None:
        self._fold, self._lock = fold, threading.Lock()
        self.result = fold.begin(nothing)

    def take(self, more: T) -> None:
        """Join one result more."""
        with self._lock:
            self.result = self._fold.join(self.result, more)


__all__ = ["Threads"]
