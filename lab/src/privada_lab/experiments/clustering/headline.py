"""The figures, tables and curves of clustering."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.clustering.learner.medoids import source_distances
from privada.report.exhibit import Exhibit, Figure
from privada_lab.baselines.clustering import choose
from privada_lab.datasets.source_target import Pair, real_pairs, synthetic
from privada_lab.experiments.clustering.compared import WITH_DELTA, ablation_tables, method_tables
from privada_lab.experiments.clustering.contenders import (
    BUDGETS,
    CORESET,
    TRIVIAL,
    Source,
    ablations,
    baselines,
    ours,
    printed,
    trivial,
    uniform,
)
from privada_lab.experiments.clustering.costs import Costs, shares_table
from privada_lab.experiments.clustering.labelled import adaptation
from privada_lab.experiments.clustering.pictured import picture, picture_set
from privada_lab.experiments.clustering.theory import bounds_table, network_table, solvers_table
from privada_lab.experiments.registry import Track, untracked

KS = (5, 10, 20, 40, 70)
GOALS = {"pure": (80, 99, 93), "zcdp": (88, 99, 92)}
MOST_TARGETS = 1000  # of a real pair: a public random subset, new in each run
FEW_RUNS = 2  # a quick look: of most real pairs the paper's methods alone and one k; no labels
QUICK_KS = (20,)
SHOWN = ("mnist 6-9", "office amazon-webcam", "superconductivity high-mh")  # in the paper's text
PROJECTION = 7  # seed of the real pairs' projection: one that no setting was chosen under


def run(*, runs: int, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:
    """Yield the figures of the synthetic sets, then of the real pairs if their files are there."""
    found: dict[str, Costs] = {}
    for which in (1, 2, 3):
        costs = found[f"synthetic {which}"] = Costs()
        for seed in track(range(runs), f"synthetic {which}"):
            measure(costs, synthetic(which, seed=1000 * which + seed), ks=KS, seed=seed, beside=_everyone())
        yield from _synthetic(which, costs, runs)
    worst = min(float(costs.shares(name).min()) for costs in found.values() for name in BUDGETS)
    yield Figure("gap_closed_worst_k", worst, 60.0, "higher", "ClusterT 0, STC 100", runs)
    yield _over_trivial(found, runs)
    yield shares_table(found.items(), title="Synthetic sets: gap closed, ablations and run times")
    pairs = {which: synthetic(which, seed=1) for which in (1, 2, 3)}
    yield from (picture_set(pair) for pair in pairs.values())
    yield picture(pairs[3], BUDGETS["pure"])
    yield bounds_table(synthetic(3, seed=3000), found["synthetic 3"], BUDGETS["pure"])
    yield solvers_table(pairs.values())
    yield network_table(BUDGETS.values())
    if data is not None:
        real: dict[str, Costs] = {}
        yield from _real(data, runs, track, real)
        yield from method_tables(real)
        found |= {name: costs for name, costs in real.items() if runs > FEW_RUNS or name in SHOWN}
    yield from ablation_tables(found)
    if data is not None and runs > FEW_RUNS:
        yield from adaptation(data, runs, track)


def run_all_targets(
    *, runs: int, data: Path | None = None, track: Track = untracked
) -> Iterator[Figure | Exhibit]:
    """Yield the figures of the real pairs with all of their target points, as the paper has them."""
    if data is None:
        raise InputError("Expected --data or PRIVADA_DATA: the real pairs are read from local copies.")
    found: dict[str, Costs] = {}
    for item in _real(data, runs, track, found, most=None, shown=()):
        if isinstance(item, Figure):
            yield replace(item, figure=f"{item.figure}_all_targets")
        else:
            yield replace(item, title=f"{item.title}, all target points")
    for table in method_tables(found):
        yield replace(table, title=f"{table.title}, all target points")


def _few() -> dict[str, Source]:
    """What is always measured beside ours: trivial methods and the paper's."""
    return trivial() | printed()


def _everyone() -> dict[str, Source]:
    """Baselines and ablations, too."""
    return _few() | baselines() | ablations()


def _synthetic(which: int, costs: Costs, runs: int) -> Iterator[Figure | Exhibit]:
    for name in BUDGETS:
        beside = f"printed NNA {costs.gap_closed(f'printed NNA {name}'):.1f}"
        goal, value = float(GOALS[name][which - 1]), costs.gap_closed(name)
        figure = f"gap_closed_{name}_syn{which}"
        yield Figure(figure, value, goal, "higher", beside, runs, costs.interval(name))
        yield costs.curves(f"Synthetic {which}, {name}", name)


def _over_trivial(found: Mapping[str, Costs], runs: int) -> Figure:
    """Share of the gap closed by ours less that of the best trivial rival, the least over the sets."""
    margins = {}
    for where, costs in found.items():
        for name in BUDGETS:
            rivals = {each: costs.gap_closed(each) for each in _trivial_names(name)}
            best = max(rivals, key=lambda each: rivals[each])
            margins[f"{where}, {best}"] = costs.gap_closed(name) - rivals[best]
    told = "; ".join(f"{where} {margin:.1f}" for where, margin in margins.items())
    return Figure("gap_closed_over_trivial", min(margins.values()), 0.0, "higher", told, runs)


def _trivial_names(accounting: str) -> tuple[str, ...]:
    """Choices that ask nothing or next to nothing, as `Costs` names them."""
    return ("uniform", "ClusterT", *(f"{each} {accounting}" for each in TRIVIAL))


def _real(
    folder: Path,
    runs: int,
    track: Track,
    found: dict[str, Costs],
    *,
    most: int | None = MOST_TARGETS,
    shown: tuple[str, ...] = SHOWN,
) -> Iterator[Figure | Exhibit]:
    """How many real pairs ours is ahead of the printed NNA on, and never behind ClusterT beyond noise.

    ``found`` is filled. A quick look measures everything on the pairs ``shown`` alone.
    """
    for pair in track(list(real_pairs(folder, seed=PROJECTION)), "real pairs"):
        costs, whole = found.setdefault(pair.name, Costs()), runs > FEW_RUNS or pair.name in shown
        for seed in range(runs):
            measure(
                costs,
                _subset(pair, seed, most),
                ks=KS if whole else QUICK_KS,
                seed=seed,
                beside=_everyone() if whole else _few(),
            )
        for name in BUDGETS:
            yield costs.curves(f"{pair.name}, {name}", name)
    of_k = "" if runs > FEW_RUNS else f"; k = {QUICK_KS[0]} alone on most"
    points = "all target points" if most is None else f"{most} random target points"
    beside = f"printed NNA; {points}, both accountings{of_k}"
    ahead = sum(_below(costs, "printed NNA ") for costs in found.values())
    safe = sum(_below(costs, "ClusterT") for costs in found.values())
    yield Figure("real_pairs_ahead_of_printed", ahead, float(len(found)), "higher", beside, runs)
    yield Figure("real_pairs_not_behind_clustert", safe, float(len(found)), "higher", "ClusterT", runs)
    simple = sum(_below_trivial(costs) for costs in found.values())
    told = "uniform, ClusterT, a noisy mean, noisy means in 32 cells; both accountings"
    yield Figure("real_pairs_ahead_of_trivial", simple, float(len(found)), "higher", told, runs)
    yield Figure("real_pairs", len(found), None, "higher", "pairs whose files are there", runs)
    yield shares_table(found.items(), title="Real pairs: gap closed, ablations and run times")


def _below_trivial(costs: Costs) -> bool:
    """Whether ours costs less than every trivial choice, summed over k, under both accountings."""
    return all(
        costs.mean(name).sum() < costs.mean(rival).sum() for name in BUDGETS for rival in _trivial_names(name)
    )


def _below(costs: Costs, other: str) -> bool:
    """Whether ours costs less than another method, summed over k, under both accountings."""
    rivals = {name: other if other in costs.found else other + name for name in BUDGETS}
    return all(costs.mean(name).sum() < costs.mean(rival).sum() for name, rival in rivals.items())


def _subset(pair: Pair, seed: int, most: int | None) -> Pair:
    """A public random subset of the target."""
    order = np.random.default_rng(seed).permutation(len(pair.target))[:most]
    return Pair(pair.name, pair.source, pair.target[np.sort(order)])


def measure(
    costs: Costs,
    pair: Pair,
    *,
    ks: tuple[int, ...],
    seed: int,
    beside: Mapping[str, Source],
) -> None:
    """Note the cost on the true source of what each method chooses for each k, and how long it took.

    For each baseline, and then for ClusterT too, the solver also chooses for a coreset of the target.
    """
    true = source_distances(pair.target, pair.source)

    def note(name: str, points: FloatArray | None, radius: float | None = None) -> None:
        for k in ks:
            chosen = choose(pair.target, k, points, coreset_radius=radius)
            costs.add(name, k, _cost(pair, true, chosen))

    note("ClusterT", None)
    note("STC", pair.source)
    rivals = baselines()
    if not rivals.keys().isdisjoint(beside):
        note("ClusterT coreset", None, CORESET)
    for k in ks:
        costs.add("uniform", k, _cost(pair, true, uniform(pair, k, seed)))
    for accounting, budget in BUDGETS.items():
        began = time.perf_counter()
        for k in ks:
            costs.add(accounting, k, _cost(pair, true, ours(pair, k, budget)))
        costs.took(accounting, time.perf_counter() - began)
        for name, source in beside.items():
            if name == WITH_DELTA and accounting != "pure":
                continue
            began = time.perf_counter()
            points = source(pair, budget, seed)
            note(f"{name} {accounting}", points)
            costs.took(f"{name} {accounting}", time.perf_counter() - began)
            if name in rivals:
                note(f"{name} coreset {accounting}", points, CORESET)


def _cost(pair: Pair, true: FloatArray, chosen: IntArray) -> float:
    return float(np.minimum(true, source_distances(pair.target, pair.target[chosen])).mean())


__all__ = ["measure", "run", "run_all_targets"]
