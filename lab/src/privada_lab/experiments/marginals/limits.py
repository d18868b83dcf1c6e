"""``privada reproduce marginals-limits``: what labels over cells lose, and to what, on seeds of its own.

One thing at a time is changed of `MarginalClassifier`'s default at ε = 1, the sets, the network and, by a
rehearsal, the seeds of the noise being the same. Some changes are choices that one has: other numbers of
cells, no weights. Others show what cannot be had, and so what a better choice could gain at most: answers
without noise, the target's rows in place of the source's (their labels are asked as before), the source's
true labels, the target itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from privada.exceptions import RehearsalWarning
from privada.methods.marginals.learner.asking import CellCounts
from privada.report.exhibit import Exhibit, Figure
from privada.report.tables import Table
from privada_lab.datasets.hidden_target import HiddenTarget
from privada_lab.experiments.intervals import mean_interval
from privada_lab.experiments.marginals.contenders import labelled, learner
from privada_lab.experiments.marginals.scores import Scores, dots
from privada_lab.experiments.marginals.sets import GENERATED, Setting
from privada_lab.experiments.registry import Track, untracked
from privada_lab.experiments.sharing import shared

FIRST = 90_000  # of the seeds, none of which the figures of accuracy use
SETS = tuple(setting for setting in GENERATED if setting.reweight)
NO_NOISE = 100.0  # an ε at which no count is off
DEFAULT, NOISELESS, KNOWN = (
    "the default",
    "the same cells without noise",
    "the target's rows in the source's place",
)
COSTS = {"noise_cost": NOISELESS, "hidden_rows_cost": KNOWN}


def run(*, runs: int, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:  # noqa: ARG001 - all rows are generated
    """Yield what noise and hidden rows cost on each set, then the table of all changes."""
    found: dict[str, tuple[Scores, Scores]] = {}
    for setting in SETS:
        accuracy, gained = found[setting.name] = Scores(), Scores()
        for row in shared(
            partial(_one_run, setting=setting), range(FIRST, FIRST + runs), setting.name, track
        ):
            accuracy.note(row)
            gained.note({method: value - row[DEFAULT] for method, value in row.items()})
    for figure, method in COSTS.items():
        for name, (_, gained) in found.items():
            cost = mean_interval(gained.found[method])
            words = f"{method}, less the default at ε = 1, points of accuracy"
            yield Figure(f"{figure}_{name}", cost.mean, None, "lower", words, runs, cost.ends)
    yield _table(found)
    yield dots("Accuracy with one thing changed", {name: scores for name, (scores, _) in found.items()})


def _one_run(seed: int, *, setting: Setting) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return measured(setting.load(seed), setting, seed)


def measured(data: HiddenTarget, setting: Setting, seed: int) -> dict[str, float]:
    """Accuracy in percent of the default, and with one thing changed."""
    ours = partial(learner, setting=setting, seed=seed, insecure_seed=seed)
    default = ours(data)
    cells = len(default.release_["table.0"])
    learners = {
        DEFAULT: default,
        NOISELESS: ours(data, epsilon=NO_NOISE, algorithm=CellCounts(cells=cells)),
        KNOWN: ours(replace(data, source=data.X), algorithm=CellCounts(cells=cells)),
        "half as many cells": ours(data, algorithm=CellCounts(cells=max(2, cells // 2))),
        "twice as many cells": ours(data, algorithm=CellCounts(cells=2 * cells)),
        "no weights": ours(data, algorithm=CellCounts(reweight=False)),
    }
    found = {name: float(each.score(data.X_test, data.y_test)) for name, each in learners.items()}
    found["the source's true labels"] = labelled(data, setting, seed, data.source, data.y_source)
    found["trained on the target"] = labelled(data, setting, seed, data.X, data.y)
    return {name: 100 * value for name, value in found.items()}


def _table(found: dict[str, tuple[Scores, Scores]]) -> Table:
    return Table(
        title="One thing changed: accuracy in percent (mean ± standard error)",
        columns=("set", "changed", "accuracy", "over the default", "runs"),
        rows=tuple(
            (name, method, _told(accuracy, method), _told(gained, method), str(len(accuracy.found[method])))
            for name, (accuracy, gained) in found.items()
            for method in accuracy.found
        ),
    )


def _told(scores: Scores, method: str) -> str:
    return f"{scores.mean(method):.2f} ± {scores.error(method):.2f}"


__all__ = ["FIRST", "measured", "run"]
