"""The picture of a run, as the paper's Figure 1: source, target, sanitised source and what was chosen."""

from __future__ import annotations

from privada.lab.datasets.source_target import RADIUS, Pair
from privada.methods.clustering.estimator import SourceTargetMedoids
from privada.parties.one_process.process_ledger import public_rows
from privada.privacy.guarantee import Guarantee
from privada.report.exhibit import Layer, Map

CENTERS = 8


@public_rows()
def picture(pair: Pair, budget: Guarantee) -> Map:
    """One run of the default beside what ignores the source."""
    from privada.lab.baselines.clustering import ClusterT

    numbers = {name: getattr(budget, name) for name in ("epsilon", "rho") if hasattr(budget, name)}
    model = SourceTargetMedoids(CENTERS, norm_bound=RADIUS, random_state=0, **numbers)
    model.fit(pair.source, Xt=pair.target)
    ignoring = ClusterT(CENTERS).fit(None, Xt=pair.target).cluster_centers_
    layers = (
        Layer(name="private source", points=pair.source, color="#b9bec5", size=3),
        Layer(name="sanitised source", points=model.source_, color="#d55e00", size=5, marker="x"),
        Layer(name="target", points=pair.target, color="#0072b2", size=8),
        Layer(name="chosen, ignoring the source", points=ignoring, color="#6b7280", size=80, marker="P"),
        Layer(name="chosen by ours", points=model.cluster_centers_, color="#0b6e63", size=110, marker="*"),
    )
    return Map(title=f"A run on {pair.name}", layers=layers)


__all__ = ["picture"]
