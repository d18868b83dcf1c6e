"""Paper 000: clustering a target for a private source."""

from __future__ import annotations

from typing import Any

from privada_lab.experiments.papers.item import Cell, PaperItem

NNA = "true for norms of 1/2 at most, add/remove; false as stated"
NAS = "true if t < |S| is public and ties are stable"
BOTH = f"NNA: {NNA}; NAS: {NAS}"
PURE, ZCDP = "ε = 3, one source point", "ρ = 3, one source point"
SHOWN = ("mnist 6-9", "office amazon-webcam", "superconductivity high-mh")


def _cells(exhibit: str, row: str, columns: dict[str, str]) -> tuple[Cell, ...]:
    """Cells of one row, by what is said before each."""
    return tuple(Cell(exhibit, row, column, says) for says, column in columns.items())


def items() -> tuple[PaperItem, ...]:
    """Rows of the page."""

    def item(name: str, shows: str, claimed: str = PURE, true: str = BOTH, **more: Any) -> PaperItem:
        given: dict[str, Any] = {"name": name, "shows": shows, "claimed": claimed, "true": true}
        return PaperItem(paper="000", **({"experiment": "clustering"} | given | more))

    none: dict[str, str] = {"claimed": "", "true": ""}
    return (
        item(
            "Figure 1",
            "a run of NNA in the plane; here one of ours",
            true=NNA,
            printed="a picture: sanitised points lie among the source",
            exhibits=("A run on *",),
        ),
        item(
            "Figure 2",
            "the synthetic sets",
            **none,
            printed="a picture of each of three sets",
            exhibits=("The set *",),
        ),
        item(
            "Figure 3, top",
            "synthetic sets, pure ε: cost against k",
            printed="curves: NAS and NNA near STC, which sees the source; PrivateKmeans and DP-GAN no better "
            "than ClusterT, which ignores it",
            figures=("gap_closed_pure_*", "gap_closed_worst_k", "gap_closed_over_trivial"),
            exhibits=("Synthetic ?, pure",),
        ),
        item(
            "Figure 3, bottom",
            "three real pairs, pure ε: cost against k",
            printed="curves: NNA below ClusterT; NAS, PrivateKmeans and DP-GAN like ClusterT",
            figures=("real_pairs_ahead_of_printed", "real_pairs_not_behind_clustert", "real_pairs*"),
            exhibits=tuple(f"{pair}, pure" for pair in SHOWN),
        ),
        item(
            "Figure 3, bottom, all target points",
            "every pair with every target point, as the paper has them",
            experiment="clustering-all-targets",
            printed="the same curves",
            figures=("real_pairs_ahead_of_printed_all_targets", "real_pairs*_all_targets"),
            exhibits=("Every method on every pair, pure, all target points",),
        ),
        item(
            "Figures 4 and 5",
            "NAS by its number t of neighbours",
            claimed=f"{PURE}; ρ = 3",
            true=f"NAS: {NAS}",
            printed="curves for t = 75, 150, 300: results are not very sensitive to t",
            cells=_cells(
                "NAS by its number t of neighbours",
                "mnist 6-9",
                {
                    "gap closed (%), mnist 6-9, ρ = 3: t = 75:": "t = 75, zcdp",
                    "150:": "t = 150, zcdp",
                    "300:": "t = 300, zcdp",
                },
            ),
            exhibits=("NAS by its number t of neighbours",),
        ),
        item(
            "Figure 6",
            "synthetic sets, zCDP: cost against k",
            ZCDP,
            printed="curves as in Figure 3, with less noise",
            figures=("gap_closed_zcdp_*",),
            exhibits=("Synthetic ?, zcdp",),
        ),
        item(
            "Figures 7 to 56",
            "NAS and NNA with and without coreset (appendix C.3)",
            claimed=f"{PURE}; ρ = 3",
            printed="curves: coresets help NAS on synthetic sets and some pairs, and harm nowhere",
            cells=_cells(
                "With and without coreset, zcdp",
                "synthetic 3",
                {
                    "gap closed (%), synthetic 3, ρ = 3: NAS with coreset": "NAS, C = 0.05",
                    "without": "NAS, none",
                    "NNA with": "NNA, C = 0.05",
                    "NNA without": "NNA, none",
                },
            ),
            exhibits=("With and without coreset, *",),
        ),
        item(
            "Figures 57 to 104",
            "every method on every real pair (appendices C.4 and C.5); no picture each, but a table",
            claimed=f"{PURE}; ρ = 3",
            printed="curves for 24 pairs under both accountings",
            cells=_cells(
                "Every method on every pair, pure",
                "mnist 6-9",
                {
                    "gap closed (%), mnist 6-9, ε = 3: ours": "ours",
                    "NNA": "printed NNA",
                    "NAS": "printed NAS",
                },
            ),
            exhibits=("Every method on every pair, pure", "Every method on every pair, zcdp"),
        ),
        item(
            "Figures 105 to 176",
            "ClusterT, PrivateKmeans and DP-GAN with and without coreset (appendix C.6)",
            true="PrivateKmeans and DP-GAN: ours of them are sound",
            printed="curves: coresets change next to nothing for baselines",
            cells=_cells(
                "Baselines with and without coreset, pure",
                "mnist 6-9",
                {
                    "gap closed (%), mnist 6-9: PrivateKmeans": "PrivateKmeans",
                    "with coreset": "PrivateKmeans, coreset",
                    "DP-GAN": "DP-GAN",
                    "DP-GAN with coreset": "DP-GAN, coreset",
                },
            ),
            exhibits=("Baselines with and without coreset, *",),
        ),
        item(
            "Figures 177 and on",
            "run times of all private methods (appendix C.7)",
            **none,
            printed="bars: no significant differences (one core of an i9-9900K, and a GPU)",
            cells=_cells(
                "Run times*",
                "mnist 6-9",
                {"seconds, mnist 6-9: ours": "ours", "NNA": "printed NNA", "DP-GAN": "DP-GAN"},
            ),
            exhibits=("Run times*",),
        ),
        item(
            "Theorems 5.3, 5.9 and 5.11",
            "the printed NAS with (ε, δ), ε and ρ; of Theorem 5.3 the paper prints the order alone",
            claimed="(3, 1e-5), ε = 3, ρ = 3",
            true=f"NAS: {NAS}",
            printed="noise of the order √(nd ln 1/δ)/(tε), n√d/(tε), √(n/2ρ)/t",
            cells=_cells(
                "NAS by its guarantee",
                "synthetic 3",
                {
                    "gap closed (%), synthetic 3: 5.3:": "(3, 1e-5) (Theorem 5.3)",
                    "5.9:": "ε = 3 (Theorem 5.9)",
                    "5.11:": "ρ = 3 (Theorem 5.11)",
                },
            ),
            exhibits=("NAS by its guarantee",),
        ),
        item(
            "Observations 4.1, 4.2 and 5.8",
            "lower bounds: what no private method can avoid",
            claimed="bounds for (ε, δ)",
            true="the same, where so many separated points exist: the paper's number of them does not, from "
            "seven dimensions on",
            printed="in the unit ball: 1/4; 1/(2k+4), so .023 at k = 20; Δᵗ(S)/(k+2)",
            cells=_cells(
                "Lower bounds",
                "20",
                {
                    "in the ball of radius 1/2, k = 20: 4.1:": "4.1: one row moves the cost by",
                    "4.2:": "4.2: no method avoids",
                    "5.8:": "5.8: with this Δᵗ(S)",
                },
            ),
            exhibits=("Lower bounds",),
        ),
        item(
            "The solver",
            "accelerated k-medoids of de Mathelin et al. 2022, which the paper uses, beside ours; more "
            "points by `python -m benchmarks.clustering`",
            claimed="not private",
            true="not private",
            printed="none of its own: it is taken from the other paper",
            cells=_cells(
                "The solver*",
                "synthetic 1",
                {"cost, synthetic 1, k = 20: ours": "cost, ours", "accelerated": "cost, accelerated"},
            ),
            exhibits=("The solver*",),
        ),
        item(
            "Social networks",
            "the paper's first use, with distances that are not Euclidean: `learn_nodes` chooses among "
            "public nodes by a matrix of distances",
            claimed="none printed",
            true="ours: counts of public cells",
            printed="a motive, no figure",
            cells=(
                *_cells(
                    "Promoters in a network", "ours", {"mean steps, ε = 3: ours": "mean steps to a promoter"}
                ),
                *_cells(
                    "Promoters in a network",
                    "ClusterT: members ignored",
                    {"members ignored": "mean steps to a promoter"},
                ),
            ),
            exhibits=("Promoters in a network",),
        ),
    )


__all__ = ["items"]
