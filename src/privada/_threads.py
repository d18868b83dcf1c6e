"""Threads and memory of this process: how much it may use, and how it shares work among threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MOST_THREADS = 32
_SHARING: ContextVar[bool] = ContextVar("sharing", default=False)  # is this thread one of several?


def count_processors() -> int:
    """Count the processors of this process, at most ``OMP_NUM_THREADS`` if that is set."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(own, int(limit) if limit.isdecimal() else own, MOST_THREADS))


@cache
def count_memory() -> int:
    """Count the bytes of memory that this process may use: the machine's, or its control group's limit."""
    own = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else sys.maxsize
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return own
    return min(own, int(limit)) if limit.isdecimal() else own


def run_each(work: Callable[[T], object], items: Iterable[T], *, threads: int | None = None) -> None:
    """Call ``work`` with every item, on several threads at once.

    Parameters
    ----------
    work : callable
        Takes one item. The first error ends the work and is raised here.
    items : iterable
        Items are taken one after another, by one thread at a time.
    threads : int, default=None
        By default `count_processors`. Work within shared work stays on its thread.
    """
    todo = _Shared(iter(items))
    count = 1 if _SHARING.get() else min(threads or count_processors(), MOST_THREADS)
    if count == 1 or not todo.has_several():
        for item in todo:
            work(item)
        return

    def take() -> None:
        _SHARING.set(True)
        try:
            for item in todo:
                work(item)
        except BaseException:
            todo.close()  # the other threads find nothing more to take
            raise

    # Other threads inherit this one's context: NumPy's error state is in it
    futures = [_pool().submit(copy_context().run, take) for _ in range(count - 1)]
    try:
        copy_context().run(take)
    finally:
        # Wait until no thread works any more; one that has not begun need not begin
        for future in futures:
            if not future.cancel():
                future.exception()
    for future in futures:
        if not future.cancelled():
            future.result()


def in_parts(work: Callable[[slice], None], total: int, size: int) -> None:
    """Run ``work`` on slices of at most ``size`` items, on every processor that this process may use."""
    run_each(work, [slice(start, min(start + size, total)) for start in range(0, total, size)])


class _Shared(Iterator[T]):
    """Items that several threads take from."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items, self._lock, self._first = items, threading.Lock(), list[T]()

    def has_several(self) -> bool:
        """Whether there are two items or more."""
        for item in self._items:
            self._first.append(item)
            if len(self._first) == 2:
                return True
        return False

    def __next__(self) -> T:
        with self._lock:
            return self._first.pop(0) if self._first else next(self._items)

    def close(self) -> None:
        """Drop all items that are left."""
        with self._lock:
            self._first, self._items = [], iter(())


@cache
def _pool() -> ThreadPoolExecutor:
    """Make the other threads once, for all calls; the calling thread works as well."""
    return ThreadPoolExecutor(max_workers=MOST_THREADS, thread_name_prefix="privada")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


__all__ = ["MOST_THREADS", "count_memory", "count_processors", "in_parts", "run_each"]
