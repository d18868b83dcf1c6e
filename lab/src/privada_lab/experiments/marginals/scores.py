"""Accuracies by method over runs: means, errors, paired tests, and the table beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from privada.report.exhibit import Dots
from privada.report.tables import Table
from privada_lab.datasets.hidden_target import HiddenTarget
from privada_lab.experiments.marginals.sets import PRINTED, Setting

ROUNDS = 2  # of EXPRIL, beside its importance step
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

    def deviation(self, method: str) -> float:
        """Standard deviation over runs."""
        values = np.asarray(self.found[method])
        return float(values.std(ddof=1)) if len(values) > 1 else 0.0

    def error(self, method: str) -> float:
        """Standard error of the mean."""
        return self.deviation(method) / float(np.sqrt(len(self.found[method])))

    def ratio(self, method: str) -> float:
        """Table 2's indicator: what is lost of the accuracy of the model trained on the target."""
        count = len(self.found[method])
        best = float(np.mean(self.found["target-trained"][:count]))
        return (best - self.mean(method)) / best

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

    def paired(self, other: str, method: str = "any") -> str:
        """Wilcoxon's signed-rank test of a method, ours by default, against another on the same runs."""
        from scipy.stats import wilcoxon

        theirs = np.asarray(self.found[other])
        ours = np.asarray(self.found[method])[: len(theirs)]
        if len(ours) < LEAST_PAIRS or np.allclose(ours, theirs):
            return "too few runs to test"
        return f"Wilcoxon p = {wilcoxon(ours, theirs).pvalue:.1g}"


def table_two(found: Mapping[str, tuple[Setting, Scores]]) -> Table:
    """The paper's Table 2, what we measure of the same methods, and our rows."""
    rows = []
    for name, (setting, scores) in found.items():
        paper = _printed_cells(setting)
        for method in scores.found:
            test = "" if method == "any" else scores.paired(method)
            measured = f"{scores.mean(method):.1f} ± {scores.error(method):.1f}"
            spread, ratio = f"{scores.deviation(method):.1f}", f"{scores.ratio(method):.3f}"
            of_paper = paper.get(method, ("", ""))
            rows.append(
                (name, method, measured, spread, ratio, *of_paper, str(len(scores.found[method])), test)
            )
    columns = ("set", "method", "measured", "deviation", "ratio", "in the paper", "ratio in the paper")
    return Table(
        title="Table 2: accuracy in percent (mean ± standard error; the paper: ± deviation over runs)",
        columns=(*columns, "runs", "ours (any) against it"),
        rows=tuple(rows),
    )


FORM = {  # Table 2's columns: the name here, and its place in the paper's row
    "ĥ*": ("target-trained", 0),
    "C-EXPRIL": ("C-EXPRIL, no privacy", 1),
    "I-EXPRIL": ("I-EXPRIL, no privacy", 2),
    "1DP-C-EXPRIL": ("printed", 3),
    "1DP-I-EXPRIL": ("printed, instantaneous", 4),
    "h₀*": ("majority", 5),
}


def table_two_form(found: Mapping[str, tuple[Setting, Scores]]) -> Table:
    """Table 2 as the paper has it: what is measured, the paper's number in brackets, and ours."""
    rows = []
    for name, (setting, scores) in found.items():
        cells = [
            f"{scores.mean(method):.1f} ({setting.paper[place]:.1f})"
            for method, place in FORM.values()
            if method in scores.found
        ]
        if len(cells) < len(FORM):
            continue
        ratio = f"{scores.ratio('C-EXPRIL, no privacy'):.3f} ({setting.ratio:.2g})"
        ours = [f"{scores.mean(method):.1f}" for method in ("any", "any at 0.25")]
        rows.append((name, *cells, ratio, *ours))
    return Table(
        title="Table 2 in the paper's form: measured (printed)",
        columns=("set", *FORM, "ratio", "ours, ε = 1", "ours, ε = 0.25"),
        rows=tuple(rows),
        note="Percent; 1DP: ε = 1 as claimed. Ours: pure ε, add/remove one row.",
    )


def bins_table(found: Mapping[str, tuple[Setting, Scores]]) -> Table:
    """The printed method with bins of the source and of the weighted source, on the same runs."""
    rows = []
    for name, (_, scores) in found.items():
        weighted = scores.found.get("printed, weighted bins")
        if weighted:
            plain = float(np.mean(scores.found["printed"][: len(weighted)]))
            rows.append((name, f"{plain:.1f}", f"{np.mean(weighted):.1f}", str(len(weighted))))
    return Table(
        title="Printed EXPRIL by its bins",
        columns=("set", "source", "weighted source", "runs"),
        rows=tuple(rows),
        note="Accuracy of 1DP-C-EXPRIL in percent.",
    )


def settings_table(found: Mapping[str, tuple[Setting, HiddenTarget]]) -> Table:
    """Table 1: queries, sizes and networks."""
    rows = [
        (
            name,
            str(ROUNDS + setting.reweight),
            "yes" if setting.reweight else "no",
            str(len(data.X) + len(data.X_test)),
            str(data.X.shape[1]),
            str(list(setting.shape)),
        )
        for name, (setting, data) in found.items()
    ]
    columns = ("set", "queries", "importance step", "target rows", "features", "hidden layers")
    note = "As in the paper, but for the features of CTG, of which it has 22 and the file 21."
    return Table(title="Table 1: settings", columns=columns, rows=tuple(rows), note=note)


def _printed_cells(setting: Setting) -> dict[str, tuple[str, str]]:
    """What the paper prints of a set: mean and deviation by method, and the ratio of C-EXPRIL."""
    values = zip(PRINTED, setting.paper, setting.deviations, strict=True)
    return {
        NAMES.get(method, method): (
            f"{mean:.1f} ± {spread:.1f}",
            f"{setting.ratio:.2g}" if method == "C-EXPRIL" else "",
        )
        for method, mean, spread in values
    }


def dots(title: str, found: Mapping[str, Scores]) -> Dots:
    """Mean accuracies of the methods that were measured on every set."""
    common = [
        name for name in next(iter(found.values())).found if all(name in s.found for s in found.values())
    ]
    means = {name: [scores.mean(name) for scores in found.values()] for name in common}
    return Dots(title=title, xlabel="accuracy (%)", places=tuple(found), methods=means)


__all__ = ["LEAST_PAIRS", "Scores", "bins_table", "dots", "settings_table", "table_two", "table_two_form"]
