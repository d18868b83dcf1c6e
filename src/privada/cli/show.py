"""What a command shows: tables or JSON on stdout; notes, errors and progress on stderr.

Names, purposes, reasons and messages may come from other parties or their
files. Control characters in them are written out here, and in the tables of
`privada.report.terminal`, before anything reaches a terminal.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from privada._text import bounded, escape_in_json, printable, printable_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from privada.report.tables import Table

T = TypeVar("T")
View = Iterable["Table | str"]
Track = Callable[[Iterable[T], str], Iterable[T]]

PIPE_WIDTH = 160  # a pipe has no width of its own; a table should not fold for nothing


def console(*, stderr: bool = False) -> Console:
    """The console of stdout or stderr."""
    terminal = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    return _console(stderr, None if terminal else PIPE_WIDTH)


@cache
def _console(stderr: bool, width: int | None) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, width=width, highlight=False)


def emit(plain: Mapping[str, Any], view: View, *, as_json: bool) -> None:
    """Show a result: its plain form, or its tables and sentences of one line each."""
    if as_json:
        json_line(plain)
        return
    out = console()
    for part in view:
        if isinstance(part, str):
            out.print(_text(printable_line(part)), soft_wrap=True)
        else:
            out.print(part.to_rich())


def json_line(plain: Any) -> None:
    """One JSON value on stdout."""
    sys.stdout.write(json_text(plain) + "\n")
    sys.stdout.flush()


def json_text(plain: Any, *, indent: int | None = None) -> str:
    """JSON without control characters: they are escaped, so that no terminal executes them."""
    text = json.dumps(_finite(plain), ensure_ascii=False, allow_nan=False, indent=indent)
    return escape_in_json(text)


def _finite(plain: Any) -> Any:
    """JSON has no infinity: null stands for it."""
    if isinstance(plain, Mapping):
        return {name: _finite(value) for name, value in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [_finite(value) for value in plain]
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def error(message: str, *, label: str = "error") -> None:
    """One line on stderr."""
    _say(message, label=label, style="bold red" if label == "error" else "bold yellow")


def note(message: str, *, label: str = "note") -> None:
    """One line on stderr that is not an error."""
    _say(message, label=label, style="bold yellow" if label == "warning" else "dim")


def _say(message: str, *, label: str, style: str) -> None:
    from rich.text import Text

    text = Text(f"{label}: ", style=style)
    text.append(printable(bounded(" ".join(message.split()))), style="default")
    console(stderr=True).print(text, soft_wrap=True)


def _text(shown: str) -> Text:
    """Text in which markup does nothing."""
    from rich.text import Text

    return Text(shown)


def raw(text: str) -> None:
    """Text on stderr as it is, without control characters."""
    console(stderr=True).print(_text(printable(text)), soft_wrap=True, end="")


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr while something runs whose length is not known."""
    if sys.stderr.isatty():
        with console(stderr=True).status(_text(printable_line(what))):
            yield
    else:
        yield


@contextmanager
def updating(what: str) -> Iterator[Callable[[str], None]]:
    """The same with a line that changes: yields a function that shows another one."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with console(stderr=True).status(_text(printable_line(what))) as status:
        yield lambda line: status.update(_text(printable_line(line)))


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Track[Any]]:
    """A progress bar on stderr: yields ``track(items, what)``, which passes items on and counts them."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    what = TextColumn("{task.description}", markup=False)
    columns = (what, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = sys.stderr.isatty() and not quiet
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not terminal) as bar:

        def track(items: Iterable[Any], what: str) -> Iterator[Any]:
            known = list(items)
            yield from bar.track(known, description=printable_line(what))

        yield track


__all__ = [
    "console",
    "emit",
    "error",
    "json_line",
    "json_text",
    "note",
    "progress",
    "raw",
    "updating",
    "working",
]
