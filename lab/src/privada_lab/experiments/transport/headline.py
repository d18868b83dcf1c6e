"""The figures, tables and curves of transport."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from privada.exceptions import InputError
from privada.report.exhibit import Exhibit, Figure
from privada_lab.datasets.adaptation import Domain, available, read
from privada_lab.experiments.intervals import mean_interval
from privada_lab.experiments.registry import Track, untracked
from privada_lab.experiments.transport.accuracies import (
    EPSILONS,
    MAIN,
    QUICK,
    TRIVIAL,
    accuracy_curves,
    measured,
    named,
    table,
)
from privada_lab.experiments.transport.case import Scores, cases
from privada_lab.experiments.transport.classwise import classwise
from privada_lab.experiments.transport.distances import curves, distances
from privada_lab.experiments.transport.paper_form import few_labels_form, table_1_form

GOALS = {("amazon", "webcam", 1.0): 96.0, ("amazon", "webcam", 2.0): 98.0}
GOALS |= {("webcam", "amazon", 2.0): 91.0, ("webcam", "amazon", 4.0): 94.0}
QUICK_PAIRS, QUICK_LARGE = 6, 2  # pairs of a benchmark that a quick look takes; of large ones fewer
PRIVATE_SOURCE_ONLY = ("DP logistic", "same release, no transport")
OFFICE_CALTECH = ("googlenet", "surf", "decaf6")  # the domains of the paper's Table 1
TITLES = {
    "googlenet": "Office, GoogLeNet features",
    "digits": "MNIST and scikit-learn's digits",
    "surf": "Office-Caltech, SURF features",
    "reviews": "Amazon reviews",
    "decaf6": "Office-Caltech, DeCAF6 features (the paper's Table 1)",
    "visda": "VisDA (the paper's Table 2)",
    "office_home": "Office-Home (the paper's Table 3)",
}


def run(*, runs: int, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:
    """Yield figures and tables of whatever files are there."""
    if data is None or not available(data):
        raise InputError(
            "The transport experiment needs real data: give their folder with --data or PRIVADA_DATA."
        )
    logging.getLogger("privada").setLevel(logging.ERROR)
    there, found = available(data), {}
    for name in (name for name in TITLES if name in there):
        domains = read(name, data)
        found[name] = benchmark(name, domains, runs, track)
        yield from _means(name, found[name], runs)
        yield _over_trivial(name, found[name], runs)
        yield table(found[name], title=f"{TITLES[name]}: accuracy on the target (%)")
        yield table_1_form(found[name], title=TITLES[name], printed=name in OFFICE_CALTECH)
        yield few_labels_form(found[name], title=TITLES[name])
        yield accuracy_curves(found[name], title=TITLES[name])
        yield classwise(TITLES[name], next(cases(name, domains)), runs)
        if name == "googlenet":
            yield from _googlenet(found[name], runs)
            yield from distances(domains, runs, track) if find_spec("ot") else ()
        yield from curves(name, TITLES[name], domains, runs, track) if find_spec("ot") else ()
    margins = {name: scores for name, scores in found.items() if name in ("reviews", "surf")}
    if margins:
        yield from _margins(margins, runs)


def benchmark(name: str, domains: dict[str, Domain], runs: int, track: Track = untracked) -> Scores:
    """All accuracies of one benchmark; of its first pairs in a quick look."""
    found = list(cases(name, domains))
    if runs <= QUICK:
        found = found[: QUICK_PAIRS if all(case.small for case in found) else QUICK_LARGE]
    return measured(track(found, f"{name} pairs"), runs)


def best(scores: Scores) -> tuple[str, float]:
    """The best method without privacy that sees no target label, by its mean; it was run on all pairs."""
    most_pairs = max(len(found) for found in scores.found.values())
    clear = {
        method: scores.mean(method)
        for method, found in scores.found.items()
        if method.endswith("(not private)") and "folds" not in method and "label a class" not in method
        if len(found) == most_pairs
    }
    most = max(clear, key=lambda method: clear[method])
    return most, clear[most]


def _googlenet(scores: Scores, runs: int) -> Iterator[Figure]:
    """Four pairs beside the best coupling in the clear; nothing beside them without POT."""
    for (source, target, epsilon), goal in GOALS.items():
        found = mean_interval(scores.found[named("ours", epsilon)][source, target])
        otda = {
            name: values[source, target][0]
            for name, values in scores.found.items()
            if _is_otda(name) and (source, target) in values
        }
        most = max(otda, key=lambda name: otda[name], default="")
        figure = f"googlenet_{source[0].upper()}{target[0].upper()}_eps{epsilon:g}"
        beside = f"{most} {otda[most]:.1f}" if otda else "no coupling in the clear: POT is not installed"
        yield Figure(figure, found.mean, goal, "higher", beside, runs, found.ends)
    most, value = best(scores)
    gap = value - scores.mean(named("ours", MAIN))
    yield Figure("mean_gap_to_best_nonprivate_eps4", gap, 1.0, "lower", f"{most} {value:.2f}", runs)


def _is_otda(method: str) -> bool:
    return method.startswith("OTDA") and "label a class" not in method


def _means(name: str, scores: Scores, runs: int) -> Iterator[Figure]:
    most, value = best(scores)
    for epsilon in EPSILONS:
        mine = named("ours", epsilon)
        others = ", ".join(
            f"{other} {scores.mean(named(other, epsilon)):.1f}"
            for other in (*PRIVATE_SOURCE_ONLY, "DP logistic, propagated")
            if named(other, epsilon) in scores.found
        )
        half = 1.96 * scores.error(mine)
        mean = scores.mean(mine)
        ends = (mean - half, mean + half) if runs > 1 else None
        beside = f"{others}; {most} {value:.1f}"
        yield Figure(f"{name}_mean_eps{epsilon:g}", mean, None, "higher", beside, runs, ends)


def _over_trivial(name: str, scores: Scores, runs: int) -> Figure:
    """Points over the best trivial rival, picked afterwards by its mean over the pairs, at epsilon 4."""
    rivals = {
        method: scores.mean(method) for method in scores.found if method.startswith(TRIVIAL) and _main(method)
    }
    best = max(rivals, key=lambda method: rivals[method])
    told = ", ".join(f"{method.removeprefix(TRIVIAL)} {mean:.1f}" for method, mean in rivals.items())
    value = scores.mean(named("ours", MAIN)) - rivals[best]
    return Figure(f"{name}_points_over_trivial_eps4", value, 0.0, "higher", told, runs)


def _main(method: str) -> bool:
    return method.endswith(named("", MAIN))


def _margins(found: dict[str, Scores], runs: int) -> Iterator[Figure]:
    """Points over private baselines at epsilon 4, over all pairs of SURF and of the reviews."""
    mine = named("ours", MAIN)

    def over(*others: str) -> dict[str, float]:
        return {
            f"{name} {pair[0]} to {pair[1]}": scores.pair(mine, pair)
            - max(scores.pair(named(other, MAIN), pair) for other in others)
            for name, scores in found.items()
            for pair in scores.found[mine]
        }

    mean = float(np.mean(list(over("DP logistic, propagated").values())))
    beside = "DP logistic regression with label propagation, same budget, eps 4"
    yield Figure("reviews_and_surf_points_over_dp_logistic_eps4", mean, 0.0, "higher", beside, runs)
    for figure, others in (
        ("smallest_margin_over_dp_source_only_eps4", PRIVATE_SOURCE_ONLY[:1]),
        ("smallest_margin_over_any_private_source_only_eps4", PRIVATE_SOURCE_ONLY),
    ):
        margins = over(*others)
        least = min(margins, key=lambda pair: margins[pair])
        below = sum(value < 0 for value in margins.values())
        beside = f"{' or '.join(others)}; least at {least}, below on {below} of {len(margins)} pairs"
        yield Figure(figure, margins[least], 0.0, "higher", beside, runs)


__all__ = ["benchmark", "best", "run"]
