"""Accuracies by method over runs: means, errors, paired tests, and the table beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from privada.lab.experiments.marginals.sets import PRINTED, Setting
from privada.report.tables import Table

LEAST_PAIRS = 6  # below which no signed-rank test can be significant at 5 %
NAMES = {"C-EXPRIL": "C-EXPRIL, no privacy", "I-EXPRIL": "I-EXPRIL, no privacy"}
NAMES |= {"1DP-C-EXPRIL": "printed", "1DP-I-EXPRIL": "printed, instantaneous"}


@dataclass
class Scores:
    """Accuracies in percent by method; the runs of a method that few runs measured are the first ones."""

    found: dict[str, list[float]] = field(default_factory=dict)

    def note(self, run: Mapping[str, float]) -> None:
        """Add one run."""
        for method, value in run.items():
            self.found.setdefault(method, []).append(value)

    def mean(self, method: str) -> float:
        """Mean over runs."""
        return float(np.mean(self.found[method]))

    def error(self, method: str) -> float:
        """Standard error of the mean."""
        values = np.asarray(self.found[method])
        return float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else 0.0

    def interval(self, method: str) -> tuple[float, float]:
        """Mean and twice its standard error, both ways."""
        half = 2 * self.error(method)
        return self.mean(method) - half, self.mean(method) + half

    def over(self, other: str) -> tuple[float, tuple[float, float]]:
        """Points of ours over another method on the same runs, and the interval of their mean."""
        apart = Scores({"any": np.subtract(self.found["any"], self.found[other]).tolist()})
        return apart.mean("any"), apart.interval("any")

    def beside(self) -> str:
        """All methods in words, and the paired test of ours against the printed one."""
        names = [name for name in self.found if name != "any"]
        return ", ".join(f"{name} {self.mean(name):.1f}" for name in names) + f"; {self.paired('printed')}"

    def paired(self, other: str) -> str:
        """Wilcoxon's signed-rank test of ours against another method on the same runs."""
        from scipy.stats import wilcoxon

        theirs = np.asarray(self.found[other])
        ours = np.asarray(self.found["any"])[: len(theirs)]
        if len(ours) < LEAST_PAIRS or np.allclose(ours, theirs):
            return "too few runs to test"
        return f"Wilcoxon p = {wilcoxon(ours, theirs).pvalue:.1g}"


def table_two(found: Mapping[str, tuple[Setting, Scores]]) -> Table:
    """The paper's Table 2, what we measure of the same methods, and our rows."""
    rows = []
    for name, (setting, scores) in found.items():
        paper = {
            NAMES.get(method, method): value for method, value in zip(PRINTED, setting.paper, strict=True)
        }
        for method in scores.found:
            test = "" if method == "any" else scores.paired(method)
            measured = f"{scores.mean(method):.1f} ± {scores.error(method):.1f}"
            printed = f"{paper[method]:.1f}" if method in paper else ""
            rows.append((name, method, measured, printed, str(len(scores.found[method])), test))
    return Table(
        title="Table 2: accuracy in percent (mean ± standard error), beside what the paper prints",
        columns=("set", "method", "measured", "in the paper", "runs", "ours (any) against it"),
        rows=tuple(rows),
    )


__all__ = ["LEAST_PAIRS", "Scores", "table_two"]
