"""Paper 001: learning from a hidden target by error marginals (EXPRIL)."""

from __future__ import annotations

from privada.lab.experiments.papers.item import PaperItem

CLAIMED = "ε = 1, one target record"
TRUE = "none in general: noisy counts are divided by exact ones, and a missing value is passed on"


def items() -> tuple[PaperItem, ...]:
    """Rows of the page."""
    return (
        PaperItem(
            paper="001",
            name="Tables 1 and 2",
            shows="settings of A to E and CTG; accuracies of C- and I-EXPRIL, with and without privacy",
            experiment="marginals",
            figures=("any_*", "marginal_pure_*", "CTG*", "ctg*"),
            exhibits=("Table 2*", "Accuracy on a hidden target"),
            printed="in the table's own column",
            claimed=CLAIMED,
            true=TRUE,
        ),
        PaperItem(
            paper="001",
            name="C- against I-EXPRIL",
            shows="paired test of the two algorithms, in runs that are not quick",
            experiment="marginals",
            figures=("expril_cumulative_*",),
            printed="C-EXPRIL ahead but on B and C",
            claimed=CLAIMED,
            true=TRUE,
        ),
        PaperItem(
            paper="001",
            name="Figure 1",
            shows="accuracy after each query",
            experiment="marginals",
            exhibits=("*learning curves*",),
            claimed=CLAIMED,
            true=TRUE,
        ),
    )


__all__ = ["items"]
