"""How results of batches become one: integers are added, anything else is merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from privada._arrays import IntArray
from privada.exceptions import AnswerError

T = TypeVar("T")


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
        """Zeros, if that is what is said of no rows."""
        if isinstance(nothing, dict):
            return {name: _zeros(array) for name, array in nothing.items()}
        return _zeros(nothing)

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


def _zeros(nothing: IntArray) -> IntArray:
    """Where a sum begins: at what is said of no rows, if that is nothing."""
    if np.any(nothing):
        raise AnswerError("Sums over no rows are not zero.")
    total = np.zeros(np.shape(nothing), dtype=np.int64)
    _add(total, nothing)
    return total


def _add(total: IntArray, more: IntArray) -> None:
    if np.shape(more) != total.shape or not np.can_cast(np.asarray(more).dtype, np.int64):
        raise AnswerError("Sums are not integers, or have another shape for one batch than for another.")
    total += more


__all__ = ["Adding", "Fold", "Merging"]
