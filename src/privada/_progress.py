"""Progress bars for fits and searches, in terminals and notebooks; none unless you ask for them.

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
_BARS: ContextVar[Progress | None] = ContextVar("progress bars", default=None)


@contextmanager
def progress(console: Console | None = None) -> Iterator[None]:
    """Show the progress of fits and searches of this thread while the block runs.

    Parameters
    ----------
    console : rich.console.Console, default=None
        Where bars are drawn; by default the notebook's cell or the terminal. Files and pipes get none.

    Privacy
    -------
    Bars count questions and public steps, which are not secret. The number of runs of a search by random
    stopping is secret: they are neither counted nor shown.

    Examples
    --------
    >>> import privada
    >>> with privada.progress():
    ...     pass  # model.fit(X, y)
    """
    from rich import get_console
    from rich import progress as rich

    target = get_console() if console is None else console
    columns: list[Any] = [rich.SpinnerColumn(), rich.TextColumn("{task.description}"), rich.BarColumn(24)]
    columns += [rich.MofNCompleteColumn(), rich.TimeElapsedColumn()]
    interactive = target.is_terminal or target.is_jupyter
    with rich.Progress(*columns, console=target, transient=True, disable=not interactive) as bars:
        token = _BARS.set(bars)
        try:
            yield
        finally:
            _BARS.reset(token)


@contextmanager
def showing(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar while the block runs; yields a function to call after each step."""
    bars = _BARS.get()
    if bars is None:
        yield lambda: None
        return
    task = bars.add_task(what, total=total)
    try:
        yield lambda: bars.advance(task)
    finally:
        bars.remove_task(task)


def track(steps: Sequence[T], what: str) -> Iterator[T]:
    """Yield the steps, and show how many are done."""
    with showing(what, total=len(steps)) as advance:
        for step in steps:
            yield step
            advance()


@contextmanager
def hidden() -> Iterator[None]:
    """Show no bars while the block runs."""
    token = _BARS.set(None)
    try:
        yield
    finally:
        _BARS.reset(token)


__all__ = ["hidden", "progress", "showing", "track"]
