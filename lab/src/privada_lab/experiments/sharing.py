"""Runs of an experiment shared among processes, as joblib is told to.

A run is a function of its seed, so that runs can be measured side by side: ``privada reproduce --jobs 2``, or
``joblib.parallel_config(n_jobs=2)`` around an experiment, gives them to two processes. Otherwise they are
measured here, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from joblib import Parallel, delayed

from privada_lab.experiments.registry import Track

Item = TypeVar("Item")
Found = TypeVar("Found")


def shared(
    measure: Callable[[Item], Found], items: Iterable[Item], what: str, track: Track
) -> Iterator[Found]:
    """What ``measure`` finds of each item, in their order, as soon as it is there.

    >>> from privada_lab.experiments.registry import untracked
    >>> list(shared(abs, [-1, 2, -3], "numbers", untracked))
    [1, 2, 3]
    """
    known = list(items)
    found = Parallel(return_as="generator")(delayed(measure)(each) for each in known)
    for _, each in zip(track(known, what), found, strict=True):
        yield each


__all__ = ["shared"]
