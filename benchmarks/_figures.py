"""What every benchmark prints: figures, as a table or as one JSON object a line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from privada.report.exhibit import Figure, figures_table

Measure = Callable[[bool], Iterable[Figure]]


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
            print(figure.to_json_line(), flush=True)
    else:
        from rich.console import Console

        Console().print(figures_table(description, figures).to_rich())


__all__ = ["Figure", "main"]
