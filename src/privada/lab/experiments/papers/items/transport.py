"""Paper 002: optimal transport of a private source (DPOT, DPDA)."""

from __future__ import annotations

from typing import Any

from privada.lab.experiments.papers.item import PaperItem

DPOT = "one attribute that moves by 1 (noise 1.3 times too large there); one record: false"
DPDA = "none: rows are sorted by label, and counts have L1 sensitivity 2"
BATCHES = "record level: only with noise for whole records; one attribute: sampling does not amplify"


def items() -> tuple[PaperItem, ...]:
    """Rows of the page."""

    def item(name: str, shows: str, *, true: str = DPDA, **more: Any) -> PaperItem:
        return PaperItem(paper="002", name=name, shows=shows, experiment="transport", true=true, **more)

    return (
        item(
            "Figure 1",
            "the two parties and what they send",
            true=DPOT,
            missing="A drawing without numbers; ours is [one way](../explanation/one-way.md).",
        ),
        item(
            "Figure 2, left",
            "error of the private distance, whole sets",
            true=DPOT,
            claimed="ε = 4, 5, 10 at ratio 1.25, 1.04, .61",
            printed="22 % at ε = 4, 8 % at ε = 10",
            exhibits=("Wasserstein error, *whole sets*",),
        ),
        item(
            "Figure 2, right",
            "error of the private distance, batches of 128",
            true=BATCHES,
            claimed="ε = 3, 5, 7 for 200, 600, 1,200 batches at ratio 1",
            printed="7, 10, 15 % at ratio .7, 1, 1.3",
            figures=("wasserstein_error_*",),
            exhibits=("Wasserstein error, *batches*",),
        ),
        item(
            "Table 1",
            "Office-Caltech, accuracy on the target",
            claimed="ε = 8 (20 for dslr and webcam), δ = 1/(1.2 n)",
            printed="means: PATE 80.2, DPDA 91.2, OTDA 93.0, ADDA 92.3",
            figures=("googlenet_*", "surf_*", "mean_gap_*", "reviews_*", "smallest_margin_*"),
            exhibits=("*accuracy on the target*",),
            missing="The paper's DeCAF features are not among the data (there is a reader); GoogLeNet and "
            "SURF features of the same images, and Amazon reviews, stand in.",
        ),
        item(
            "Table 2",
            "VisDA, accuracy for each class",
            claimed="ε = 2, δ = 1/(1.2 n)",
            printed="all: PATE 60.6, DPDA 68.8, OTDA 69.1, ADDA 67.3",
            exhibits=("*accuracy for each class*",),
            missing="VisDA's features are not among the data (there is a reader); the table has "
            "the same form for the benchmarks that are there.",
        ),
        item(
            "Table 3",
            "Office-Home, unsupervised and with one label for each class",
            claimed="ε = 8, δ = 1/(1.2 n)",
            printed="means: PATE 52.1, DPDA 54.8, OTDA 57.9, ADDA 56.9; semi-supervised: 43.3, 60.0, 61.2",
            exhibits=("Office-Home*",),
            missing="Office-Home's features are not among the data (there is a reader); the rows with "
            "one label for each class stand in Table 1's exhibits, in runs that are not quick.",
        ),
    )


__all__ = ["items"]
