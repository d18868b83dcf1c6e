"""Paper 004: training summaries from many owners."""

from __future__ import annotations

from privada.lab.experiments.papers.item import PaperItem

CLAIMED = "(1.4, 0.01) for the validation set"
TRUE = "`printed_true_epsilon_*`; the auction: δ = 1 - e^-ε in each round, so none"


def items() -> tuple[PaperItem, ...]:
    """Rows of the page."""
    return (
        PaperItem(
            paper="004",
            name="Figure 1, top",
            shows="MMD² over greedy's against the size p",
            experiment="summarization",
            figures=("mmd2_p400*", "*_increase_*", "worst_margin_over_uniform", "points_seen_over_p"),
            exhibits=("* shift, four owners",),
            printed="private better than uniform at every p (Allstate)",
            claimed=CLAIMED,
            true=TRUE,
            missing="The Allstate claims are not among the data; MNIST (its appendix) and adult stand in.",
        ),
        PaperItem(
            paper="004",
            name="Figure 1, bottom",
            shows="accuracy of models trained on the summary",
            experiment="summarization",
            figures=("svm_points_*", "adult_*_points_over_*", "private_training_*"),
            printed="6 to 10 points over uniform, close to greedy",
            claimed=CLAIMED,
            true=TRUE,
        ),
        PaperItem(
            paper="004",
            name="Figure 1, protocols",
            shows="greedy, herding, the sound rounds, the printed private greedy and uniform sampling, all p",
            experiment="summarization-protocols",
            figures=("*_mmd2_*_p400", "*_svm_*_p400"),
            exhibits=("Figure 1 on *",),
            claimed="D_v (1.4, 0.01), D_s (0.043, 1e-4)",
            true="D_v up to 3.30, D_s up to 0.166 (replace-one); the auction: none",
        ),
        PaperItem(
            paper="004",
            name="Section F",
            shows="a curator that receives hashes of the points and no row",
            experiment="summarization-protocols",
            figures=("*_svm_hashes_only_*",),
            claimed="none: hashes are sent as they are",
            true="none: a hash of one point is a function of its row",
        ),
        PaperItem(
            paper="004",
            name="Theorems 1 and 2",
            shows="the condition on the kernel, the sizes asked for, points that the curator sees",
            experiment="summarization-protocols",
            figures=("*_largest_kernel", "*_theorem_2_*", "*_points_seen_*"),
        ),
        PaperItem(
            paper="004",
            name="Printed parameters",
            shows="true ε of the noise that the paper prints",
            experiment="summarization",
            figures=("printed_true_epsilon_*",),
            claimed=CLAIMED,
            true=TRUE,
        ),
        PaperItem(
            paper="004",
            name="Private auction",
            shows="how many owners the sound round protocol asks",
            experiment="summarization",
            figures=("rounds_*",),
            exhibits=("Owners that a private choice asks",),
            claimed="(0.5, 1e-4) for an owner's point",
            true="none: the owner who wins is shown",
        ),
    )


__all__ = ["items"]
