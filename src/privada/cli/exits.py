"""Exit codes, and how an error becomes one line on stderr.

====  =============================================================
code  meaning
====  =============================================================
0     done
1     unexpected: an error in privada
2     wrong usage, bad input or a bad study
3     an owner's budget or policy refuses
4     waiting for a release, a person, or a service that is away; run again later
5     a file or a ledger is invalid or was tampered with
6     an audit or a verification found something
7     another process serves this owner already
====  =============================================================
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from traceback import extract_tb, format_exception
from typing import Any

import typer

from privada import exceptions as errors
from privada.cli import show


class Exit(IntEnum):
    """What an exit code means."""

    DONE = 0
    UNEXPECTED = 1
    INPUT = 2
    REFUSED = 3
    WAITING = 4
    INVALID = 5
    FOUND = 6
    SERVED = 7


_CODES: dict[type[errors.PrivadaError], Exit] = {
    errors.InputError: Exit.INPUT,
    errors.BudgetError: Exit.REFUSED,
    errors.PolicyError: Exit.REFUSED,
    errors.AnswerError: Exit.REFUSED,
    errors.ApprovalPending: Exit.WAITING,
    errors.Waiting: Exit.WAITING,
    errors.OutageError: Exit.WAITING,
    errors.ServedError: Exit.SERVED,
    errors.LedgerError: Exit.INVALID,
    errors.WireError: Exit.INVALID,
    errors.CourierError: Exit.INPUT,  # as for files that cannot be read
}


def code_of(error: errors.PrivadaError) -> Exit:
    """The exit code of an error.

    >>> code_of(errors.TamperError("line 3"))
    <Exit.INVALID: 5>
    """
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), Exit.UNEXPECTED)


@contextmanager
def report_errors(*, traceback: bool = False) -> Iterator[None]:
    """Run a command so that warnings, notes and errors are single lines on stderr."""
    with _warnings_as_notes(), _log_as_notes():
        try:
            yield
        except errors.PrivadaError as error:
            show.error(str(error), label=_label(error))
            raise typer.Exit(code_of(error)) from None
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            name = f"{Path(str(error.filename)).name}: " if error.filename else ""
            show.error(f"{name}{error.strerror or type(error).__name__}.")
            raise typer.Exit(Exit.INPUT) from None
        except Exception as error:
            if _is_typers(error):
                raise
            _unexpected(error, traceback=traceback)
            raise typer.Exit(Exit.UNEXPECTED) from None


def _label(error: errors.PrivadaError) -> str:
    return "waiting" if isinstance(error, errors.Waiting | errors.ApprovalPending) else "error"


def _is_typers(error: Exception) -> bool:
    """Usage errors and exits of the command line itself."""
    return hasattr(error, "exit_code") or isinstance(error, typer.Abort)


def _unexpected(error: Exception, *, traceback: bool) -> None:
    """Say what and where, never the message: it could hold a private value."""
    if traceback:
        show.raw("".join(format_exception(error)))
    last = extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    said = "" if traceback else " Its message could hold data and is not shown; privada --traceback shows it."
    show.error(f"unexpected {type(error).__name__} in {where}.{said}")


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    def say(message: Warning | str, *_: Any, **__: Any) -> None:
        show.note(str(message), label="warning")

    with warnings.catch_warnings():
        warnings.simplefilter("always", errors.PrivadaWarning)
        warnings.showwarning = say
        yield


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        show.note(record.getMessage(), label="note")


@contextmanager
def _log_as_notes() -> Iterator[None]:
    log, handler = logging.getLogger("privada"), _Notes()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


__all__ = ["Exit", "code_of", "report_errors"]
