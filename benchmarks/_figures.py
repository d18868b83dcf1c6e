"""What every benchmark prints: figures, as a table or as one JSON object a line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Measure = Callable[[bool], Iterable["Figure"]]


@dataclass(frozen=True)
class Figure:
    """One measured number beside its goal.

    Attributes
    ----------
    figure : str
        Name, unique over all commands.
    value, goal : float
        What was measured, and what was wanted.
    better : "lower" or "higher"
        Which side of the goal is the good one.
    beside : str
        What it was measured against, with its version, in the same run.
    runs : int
        How many runs of ours the value is the median of.

    Examples
    --------
    >>> solver = Figure("solver_time_vs_fasterpam", 0.2134, 0.25, "lower", "kmedoids.fasterpam 0.5.5", 5)
    >>> solver.met
    True
    >>> print(solver.line())  # doctest: +NORMALIZE_WHITESPACE
    {"figure": "solver_time_vs_fasterpam", "value": 0.2134, "goal": 0.25, "better": "lower",
     "beside": "kmedoids.fasterpam 0.5.5", "runs": 5}
    """

    figure: str
    value: float
    goal: float
    better: Literal["lower", "higher"]
    beside: str
    runs: int

    def __post_init__(self) -> None:
        if self.better not in ("lower", "higher"):
            raise ValueError(f"Expected better to be lower or higher, got {self.better!r}.")

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.value <= self.goal if self.better == "lower" else self.value >= self.goal

    def line(self) -> str:
        """Write the figure as one JSON object, the value to four digits."""
        return json.dumps(asdict(self) | {"value": float(f"{self.value:.4g}")})


def main(measure: Measure, description: str) -> None:
    """Run a benchmark from the command line.

    Parameters
    ----------
    measure : callable
        ``measure(quick)`` returns or yields the figures; ``quick`` asks for about a minute.
    description : str
        First line of ``--help``.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of a table")
    parser.add_argument("--quick", action="store_true", help="about a minute: fewer runs, smaller peers")
    options = parser.parse_args()
    figures = measure(options.quick)
    if options.json:
        for figure in figures:
            print(figure.line(), flush=True)
    else:
        _table(description, figures)


def _table(title: str, figures: Iterable[Figure]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("figure", no_wrap=True)
    for heading in ("value", "goal", "met", "beside", "runs"):
        table.add_column(heading)
    for f in figures:
        goal = f"{'≤' if f.better == 'lower' else '≥'} {f.goal:g}"
        table.add_row(f.figure, f"{f.value:.4g}", goal, "yes" if f.met else "no", f.beside, str(f.runs))
    Console().print(table)


__all__ = ["Figure", "main"]
