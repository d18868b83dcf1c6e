"""Measure contenders on one split of one pair, each at every epsilon that is missing."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

from privada.exceptions import PrivadaError, PrivadaWarning
from privada_lab.datasets.tables import TableSplit, table_pair
from privada_lab.experiments.tables.contenders import CONTENDERS, Case, Contender
from privada_lab.experiments.tables.results import TIME_LIMIT, Record, append

AGAIN = 5.0  # seconds after which the clock rings once more: a callback of Python's own may lose the first


class _OutOfTimeError(BaseException):
    """Raised by the clock; no estimator's own handling of errors catches it."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Some work: contenders and epsilons on one split of one pair.

    Attributes
    ----------
    todo : tuple of (name, epsilon)
        Contenders by name; epsilon is None for those that spend nothing.
    limit : float or None
        Seconds that a fit may take; None waits.
    out : Path or None
        Folder in which each result is written as soon as it is there.
    """

    pair: str
    split: int
    todo: tuple[tuple[str, float | None], ...]
    data: Path | None
    out: Path | None = None
    limit: float | None = None


@dataclass(eq=False)
class _Cases:
    """Both ways of using a split, made where they are needed."""

    split: TableSplit

    @cached_property
    def plain(self) -> Case:
        return Case.of(self.split)

    @cached_property
    def flipped(self) -> Case:
        return Case.flipped(self.split)

    def of(self, contender: Contender) -> Case:
        return self.flipped if contender.view == "transport" else self.plain


def measure(unit: Unit) -> list[Record]:
    """All results of a unit."""
    split = table_pair(unit.pair).split(unit.data, unit.split)
    cases, known = _Cases(split), {each.name: each for each in CONTENDERS}
    found = []
    for name, epsilon in unit.todo:
        found.append(_measured(unit, known[name], cases.of(known[name]), epsilon))
        if unit.out is not None:
            append(unit.out, found[-1])
    return found


def _measured(unit: Unit, contender: Contender, case: Case, epsilon: float | None) -> Record:
    about: dict[str, Any] = {
        "pair": unit.pair,
        "contender": contender.name,
        "epsilon": epsilon,
        "split": unit.split,
        "rows": len(case.private),
        "features": case.private.X.shape[1],
        "tests": len(case.test),
    }
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(), time_limit(unit.limit):
            warnings.simplefilter("ignore", PrivadaWarning)
            warnings.simplefilter("ignore", UserWarning)  # of scikit-learn's solvers
            outcome = contender.run(case, case.budget(1.0 if epsilon is None else epsilon))
    except _OutOfTimeError:
        return Record(**about, seconds=time.perf_counter() - start, failed=TIME_LIMIT)
    except (PrivadaError, ValueError, ArithmeticError) as error:
        return Record(**about, seconds=time.perf_counter() - start, failed=type(error).__name__)
    return Record(
        **about,
        **case.errors(outcome.predicted),
        seconds=round(time.perf_counter() - start, 3),
        forecast=None if outcome.forecast is None else outcome.forecast.ratio,
        band=outcome.band,
    )


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Stop what is inside after some seconds, where a process's own clock can (in its main thread)."""
    able = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not able:
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's signature
        raise _OutOfTimeError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


__all__ = ["Unit", "measure", "time_limit"]
