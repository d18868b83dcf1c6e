"""What the paper says without a figure, as tables: its lower bounds, its solver, a network of nodes."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from privada import Owner
from privada._arrays import FloatArray, IntArray
from privada.methods.clustering import (
    NodeCells,
    cost_sensitivity,
    learn_nodes,
    lower_bound,
    lower_bound_beside_radius,
)
from privada.methods.clustering.learner.medoids import medoids, source_distances
from privada.methods.clustering.learner.nodes import NodeChoice
from privada.methods.clustering.learner.search import GivenProblem, best_of
from privada.parties import Schema
from privada.parties.one_process.process_ledger import public_rows
from privada.parties.running import run
from privada.privacy.guarantee import Guarantee
from privada.report.tables import Table
from privada_lab.baselines.accelerated_medoids import accelerated_medoids
from privada_lab.datasets.source_target import RADIUS, Pair
from privada_lab.experiments.clustering.costs import Costs

NEIGHBOURS = 150  # t of Δᵗ(S)
CENTERS = 20
NODES, MEMBERS, CELLS, NODE_CENTERS = 400, 300, 40, 10


def bounds_table(pair: Pair, costs: Costs, budget: Guarantee) -> Table:
    """Observations 4.1, 4.2 and 5.8 for each k, beside what ours pays more than the choice that sees all."""
    size = {"n_targets": len(pair.target), "radius": RADIUS, "width": pair.target.shape[1]}
    mean_radius = _mean_radius(pair)
    paid = dict(zip(sorted(costs.found["STC"]), costs.mean("pure") - costs.mean("STC"), strict=True))
    rows = []
    for k, more in paid.items():
        worst = lower_bound(budget, n_centers=k, **size)
        here = lower_bound_beside_radius(budget, mean_radius, n_centers=k, **size)
        moved = cost_sensitivity(n_centers=k, **size)
        rows.append((str(k), f"{moved:.3g}", f"{worst.error:.2g}", f"{here.error:.2g}", f"{more:.2g}"))
        probability = worst.probability
    note = (
        f"Observations 4.2 and 5.8 hold with probability {probability:.3f} at {budget}, for the "
        f"worst source; Δᵗ(S) is {mean_radius:.3f} at t = {NEIGHBOURS}. Ours is measured on {pair.name}."
    )
    columns = ("k", "4.1: one row moves the cost by", "4.2: no method avoids", "5.8: with this Δᵗ(S)")
    return Table(
        title="Lower bounds", columns=(*columns, "ours pays more than STC by"), rows=tuple(rows), note=note
    )


def _mean_radius(pair: Pair) -> float:
    """Δᵗ(S) of Definition 5.4."""
    from scipy.spatial import KDTree

    return float(KDTree(pair.source).query(pair.target, k=NEIGHBOURS)[0].mean())


def solvers_table(pairs: Iterable[Pair]) -> Table:
    """Cost and seconds of ours and of accelerated k-medoids, on the true source: nothing here is private."""
    rows = []
    for pair in pairs:
        caps = source_distances(pair.target, pair.source)
        began = time.process_time()
        ours = medoids(pair.target, CENTERS, caps=caps).indices
        between = time.process_time()
        theirs = accelerated_medoids(pair.target, CENTERS, caps=caps, random_state=0)
        ended = time.process_time()
        costs = [_cost(pair, caps, each) for each in (ours, theirs)]
        seconds = f"{between - began:.2f}", f"{ended - between:.2f}"
        rows.append((pair.name, *(f"{cost:.5f}" for cost in costs), *seconds))
    columns = ("set", "cost, ours", "cost, accelerated", "seconds, ours", "seconds, accelerated")
    return Table(title=f"The solver, k = {CENTERS}", columns=columns, rows=tuple(rows))


def _cost(pair: Pair, caps: FloatArray, chosen: IntArray) -> float:
    return float(np.minimum(caps, source_distances(pair.target, pair.target[chosen])).mean())


@public_rows()
def network_table(budgets: Iterable[Guarantee], *, seed: int = 0) -> Table:
    """Promoters of a message in a generated network: the paper's first use, which it does not measure.

    Nodes lie on a ring, each tied to four neighbours, with one tie in ten led elsewhere. Members who already
    promote, the private source, live in one half of it.
    """
    steps = small_world(NODES, seed)
    members = np.random.default_rng(seed).integers(0, NODES // 2, MEMBERS)
    served = steps[:, members].min(axis=1)
    chosen = [("ClusterT: members ignored", "not asked", _best(steps, np.full(NODES, np.inf)))]
    chosen += [("ours", str(budget), _asked(steps, members, budget)) for budget in budgets]
    chosen.append(("STC: members seen", "none", _best(steps, served)))
    rows = [(name, guarantee, _steps(steps, served, nodes)) for name, guarantee, nodes in chosen]
    columns = ("choice", "guarantee for a member", "mean steps to a promoter")
    note = f"{NODES} nodes, {MEMBERS} members, {NODE_CENTERS} chosen; noisy counts of {CELLS} public cells."
    return Table(title="Promoters in a network", columns=columns, rows=tuple(rows), note=note)


def small_world(nodes: int, seed: int) -> FloatArray:
    """Steps between the nodes of a ring whose ties, one in ten, lead elsewhere.

    >>> steps = small_world(50, seed=0)
    >>> bool((steps == steps.T).all()), bool(np.isfinite(steps).all())
    (True, True)
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import shortest_path

    rng = np.random.default_rng(seed)
    here = np.tile(np.arange(nodes), 2)
    there = np.concatenate([np.roll(np.arange(nodes), -1), np.roll(np.arange(nodes), -2)])
    elsewhere = rng.random(len(there)) < 0.1
    elsewhere[:nodes] = False  # the ring itself stays whole
    there = np.where(elsewhere, rng.integers(0, nodes, len(there)), there)
    kept = here != there
    ties = coo_matrix((np.ones(kept.sum()), (here[kept], there[kept])), shape=(nodes, nodes))
    return np.asarray(shortest_path(ties, directed=False, unweighted=True))


def _best(steps: FloatArray, served: FloatArray) -> IntArray:
    return np.asarray(best_of(GivenProblem(steps, served), NODE_CENTERS, 2, 10_000))


def _asked(steps: FloatArray, members: IntArray, budget: Guarantee) -> IntArray:
    cells = NodeCells.of(steps, CELLS)
    schema = Schema.of_numbers(bounds=(0, len(steps) - 1), width=1)
    owner = Owner(cells.places(members)[:, None], schema=schema, dataset="members", budget=budget)
    nodes = np.arange(len(steps))
    learner = learn_nodes("members", steps, nodes, cells, n_centers=NODE_CENTERS, guarantee=budget)
    choice: NodeChoice = run(learner, {"members": owner})
    return choice.nodes


def _steps(steps: FloatArray, served: FloatArray, chosen: IntArray) -> str:
    return f"{np.minimum(served, steps[:, chosen].min(axis=1)).mean():.3f}"


__all__ = ["bounds_table", "network_table", "small_world", "solvers_table"]
