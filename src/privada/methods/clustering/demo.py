"""The row of clustering in ``privada demo``: new service points beside helpers who stay anonymous."""

from __future__ import annotations

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.clustering.learner.medoids import cost, medoids, source_distances
from privada.methods.clustering.method import Clustering
from privada.methods.example import DemoRow
from privada.methods.method import Public
from privada.methods.pictures import Picture, Plane, Points
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.parties.schema import Schema
from privada.privacy.bounds import Ball
from privada.privacy.guarantee import PureDP
from privada.privacy.relation import Relation

RADIUS = 0.5
CENTERS = 12
EPSILON = 1.0


def demo(seed: int) -> DemoRow:
    """Place service points in a town part of which is served already, by people nobody may name."""
    homes, helpers = (Ball(radius=RADIUS).clip(places) for places in _town(seed))
    pure = PureDP(epsilon=EPSILON, relation=Relation.ADD_REMOVE)
    schema = Schema.of_numbers(bounds=(-RADIUS, RADIUS), width=2)
    owner = Owner(helpers, schema=schema, dataset="helpers", budget=pure)
    method = Clustering(n_centers=CENTERS, norm_bound=RADIUS)
    inquiry = method.prepare(Public(homes), {"registry": schema}, pure, seed=seed)
    choice = run(inquiry, {"registry": owner})
    best = medoids(homes, CENTERS, caps=source_distances(homes, helpers)).indices  # by those who see helpers
    return DemoRow(
        method="clustering",
        title="place service points beside helpers who stay anonymous",
        holders=f"A registry holds {len(helpers)} helpers' addresses; the learner knows {len(homes)} homes.",
        guarantee=choice.guarantee,
        score=f"mean distance to the nearest helper or service point, {CENTERS} points (lower is better)",
        without=_metres(homes, helpers, medoids(homes, CENTERS).indices),
        ours=_metres(homes, helpers, choice.indices),
        clear=_metres(homes, helpers, best),
        ledger=owner.ledger.export(),
        stamps=choice.release.stamps,
        better="lower",
        surprise=(
            "Both place the points by a local search, which the noise may start on a better path; "
            "no search over the same rows promises the very best places."
        ),
        picture=_map(homes, helpers, homes[choice.indices]),
    )


def _map(homes: FloatArray, helpers: FloatArray, chosen: FloatArray) -> Picture:
    layers = (
        Points(name="homes (public)", at=homes),
        Points(name="helpers (private)", at=helpers, role="private"),
        Points(name="chosen service points", at=chosen, role="result"),
    )
    caption = (
        "The chosen points stand where no helper is near, though the learner saw no helper: only "
        "noisy counts left the registry. The helpers can be drawn here because this town is generated."
    )
    return Picture(caption=caption, parts=(Plane(title="The town, five kilometres wide", layers=layers),))


def _metres(homes: FloatArray, helpers: FloatArray, chosen: IntArray) -> float:
    """Mean distance in metres; the town is five kilometres wide."""
    return 5000 * cost(homes, helpers, homes[chosen])


def _town(seed: int) -> tuple[FloatArray, FloatArray]:
    """Homes in twelve quarters; helpers in five of them."""
    rng = np.random.default_rng(seed)
    quarters = rng.uniform(-0.32, 0.32, size=(12, 2))
    homes = quarters[rng.integers(12, size=800)] + rng.normal(0, 0.02, size=(800, 2))
    helpers = quarters[rng.integers(5, size=600)] + rng.normal(0, 0.02, size=(600, 2))
    return homes, helpers


__all__ = ["demo"]
