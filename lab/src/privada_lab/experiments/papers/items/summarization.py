"""Paper 004: training summaries from many owners."""

from __future__ import annotations

from typing import Any

from privada_lab.experiments.papers.item import Cell, PaperItem

CLAIMED = "D_v (1.4, 0.01), D_s (0.043, 1e-4)"
TRUE = "D_v up to 3.30, D_s up to 0.166 (replace-one); the auction: δ = 1 - e^-ε in each round, so none"
INCREASE, ACCURACY = "Figure 1 on the mnist shift: increase", "Figure 1 on the mnist shift: svm"
ABSENT = (
    "The Allstate set of the paper is not among the data (there is a reader); MNIST, which its appendix has, "
)


def items() -> tuple[PaperItem, ...]:
    """Rows of the page."""

    def item(name: str, shows: str, **more: Any) -> PaperItem:
        settings = {"experiment": "summarization-protocols", "claimed": CLAIMED, "true": TRUE} | more
        return PaperItem(paper="004", name=name, shows=shows, **settings)

    return (
        item(
            "Figure 1, top",
            "MMD² above greedy's against the size p: herding and sound rounds, the printed private greedy, "
            "uniform sampling",
            printed="curves: private greedy below uniform sampling at every p (Allstate)",
            cells=(
                Cell(INCREASE, "printed", "400", "MNIST, p = 400, % above greedy: printed"),
                Cell(INCREASE, "uniform", "400", "uniform"),
                Cell(INCREASE, "herding", "400", "ours: herding"),
                Cell(INCREASE, "rounds", "400", "rounds"),
            ),
            figures=("*_mmd2_*_p400",),
            exhibits=("Figure 1 on the * shift: increase",),
            missing=f"{ABSENT}and adult stand in.",
        ),
        item(
            "Figure 1, bottom",
            "accuracy of a linear SVM trained on the summary, against p",
            printed="curves: private greedy 6 to 10 points above uniform sampling, near greedy (Allstate)",
            cells=(
                Cell(ACCURACY, "printed", "400", "MNIST, p = 400, %: printed"),
                Cell(ACCURACY, "uniform", "400", "uniform"),
                Cell(ACCURACY, "greedy", "400", "greedy"),
                Cell(ACCURACY, "herding", "400", "ours: herding"),
                Cell(ACCURACY, "rounds", "400", "rounds"),
            ),
            figures=("*_svm_greedy_p400", "*_svm_[hpru]*_p400"),
            exhibits=("Figure 1 on the * shift: svm",),
            missing=f"{ABSENT}and adult stand in. A study runs the sound rounds with `rounds = true`.",
        ),
        item(
            "Appendix G",
            "the default on MNIST and adult, beside trivial rivals",
            experiment="summarization",
            printed="curves on MNIST: similar to Figure 1",
            figures=(
                "mmd2_p400",
                "worst_margin_over_uniform",
                "svm_points_*",
                "points_seen_over_p",
                "mmd2_p400_[degptu]*",
                "mmd2_p400_owners_*",
                "adult_*_points_over_*",
                "private_training_*",
                "*_worst_rank",
            ),
            exhibits=("* shift, four owners",),
        ),
        item(
            "Section F",
            "a curator that receives hashes of the points and no row",
            claimed="the curator learns distances only",
            true="none: a hash of one point is a function of its row",
            printed="no figure",
            figures=("*_svm_hashes_only_*",),
        ),
        item(
            "Points seen",
            "raw points that the curator receives, over p",
            printed="O(K^(1/3)) points for each of p",
            figures=("*_points_seen_*",),
        ),
        item(
            "Theorem 1",
            "no two of N points may have a kernel above 1/(N³ + 3N² + N)",
            claimed="",
            true="",
            printed="a condition",
            figures=("*_largest_kernel",),
        ),
        item(
            "Theorem 2",
            "the rule for T, ε and sizes: rows of D_v that it asks for (`prescribed_sizes`)",
            printed="|D_v| of the order √d log d log² p/ε_v, T = d², ε_v = ε/(16 T)",
            figures=("*_theorem_2_*",),
        ),
        item(
            "Printed parameters",
            "true ε of the noise that the paper prints",
            experiment="summarization",
            printed="1.4 for the validation set, 0.043 for the summary",
            figures=(
                "printed_true_epsilon_validation_replace_one",
                "printed_true_epsilon_summary_replace_one",
                "printed_true_epsilon_*",
            ),
        ),
        item(
            "Private auction",
            "how many owners the sound round protocol asks",
            experiment="summarization",
            claimed="(ε, δ) for an owner's point",
            true="none: the owner who wins is shown",
            printed="at most of the order K^(1/3)",
            figures=("rounds_*",),
            exhibits=("Owners that a private choice asks",),
        ),
    )


__all__ = ["items"]
