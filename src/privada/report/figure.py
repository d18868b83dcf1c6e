"""A figure: one measured number beside its goal, the same in every command.

``python -m benchmarks.NAME`` and ``privada reproduce NAME`` print figures, one
JSON object per line with ``--json``, else as a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from privada import _check
from privada.report.tables import Table


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes
    ----------
    figure : str
        Name, unique over all commands.
    value : float
        What was measured.
    goal : float or None
        The goal; None if there is none.
    better : "lower" or "higher"
        Which side of the goal is better.
    beside : str
        What it was measured against, with its version, in the same run.
    runs : int
        Number of runs behind the value.
    interval : (float, float), optional
        95 % interval of the value over the runs; written only where there is one.

    Examples
    --------
    >>> solver = Figure("solver_time_vs_fasterpam", 0.2134, 0.25, "lower", "kmedoids.fasterpam 0.5.5", 5)
    >>> solver.met
    True
    >>> print(solver.to_json_line())  # doctest: +NORMALIZE_WHITESPACE
    {"figure": "solver_time_vs_fasterpam", "value": 0.2134, "goal": 0.25, "better": "lower",
     "beside": "kmedoids.fasterpam 0.5.5", "runs": 5}
    """

    figure: str
    value: float
    goal: float | None
    better: str
    beside: str
    runs: int
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check.one_of(("higher", "lower"), better=self.better)
        _check.finite(value=self.value)
        _check.count(runs=self.runs)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.better == "lower" else self.value >= self.goal

    def to_dict(self) -> dict[str, Any]:
        """Plain form, numbers to four digits; the value to more where four would turn a miss into a hit.

        >>> Figure("ratio", 1.0004, 1.0, "lower", "", 30).to_dict()["value"]
        1.0004
        """
        shorter = (replace(self, value=_short(self.value, digits)) for digits in range(4, 18))
        value = next((each.value for each in shorter if each.met == self.met), self.value)
        plain = asdict(self) | {"value": value}
        interval = plain.pop("interval")
        return plain if interval is None else plain | {"interval": [_short(end) for end in interval]}

    def to_json_line(self) -> str:
        """One JSON object."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def figures_table(title: str, figures: Iterable[Figure]) -> Table:
    """Figures as a table."""
    rows = []
    for figure in figures:
        plain = figure.to_dict()
        low, high = plain.get("interval", (None, None))
        spread = "" if low is None else f"{low:g} to {high:g}"
        sign = "≤" if figure.better == "lower" else "≥"
        goal = "none set" if figure.goal is None else f"{sign} {figure.goal:g}"
        met = {None: "", True: "yes", False: "no"}[figure.met]
        value = f"{plain['value']:g}"
        rows.append((figure.figure, value, spread, goal, met, figure.beside, str(figure.runs)))
    columns = ("figure", "value", "95 % interval", "goal", "met", "beside", "runs")
    return Table(title=title, columns=columns, rows=tuple(rows)).without_empty_columns()


def _short(number: float, digits: int = 4) -> float:
    return float(f"{number:.{digits}g}")


__all__ = ["Figure", "figures_table"]
