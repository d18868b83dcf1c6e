"""Work is shared among threads: every item once, the caller's context everywhere, errors as they are."""

import os
import threading
from itertools import count

import numpy as np
import pytest

from privada import _threads
from privada._threads import count_processors, in_parts, run_each


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_worked_on_once(threads):
    seen = []
    run_each(seen.append, iter(range(100)), threads=threads)
    assert sorted(seen) == list(range(100))
    run_each(seen.append, [], threads=threads)
    assert len(seen) == 100


def test_several_threads_work_at_once():
    """Each waits for the other: one thread alone would wait for ever."""
    both = threading.Barrier(2, timeout=20)
    run_each(lambda _: both.wait(), range(2), threads=2)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_error_ends_the_work(threads):
    seen = []

    def work(item):
        seen.append(item)
        if item == 5:
            raise ArithmeticError("in the work")

    with pytest.raises(ArithmeticError, match="in the work"):
        run_each(work, count(), threads=threads)

    def broken():
        yield from range(4)
        raise OSError("in the items")

    with pytest.raises(OSError, match="in the items"):
        run_each(seen.append, broken(), threads=threads)


def test_shared_work_shares_no_further():
    names = []

    def work(_):
        mine = threading.get_ident()
        run_each(lambda _: names.append(threading.get_ident() == mine), range(4), threads=4)

    run_each(work, range(3), threads=3)
    assert names == [True] * 12


def test_threads_inherit_what_numpy_does_about_errors():
    """An overflow that becomes an error on one thread only would reveal something about a row."""
    states = []
    both = threading.Barrier(2, timeout=20)

    def work(_):
        both.wait()
        states.append(np.geterr()["over"])

    with np.errstate(all="ignore"):
        run_each(work, range(2), threads=2)
    assert states == ["ignore"] * 2


def test_a_busy_pool_delays_nobody(monkeypatch):
    """Who calls works by itself, if all other threads are taken."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(_threads, "_pool", lambda: pool)
        free = threading.Event()
        pool.submit(free.wait, 20)
        seen = []
        run_each(seen.append, range(9), threads=4)
        assert seen == list(range(9))
        free.set()


def test_a_forked_process_has_threads_of_its_own():
    run_each(lambda _: None, range(4), threads=2)
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        both = threading.Barrier(2, timeout=20)
        try:
            run_each(lambda _: both.wait(), range(2), threads=2)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(("said", "most"), [("1", 1), ("many", 32), ("0", 1), ("100000", 32)])
def test_processors_are_those_of_the_process_and_of_openmp(said, most, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert 1 <= count_processors() <= most
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(7), raising=False)
    assert count_processors() == 7


def test_parts_cover_everything_once_and_errors_come_through():
    seen = np.zeros(103, dtype=int)

    def work(part):
        seen[part] += 1

    in_parts(work, 103, 10)
    assert (seen == 1).all()
    in_parts(work, 0, 10)

    def fail(part):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        in_parts(fail, 30, 10)


def test_memory_is_that_of_the_machine_or_less():
    assert 2**26 < _threads.count_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
