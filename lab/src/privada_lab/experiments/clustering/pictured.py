"""Pictures of the sets (the paper's Figure 2) and of a run (its Figure 1)."""

from __future__ import annotations

from typing import Any

from privada.methods.clustering.estimator import SourceTargetMedoids
from privada.parties.one_process.process_ledger import public_rows
from privada.privacy.guarantee import Guarantee
from privada.report.exhibit import Layer, Map
from privada_lab.datasets.source_target import RADIUS, Pair

CENTERS = 8
SOURCE: dict[str, Any] = {"name": "private source", "color": "#b9bec5", "size": 3}
TARGET: dict[str, Any] = {"name": "target", "color": "#0072b2", "size": 8}


def picture_set(pair: Pair) -> Map:
    """A source and a target, as in Figure 2."""
    layers = (Layer(points=pair.source, **SOURCE), Layer(points=pair.target, **TARGET))
    return Map(title=f"The set {pair.name}", layers=layers)


@public_rows()
def picture(pair: Pair, budget: Guarantee) -> Map:
    """One run of the default beside what ignores the source."""
    from privada_lab.baselines.clustering import ClusterT

    numbers = {name: getattr(budget, name) for name in ("epsilon", "rho") if hasattr(budget, name)}
    model = SourceTargetMedoids(CENTERS, norm_bound=RADIUS, random_state=0, **numbers)
    model.fit(pair.source, Xt=pair.target)
    ignoring = ClusterT(CENTERS).fit(None, Xt=pair.target).cluster_centers_
    layers = (
        Layer(points=pair.source, **SOURCE),
        Layer(name="sanitised source", points=model.source_, color="#d55e00", size=5, marker="x"),
        Layer(points=pair.target, **TARGET),
        Layer(name="chosen, ignoring the source", points=ignoring, color="#6b7280", size=80, marker="P"),
        Layer(name="chosen by ours", points=model.cluster_centers_, color="#0b6e63", size=110, marker="*"),
    )
    return Map(title=f"A run on {pair.name}", layers=layers)


__all__ = ["picture", "picture_set"]
