"""Paper 001: learning from a hidden target by error marginals (EXPRIL)."""

from __future__ import annotations

from typing import Any

from privada_lab.experiments.papers.item import Cell, PaperItem

CLAIMED = "ε = 1, one target record"
TRUE = "none in general: noisy counts are divided by exact ones, and a missing value is passed on"
FORM = "Table 2 in the paper's form*"


def items() -> tuple[PaperItem, ...]:
    """Rows of the page."""

    def item(name: str, shows: str, **more: Any) -> PaperItem:
        settings = {"claimed": CLAIMED, "true": TRUE} | more
        return PaperItem(paper="001", name=name, shows=shows, experiment="marginals", **settings)

    return (
        item(
            "Table 1",
            "settings of A to E and CTG",
            claimed="",
            true="",
            printed="2 or 3 queries; 2,500, 5,000 and 700 target rows",
            exhibits=("Table 1: settings",),
        ),
        item(
            "Table 2",
            "accuracies of C- and I-EXPRIL, with and without privacy, and the ratio indicator",
            printed="1DP-C-EXPRIL: A 74.0, C 85.8, E 63.0, CTG-A 73.0 (majority 77.7); ratio .045 to .27",
            cells=(
                Cell(FORM, "A", "1DP-C-EXPRIL", "1DP-C-EXPRIL (in the paper): A"),
                Cell(FORM, "C", "1DP-C-EXPRIL", "C"),
                Cell(FORM, "E", "1DP-C-EXPRIL", "E"),
                Cell(FORM, "ctg_a", "1DP-C-EXPRIL", "CTG-A"),
                Cell(FORM, "A", "ours, ε = 1", "ours at ε = 1: A"),
                Cell(FORM, "C", "ours, ε = 1", "C"),
                Cell(FORM, "E", "ours, ε = 1", "E"),
                Cell(FORM, "ctg_a", "ours, ε = 1", "CTG-A"),
            ),
            figures=(
                "any_quarter_margin",
                "any_margin_over_trivial",
                "any_pure_*",
                "marginal_pure_*",
                "ctg*",
            ),
            exhibits=(FORM, "Accuracy on a hidden target"),
        ),
        item(
            "C-EXPRIL against I-EXPRIL",
            "paired test of the two algorithms on the same runs; from six runs on",
            printed="C-EXPRIL significantly ahead (95 %, 100 runs) on all sets but B and C, with and without "
            "privacy",
            figures=("expril_cumulative_*",),
        ),
        item(
            "Figure 1",
            "accuracy after each query, less that of the model trained on the target",
            printed="curves at ε = 1 and without privacy: level after the first query, but on A",
            exhibits=("*learning curves*",),
            cells=(
                Cell("A: learning curves*", "printed C-EXPRIL", "1", "A, printed C-EXPRIL after 1 query"),
                Cell("A: learning curves*", "printed C-EXPRIL", "3", "after 3"),
            ),
        ),
        item(
            "Problem 2's bins",
            "bins that hold as much of the *weighted* source each, where there is an importance step: "
            "`paper_expril(weighted_bins=True)`",
            printed="used throughout; no number of its own",
            cells=(
                Cell("Printed EXPRIL by its bins", "C", "weighted source", "C: weighted"),
                Cell("Printed EXPRIL by its bins", "C", "source", "unweighted"),
            ),
            exhibits=("Printed EXPRIL by its bins",),
        ),
    )


__all__ = ["items"]
