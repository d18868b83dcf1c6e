"""The figures, the table and the curves of marginals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from privada.report.exhibit import Curves, Exhibit, Figure
from privada_lab.experiments.marginals import perspectives
from privada_lab.experiments.marginals.contenders import TRIVIAL, headline
from privada_lab.experiments.marginals.scores import (
    Scores,
    bins_table,
    dots,
    settings_table,
    table_two,
    table_two_form,
)
from privada_lab.experiments.marginals.sets import CARDIOTOCOGRAMS, GENERATED, Setting
from privada_lab.experiments.registry import Track, untracked
from privada_lab.experiments.sharing import shared

FRESH = 80_000
FEW_RUNS = 2  # a quick look: the headline, and the paper's other rows and curves in the first run
BESIDE_RUNS = 10  # at most, and a fifth of the runs: baselines, the paper's other rows, curves


def run(*, runs: int, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:
    """Yield the figures of A to E, then of cardiotocography if its file is there."""
    found: dict[str, tuple[Setting, Scores]] = {}
    for setting in GENERATED + (CARDIOTOCOGRAMS if data is not None else ()):
        scores, curves = measured(setting, runs, data, track)
        found[setting.name] = setting, scores
        yield from _figures(setting, scores)
        yield from _cumulative(setting, scores)
        if curves is not None:
            yield curves
    margin = min(scores.mean("any at 0.25") - scores.mean("printed") for _, scores in found.values())
    words = "ours at 0.25 minus printed C-EXPRIL at 1, points, smallest over the sets"
    least = min(len(scores.found["any"]) for _, scores in found.values())
    yield Figure("any_quarter_margin", margin, 0.0, "higher", words, least)
    yield _over_trivial(found, least)
    yield settings_table({name: (each, each.load(FRESH, data)) for name, (each, _) in found.items()})
    yield table_two_form(found)
    yield bins_table(found)
    yield table_two(found)
    yield dots("Accuracy on a hidden target", {name: scores for name, (_, scores) in found.items()})


def _cumulative(setting: Setting, scores: Scores) -> Iterator[Figure]:
    """Points of C- over I-EXPRIL on the same runs, at ε = 1 and without privacy, with the paired test."""
    pairs = {
        "eps1": ("printed", "printed, instantaneous"),
        "no_privacy": ("C-EXPRIL, no privacy", "I-EXPRIL, no privacy"),
    }
    for name, (all_rounds, last_round) in pairs.items():
        if last_round not in scores.found:
            continue
        theirs = scores.found[last_round]
        apart = Scores({"any": np.subtract(scores.found[all_rounds][: len(theirs)], theirs).tolist()})
        words = f"{scores.paired(last_round, all_rounds)}; the paper: significant but on B and C"
        figure = f"expril_cumulative_over_instantaneous_{name}_{setting.name}"
        yield Figure(figure, apart.mean("any"), None, "higher", words, len(theirs), apart.interval("any"))


def _over_trivial(found: dict[str, tuple[Setting, Scores]], runs: int) -> Figure:
    """Points of ours over the best trivial rival (picked afterwards) on the set where they are fewest."""
    margins = {}
    for name, (_, scores) in found.items():
        rivals = {each: scores.mean(each) for each in scores.found if each.startswith(TRIVIAL)}
        best = max(rivals, key=lambda each: rivals[each])
        margins[name, best] = scores.mean("any") - rivals[best]
    worst = min(margins, key=lambda key: margins[key])
    told = "; ".join(f"{name} {margin:.1f} ({best})" for (name, best), margin in margins.items())
    return Figure("any_margin_over_trivial", margins[worst], 0.0, "higher", told.replace(TRIVIAL, ""), runs)


def measured(setting: Setting, runs: int, folder: Path | None, track: Track) -> tuple[Scores, Curves | None]:
    """All methods on one set; baselines and perspectives are left out of a quick look."""
    quick = runs <= FEW_RUNS
    runs = runs if quick else max(runs, setting.least_runs)
    scores, learnt, levels = Scores(), [], []
    beside = min(BESIDE_RUNS, math.ceil(runs / 5))
    measure = partial(_one_run, setting=setting, folder=folder, beside=beside, quick=quick)
    for here, learning in shared(measure, range(FRESH, FRESH + runs), setting.name, track):
        scores.note(here)
        if learning:
            learnt.append(learning)
            levels.append(here["any"] - here["target-trained"])
    return scores, perspectives.curves(setting.name, learnt, levels) if learnt else None


def _one_run(
    seed: int, *, setting: Setting, folder: Path | None, beside: int, quick: bool
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Accuracies of a run, and its learning curves if it is one of the first ``beside``."""
    data = setting.load(seed, folder)
    here = headline(data, setting, seed)
    if seed >= FRESH + beside:
        return here, {}
    here |= perspectives.paper_rows(data, setting, seed)
    if not quick:
        here |= perspectives.beside(data, setting, seed)
    return here, perspectives.learning(data, setting, seed, here["target-trained"])


def _figures(setting: Setting, scores: Scores) -> Iterator[Figure]:
    words, runs, name = scores.beside(), len(scores.found["any"]), setting.name
    if setting.shift is not None:
        over, interval = scores.over("majority")
        yield Figure(f"{name}_over_majority", over, setting.goal, "higher", words, runs, interval)
        return
    for method, goal in (("any", setting.goal), ("marginal", setting.marginal_goal)):
        if goal is not None:
            value, interval = scores.mean(method), scores.interval(method)
            yield Figure(f"{method}_pure_{name}", value, goal, "higher", words, runs, interval)


__all__ = ["BESIDE_RUNS", "FRESH", "measured", "run"]
