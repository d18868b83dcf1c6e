"""Paper 002: optimal transport of a private source (DPOT, DPDA)."""

from __future__ import annotations

from typing import Any

from privada_lab.experiments.papers.item import Cell, PaperItem

DPOT = "one attribute that moves by 1 (noise 1.3 times too large there); one record: false"
DPDA = "none: rows are sorted by label, and counts have L1 sensitivity 2"
BATCHES = "record level: only with noise for whole records; one attribute: sampling does not amplify"
OFFICE = "Office, GoogLeNet features"
BATCHED = f"Wasserstein error, batches of 128: {OFFICE}*"
WHOLE = f"Wasserstein error, whole sets: {OFFICE}*"


def items() -> tuple[PaperItem, ...]:
    """Rows of the page."""

    def item(name: str, shows: str, *, true: str = DPDA, **more: Any) -> PaperItem:
        return PaperItem(paper="002", name=name, shows=shows, experiment="transport", true=true, **more)

    return (
        item(
            "Figure 1",
            "the two parties and what they send",
            true=DPOT,
            printed="a drawing",
            missing="A drawing without numbers; ours is [one way](../explanation/one-way.md).",
        ),
        item(
            "Figure 2, left",
            "error of the private distance against noise, whole sets; `private_wasserstein` returns the "
            "plan, too",
            true=DPOT,
            claimed="ε = 4, 5, 10 at ratio 1.25, 1.04, .61",
            printed="22 % at ε = 4 (ratio 1.25), 8 % at ε = 10 (ratio .61), on Office-Home",
            cells=(
                Cell(WHOLE, "corrected", "0.7", "corrected, ratio .7:"),
                Cell(WHOLE, "corrected", "1.3", "1.3:"),
                Cell(WHOLE, "uncorrected", "1.3", "uncorrected, 1.3:"),
            ),
            exhibits=("Wasserstein error, *whole sets*",),
        ),
        item(
            "Figure 2, right",
            "error of the private distance against noise, batches of 128",
            true=BATCHES,
            claimed="ε = 3, 5, 7 for 200, 600, 1,200 batches at ratio 1",
            printed="7, 10, 15 % at ratio .7, 1, 1.3",
            cells=(
                Cell(BATCHED, "corrected", "0.7", "corrected, ratio .7:"),
                Cell(BATCHED, "corrected", "1", "1:"),
                Cell(BATCHED, "corrected", "1.3", "1.3:"),
            ),
            figures=("wasserstein_error_*",),
            exhibits=("Wasserstein error, *batches*",),
        ),
        item(
            "Table 1",
            "Office-Caltech, accuracy on the target",
            claimed="ε = 8 (20 for dslr and webcam), δ = 1/(1.2 n)",
            printed="means: PATE 80.2, DPDA 91.2, OTDA 93.0, ADDA 92.3; amazon to dslr: 88.5, 91.0, 94.2, "
            "91.7",
            cells=(
                Cell(f"{OFFICE}: Table 1's form", "amazon to dslr", "PATE, ε = 4", "amazon to dslr: PATE"),
                Cell(f"{OFFICE}: Table 1's form", "amazon to dslr", "DPDA printed, batches", "DPDA printed"),
                Cell(f"{OFFICE}: Table 1's form", "amazon to dslr", "OTDA", "OTDA"),
                Cell(f"{OFFICE}: Table 1's form", "amazon to dslr", "ADDA", "ADDA"),
                Cell(f"{OFFICE}: Table 1's form", "amazon to dslr", "ours, ε = 4", "ours at ε = 4"),
            ),
            figures=(
                "*_mean_eps4",
                "mean_gap_*",
                "googlenet_[AW]*",
                "*_points_over_*",
                "smallest_margin_*",
            ),
            exhibits=("*: Table 1's form", "*, mean over pairs"),
            missing="The paper's DeCAF features are not among the data (there is a reader); GoogLeNet and "
            "SURF features of the same images, reviews and digits stand in. Printed DPDA comes near the "
            "paper on raw features only, where its noise is small beside a row; on rows of norm 1 it does "
            "not (`--out DIR` writes all rows).",
        ),
        item(
            "Table 2",
            "VisDA, accuracy for each class",
            claimed="ε = 2, δ = 1/(1.2 n)",
            printed="all: PATE 60.6, DPDA 68.8, OTDA 69.1, ADDA 67.3; from 7.0 (PATE, truck) to 96.2",
            cells=(
                Cell(f"{OFFICE}*: accuracy for each class*", "all", "PATE", "Office, all: PATE"),
                Cell(f"{OFFICE}*: accuracy for each class*", "all", "ours", "ours"),
            ),
            exhibits=("*accuracy for each class*",),
            missing="VisDA's features are not among the data (there is a reader); the tables have "
            "the same form for the benchmarks that are there.",
        ),
        item(
            "Table 3",
            "Office-Home, unsupervised and with one label for each class",
            claimed="ε = 8, δ = 1/(1.2 n)",
            printed="means: PATE 52.1, DPDA 54.8, OTDA 57.9, ADDA 56.9; with labels: target only 43.3, "
            "DPDA 60.0, OTDA 61.2",
            cells=(
                Cell(
                    f"{OFFICE}: one label for each class",
                    "amazon to dslr",
                    "target only",
                    "amazon to dslr: target only",
                ),
                Cell(f"{OFFICE}: one label for each class", "amazon to dslr", "DPDA printed", "DPDA printed"),
                Cell(f"{OFFICE}: one label for each class", "amazon to dslr", "OTDA", "OTDA"),
                Cell(f"{OFFICE}: one label for each class", "amazon to dslr", "ours, ε = 4", "ours at ε = 4"),
            ),
            exhibits=("Office-Home*Table 1's form", "*: one label for each class"),
            missing="Office-Home's features are not among the data (there is a reader); the benchmarks that "
            "are there stand in.",
        ),
    )


__all__ = ["items"]
