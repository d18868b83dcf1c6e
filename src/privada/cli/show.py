"""How a command ends: tables or JSON on stdout; notes, errors and progress on stderr; an exit code.

Names, purposes, reasons and messages may come from other parties or their
files. Control characters in them are escaped here, and in the tables of
`privada.report.tables`, before anything reaches a terminal.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from traceback import extract_tb, format_exception
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from privada import exceptions as errors
from privada._text import bounded, escape_in_json, printable, printable_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from privada.report.tables import Table

T = TypeVar("T")
View = Iterable["Table | str"]
Track = Callable[[Iterable[T], str], Iterable[T]]

PIPE_WIDTH = 160  # a pipe has no width of its own, and its tables should not be folded


class Exit(IntEnum):
    """What an exit code means.

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

    DONE = 0
    UNEXPECTED = 1
    INPUT = 2
    REFUSED = 3
    WAITING = 4
    INVALID = 5
    FOUND = 6
    SERVED = 7


EXIT_CODES: dict[type[errors.PrivadaError], Exit] = {
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
    """Return the exit code of an error: that of the closest of its classes that has one.

    >>> code_of(errors.TamperError("line 3"))
    <Exit.INVALID: 5>
    """
    return next((EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES), Exit.UNEXPECTED)


@contextmanager
def report_errors(*, traceback: bool = False) -> Iterator[None]:
    """Run a command so that warnings, notes and errors are single lines on stderr."""

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        note(str(message), label="warning")

    log, handler = logging.getLogger("privada"), _NoteHandler()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", errors.PrivadaWarning)
            warnings.showwarning = show_warning
            yield
    except errors.PrivadaError as problem:
        waiting = isinstance(problem, errors.Waiting | errors.ApprovalPending)
        error(str(problem), label="waiting" if waiting else "error")
        raise typer.Exit(code_of(problem)) from None
    except BrokenPipeError:
        raise
    except OSError as problem:
        name = f"{Path(str(problem.filename)).name}: " if problem.filename else ""
        error(f"{name}{problem.strerror or type(problem).__name__}.")
        raise typer.Exit(Exit.INPUT) from None
    except Exception as problem:
        # typer's own usage errors and exits pass through
        if hasattr(problem, "exit_code") or isinstance(problem, typer.Abort):
            raise
        # Never show the message unasked: it could contain a private value
        hint = " Its message could hold data and is not shown; privada --traceback shows it."
        if traceback:
            raw("".join(format_exception(problem)))
            hint = ""
        last = extract_tb(problem.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        error(f"unexpected {type(problem).__name__} in {place}.{hint}")
        raise typer.Exit(Exit.UNEXPECTED) from None
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _NoteHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def console(*, stderr: bool = False) -> Console:
    """Make the console of stdout or stderr."""
    from rich.console import Console

    terminal = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, width=None if terminal else PIPE_WIDTH, highlight=False)


def emit(plain: Mapping[str, Any], view: View, *, as_json: bool) -> None:
    """Show a result: its plain form as JSON, or its tables and sentences, one line each."""
    if as_json:
        json_line(plain)
        return
    out = console()
    for part in view:
        if isinstance(part, str):
            out.print(_plain_text(printable_line(part)), soft_wrap=True)
        else:
            out.print(part.to_rich())


def json_line(plain: Any) -> None:
    """Print one JSON value on stdout."""
    sys.stdout.write(json_text(plain) + "\n")
    sys.stdout.flush()


def json_text(plain: Any, *, indent: int | None = None) -> str:
    """Write JSON in which control characters are escaped, so that no terminal executes them."""
    text = json.dumps(_without_infinities(plain), ensure_ascii=False, allow_nan=False, indent=indent)
    return escape_in_json(text)


def _without_infinities(plain: Any) -> Any:
    """Replace infinities and NaN by None: JSON cannot express them."""
    if isinstance(plain, Mapping):
        return {name: _without_infinities(value) for name, value in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [_without_infinities(value) for value in plain]
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def error(message: str, *, label: str = "error") -> None:
    """Print one line on stderr."""
    _print_line(message, label=label, style="bold red" if label == "error" else "bold yellow")


def note(message: str, *, label: str = "note") -> None:
    """Print one line on stderr that is not an error."""
    _print_line(message, label=label, style="bold yellow" if label == "warning" else "dim")


def _print_line(message: str, *, label: str, style: str) -> None:
    from rich.text import Text

    text = Text(f"{label}: ", style=style)
    text.append(printable(bounded(" ".join(message.split()))), style="default")
    console(stderr=True).print(text, soft_wrap=True)


def _plain_text(text: str) -> Text:
    """Make a text in which rich's markup does nothing."""
    from rich.text import Text

    return Text(text)


def raw(text: str) -> None:
    """Print text on stderr as it is, without control characters."""
    console(stderr=True).print(_plain_text(printable(text)), soft_wrap=True, end="")


@contextmanager
def updating(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr, if that is a terminal; yields a function that changes its text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with console(stderr=True).status(_plain_text(printable_line(what))) as status:
        yield lambda line: status.update(_plain_text(printable_line(line)))


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Track[Any]]:
    """Show a progress bar on stderr; yields ``track(items, what)``, which passes items on and counts them."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    what = TextColumn("{task.description}", markup=False)
    columns = (what, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = sys.stderr.isatty() and not quiet
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not terminal) as bar:

        def track(items: Iterable[Any], what: str) -> Iterator[Any]:
            # A list, because the bar has to know how many there are
            yield from bar.track(list(items), description=printable_line(what))

        yield track


__all__ = [
    "Exit",
    "Track",
    "code_of",
    "console",
    "emit",
    "error",
    "json_line",
    "json_text",
    "note",
    "progress",
    "raw",
    "report_errors",
    "updating",
]
