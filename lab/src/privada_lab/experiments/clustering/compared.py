"""Methods side by side, as the paper's appendix compares them: a row for each set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from privada.report.tables import Table
from privada_lab.experiments.clustering.costs import Costs

WITH_DELTA = "printed NAS delta"
NOTE = "Percent of the gap between ClusterT and STC, summed over k."
BASELINES = ("PrivateKmeans", "TreeKmeans", "DP-GAN")
RIVALS = ("printed NNA", "printed NAS", "noisy mean", "noisy cells", *BASELINES)
Sets = Mapping[str, Costs]


def ablation_tables(sets: Sets) -> Iterator[Table]:
    """What the appendix varies: t, coresets, the accounting of NAS; and run times."""
    yield gaps(sets, _neighbours(), title="NAS by its number t of neighbours")
    yield gaps(sets, _accountings(), title="NAS by its guarantee")
    for accounting in ("pure", "zcdp"):
        yield gaps(sets, _coresets(accounting), title=f"With and without coreset, {accounting}")
        yield gaps(sets, _baselines(accounting), title=f"Baselines with and without coreset, {accounting}")
    yield run_times(sets, title="Run times: seconds for all k")


def method_tables(sets: Sets) -> Iterator[Table]:
    """All methods on all sets, one table for each accounting."""
    for accounting in ("pure", "zcdp"):
        methods = {"ours": accounting} | {each: f"{each} {accounting}" for each in RIVALS}
        yield gaps(sets, methods | {"uniform": "uniform"}, title=f"Every method on every pair, {accounting}")


def gaps(sets: Sets, methods: Mapping[str, str], *, title: str) -> Table:
    """Share of the gap closed by methods, by the heads of their columns; sets without any are left out.

    >>> costs = Costs(found={"ClusterT": {5: [3.0]}, "STC": {5: [1.0]}, "pure": {5: [1.5]}})
    >>> gaps({"a": costs}, {"ours": "pure", "none": "gone"}, title="t").rows
    (('a', '75.0'),)
    """
    rows = [
        (name, *(f"{costs.gap_closed(each):.1f}" if each in costs.found else "" for each in methods.values()))
        for name, costs in sets.items()
        if any(each in costs.found for each in methods.values())
    ]
    table = Table(title=title, columns=("set", *methods), rows=tuple(rows), note=NOTE)
    return table.without_empty_columns()


def run_times(sets: Sets, *, title: str) -> Table:
    """Mean seconds of one run at ε = 3, the solver included."""
    methods = {"ours": "pure"} | {each: f"{each} pure" for each in RIVALS}
    rows = [
        (
            name,
            *(
                f"{np.mean(costs.seconds[each]):.2f}" if each in costs.seconds else ""
                for each in methods.values()
            ),
        )
        for name, costs in sets.items()
    ]
    return Table(title=title, columns=("set", *methods), rows=tuple(rows)).without_empty_columns()


def _neighbours() -> dict[str, str]:
    names = {75: "printed NAS t=75", 150: "printed NAS", 300: "printed NAS t=300"}
    return {
        f"t = {t}, {accounting}": f"{name} {accounting}"
        for accounting in ("pure", "zcdp")
        for t, name in names.items()
    }


def _accountings() -> dict[str, str]:
    return {
        "ε = 3 (Theorem 5.9)": "printed NAS pure",
        "(3, 1e-5) (Theorem 5.3)": f"{WITH_DELTA} pure",
        "ρ = 3 (Theorem 5.11)": "printed NAS zcdp",
    }


def _coresets(accounting: str) -> dict[str, str]:
    return {
        "NAS, C = 0.05": f"printed NAS {accounting}",
        "NAS, none": f"printed NAS no coreset {accounting}",
        "NAS, C by its bound": f"printed NAS balanced {accounting}",
        "NNA, C = 0.05": f"printed NNA {accounting}",
        "NNA, none": f"printed NNA no coreset {accounting}",
    }


def _baselines(accounting: str) -> dict[str, str]:
    found = {"ClusterT, coreset": "ClusterT coreset"}
    for name in BASELINES:
        found |= {name: f"{name} {accounting}", f"{name}, coreset": f"{name} coreset {accounting}"}
    return found


__all__ = ["WITH_DELTA", "ablation_tables", "gaps", "method_tables", "run_times"]
