"""Progress bars for fits and searches, in terminals and notebooks; quiet unless somebody asks for them.

>>> from privada._progress import track
>>> list(track([1, 2], "nothing is shown outside of progress()"))
[1, 2]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

T = TypeVar("T")
_SHOWN: ContextVar[Progress | None] = ContextVar("progress bars", default=None)


@contextmanager
def progress(console: Console | None = None) -> Iterator[None]:
    """Show how far fits and searches of this thread are, while the block runs.

    Parameters
    ----------
    console : rich.console.Console, default=None
        Where bars are drawn: by default the notebook's cell, or the terminal; nothing in a file or pipe.

    Privacy
    -------
    Bars count questions and public steps, which are no secret. The runs of a search by random stopping are
    one, and are neither counted nor shown.

    Examples
    --------
    >>> import privada
    >>> with privada.progress():
    ...     pass  # model.fit(X, y)
    """
    from rich import get_console
    from rich import progress as rich

    drawn = get_console() if console is None else console
    columns: list[Any] = [rich.SpinnerColumn(), rich.TextColumn("{task.description}"), rich.BarColumn(24)]
    columns += [rich.MofNCompleteColumn(), rich.TimeElapsedColumn()]
    seen = drawn.is_terminal or drawn.is_jupyter
    with rich.Progress(*columns, console=drawn, transient=True, disable=not seen) as bars:
        token = _SHOWN.set(bars)
        try:
            yield
        finally:
            _SHOWN.reset(token)


@contextmanager
def showing(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar while the block runs; what it gives is called after each step."""
    bars = _SHOWN.get()
    if bars is None:
        yield lambda: None
        return
    task = bars.add_task(what, total=total)
    try:
        yield lambda: bars.advance(task)
    finally:
        bars.remove_task(task)


def track(steps: Sequence[T], what: str) -> Iterator[T]:
    """Go through steps, and show how many are done."""
    with showing(what, total=len(steps)) as advance:
        for step in steps:
            yield step
            advance()


@contextmanager
def hidden() -> Iterator[None]:
    """Show nothing of what the block does."""
    token = _SHOWN.set(None)
    try:
        yield
    finally:
        _SHOWN.reset(token)


__all__ = ["hidden", "progress", "showing", "track"]
