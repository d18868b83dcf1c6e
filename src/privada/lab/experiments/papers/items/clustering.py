"""Paper 000: clustering a target for a private source."""

from __future__ import annotations

from typing import Any

from privada.lab.experiments.papers.item import PaperItem

NNA = "true for norms of 1/2 at most, add-remove; false as stated"
BOTH = f"NNA: {NNA}; NAS: true if t < |S| is public and ties are stable"
PURE, ZCDP = "ε = 3, one source point", "ρ = 3, one source point"


def items() -> tuple[PaperItem, ...]:
    """Rows of the page."""

    def item(name: str, shows: str, claimed: str = PURE, true: str = BOTH, **more: Any) -> PaperItem:
        given: dict[str, Any] = {"name": name, "shows": shows, "claimed": claimed, "true": true}
        return PaperItem(paper="000", **({"experiment": "clustering"} | given | more))

    real, synthetic = ("Real pairs*",), ("Synthetic sets*",)
    return (
        item("Figure 1", "a run of NNA in the plane", true=NNA, exhibits=("A run on *",)),
        item("Figure 2", "the synthetic sets", claimed="", true="", exhibits=("The set *",)),
        item(
            "Figure 3, top",
            "synthetic sets, pure ε: cost against k",
            figures=("gap_closed_pure_*", "gap_closed_worst_k", "gap_closed_over_trivial"),
            exhibits=("[sS]ynthetic * pure*",),
        ),
        item("Figure 3, bottom", "real pairs, pure ε", figures=("real_pairs*",), exhibits=real),
        item(
            "Figure 3, bottom, all target points",
            "the same with every target point, as the paper has them",
            experiment="clustering-all-targets",
            figures=("real_pairs*_all_targets",),
            exhibits=("Real pairs*all target points",),
        ),
        item("Figures 4 and 5", "NAS by its number t of neighbours, real pairs", exhibits=real),
        item(
            "Figure 6",
            "synthetic sets, zCDP",
            ZCDP,
            figures=("gap_closed_zcdp_*",),
            exhibits=("[sS]ynthetic * zcdp*",),
        ),
        item("Figures 7 to 56", "NAS and NNA with and without coreset", exhibits=synthetic + real),
        item("Figures 57 and on", "every method on every real pair", exhibits=real),
        item(
            "Observations 4.1, 4.2 and 5.8",
            "lower bounds of what privacy costs",
            claimed="bounds for (ε, δ)",
            true="the same, where k can be met",
            missing="Functions, not an experiment: `lower_bound`, `cost_sensitivity` and "
            "`lower_bound_beside_radius` of `privada.methods.clustering`, and `unavoidable_error_` "
            "of its estimator.",
        ),
        item("Run times", "all private methods side by side", exhibits=synthetic),
        item(
            "The solver",
            "accelerated k-medoids of de Mathelin et al. 2022, which the paper uses, beside ours",
            claimed="not private",
            true="not private",
            missing="A benchmark, not an experiment: `python -m benchmarks.clustering` prints "
            "`solver_time_vs_accelerated` and `solver_cost_vs_accelerated`.",
        ),
        item(
            "Networks",
            "distances that are not Euclidean: the paper's use in a social network",
            claimed="none printed",
            true="ours: counts of public cells, any relation",
            missing="No figure is printed. `learn_nodes` and `NodeCells` of `privada.methods.clustering` "
            "choose among public nodes with a matrix of distances.",
        ),
    )


__all__ = ["items"]
