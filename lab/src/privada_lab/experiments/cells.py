"""``privada reproduce cells``: digits classified by private class counts in public cells.

Data: scikit-learn's digits, centred (pixels are 0 to 16, so minus 8) and
projected to 8 features by a public Gaussian matrix. A random half is the public
source, of which only the images are used: its k-means centres are the cells. Of
the other half, two thirds are private and labelled at their owner, one third
is the test. Bounds follow from the pixels' range and the matrix, not from rows.

Trivial rivals have the same budget (`privada_lab.experiments.rivals`). Among them, *noisy counts* are counts
in fewer cells, of standardised columns: one for fifty rows.

Each run draws split, matrix and centres from its own public seed; the noise
comes from the operating system. Nothing is chosen by looking at the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.methods.cells.estimator import CellClassifier
from privada.methods.cells.questions.partition import NearestCells
from privada.parties.one_process.process_ledger import public_rows
from privada.report.exhibit import Curves, Exhibit, Figure, Series
from privada_lab.datasets.domain_pairs import Part
from privada_lab.experiments.intervals import Mean, mean_interval
from privada_lab.experiments.registry import Track, untracked
from privada_lab.experiments.rivals import Sides, predictions
from privada_lab.experiments.sharing import shared

EPSILONS = (0.25, 1.0, 4.0)
CELLS, WIDTH, CLASSES = 32, 8, 10
NAME = "cells_digits_accuracy"
RIVAL = ", "  # between an epsilon and the name of a rival


@dataclass(frozen=True, eq=False)
class Task:
    """One run's data: public images, centres and bounds, private rows, test rows."""

    source: FloatArray
    centers: FloatArray
    bounds: tuple[FloatArray, FloatArray]
    X: FloatArray
    y: npt.NDArray[np.int64]
    X_test: FloatArray
    y_test: npt.NDArray[np.int64]

    @cached_property
    def sides(self) -> Sides:
        """As trivial rivals see it; the public images have no labels."""
        public = Part(self.source, np.zeros(len(self.source), dtype=np.int64))
        return Sides(
            public,
            Part(self.X, self.y),
            Part(self.X_test, self.y_test),
            self.bounds,
            classes=tuple(range(CLASSES)),
            relation="add/remove",
        )

    def accuracy(self, guesses: npt.NDArray[Any]) -> float:
        """Share of test rows that were guessed right."""
        return float((guesses == self.y_test).mean())


def run(*, runs: int, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:  # noqa: ARG001
    """Yield accuracies: ours at each epsilon, trivial rivals, the majority class, and exact counts."""
    scores = list(shared(_scores, range(runs), "digits", track))
    found = {name: mean_interval([score[name] for score in scores]) for name in scores[0]}
    beside = f"majority {found['majority'].mean:.3g}, exact counts {found['nonprivate'].mean:.3g}"
    for name, each in found.items():
        if RIVAL not in name:
            said = beside + _rivals(found, name) if name.startswith("eps") else "not private"
            yield Figure(f"{NAME}_{name}", each.mean, None, "higher", said, runs, interval=each.ends)
    yield _worst_rank(found, runs)
    yield _curves(scores)


def _curves(scores: list[dict[str, float]]) -> Curves:
    """Accuracies against epsilon: ours, trivial rivals, and what needs no noise."""
    first = f"eps{EPSILONS[0]:g}"
    ways = ["", *(name.removeprefix(first) for name in scores[0] if _beside(name, first))]
    lines = [
        Series.over_runs(
            way.removeprefix(RIVAL) or "ours",
            EPSILONS,
            [[score[f"eps{epsilon:g}{way}"] for epsilon in EPSILONS] for score in scores],
            "baseline" if way else "ours",
        )
        for way in ways
    ]
    for name, told in (("majority", "majority class"), ("nonprivate", "exact counts (not private)")):
        values = [[score[name]] * len(EPSILONS) for score in scores]
        lines.append(Series.over_runs(told, EPSILONS, values, "bound"))
    return Curves(
        title="Digits by counts in cells",
        xlabel="epsilon (add/remove a row)",
        ylabel="accuracy",
        series=tuple(lines),
        logx=True,
    )


def _rivals(found: dict[str, Mean], name: str) -> str:
    """Trivial rivals at the same epsilon, in words."""
    theirs = {each: value.mean for each, value in found.items() if _beside(each, name)}
    return "".join(f", {each.partition(RIVAL)[2]} {mean:.3g}" for each, mean in theirs.items())


def _worst_rank(found: dict[str, Mean], runs: int) -> Figure:
    """Rank of noisy counts in the experiment's own cells among trivial rivals, the worst over epsilon."""
    ranks = {
        name: 1 + sum(other.mean > found[name].mean for key, other in found.items() if _beside(key, name))
        for name in found
        if name.startswith("eps") and RIVAL not in name
    }
    worst = max(ranks, key=lambda name: ranks[name])
    said = f"ours at {worst} {found[worst].mean:.3g}{_rivals(found, worst)}"
    return Figure("cells_worst_rank", float(ranks[worst]), 1.0, "lower", said, runs)


def _beside(key: str, name: str) -> bool:
    return key.startswith(f"{name}{RIVAL}")


def _scores(seed: int) -> dict[str, float]:
    task = make_task(seed)
    ours = {f"eps{epsilon:g}": task.accuracy(_private(task, epsilon)) for epsilon in EPSILONS}
    for epsilon in EPSILONS:
        for name, guesses in predictions(task.sides, {"epsilon": epsilon}):
            ours[f"eps{epsilon:g}{RIVAL}{name}"] = task.accuracy(guesses)
    others: dict[str, Callable[[Task], npt.NDArray[Any]]] = {"majority": _majority, "nonprivate": _exact}
    return ours | {name: task.accuracy(guess(task)) for name, guess in others.items()}


@public_rows()
def _private(task: Task, epsilon: float) -> npt.NDArray[Any]:
    model = CellClassifier(task.centers, classes=range(CLASSES), bounds=task.bounds, epsilon=epsilon)
    guesses: npt.NDArray[Any] = model.fit(task.X, task.y).predict(task.X_test)
    return guesses


def _majority(task: Task) -> npt.NDArray[Any]:
    return np.full(len(task.y_test), np.bincount(task.y).argmax())


def _exact(task: Task) -> npt.NDArray[Any]:
    """The same classifier with exact counts; a cell without rows gets the majority class."""
    cells = NearestCells(centers=task.centers)
    counts = np.bincount(cells.assign(task.X) * CLASSES + task.y, minlength=CELLS * CLASSES)
    table = counts.reshape(CELLS, CLASSES) + 1e-9 * np.bincount(task.y, minlength=CLASSES)
    return table.argmax(axis=1)[cells.assign(task.X_test)]


def make_task(seed: int) -> Task:
    """Split, project and find the public cells, all from one public seed."""
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits

    public = np.random.default_rng(seed)
    images, labels = load_digits(return_X_y=True)
    matrix = public.normal(size=(images.shape[1], WIDTH)) / np.sqrt(WIDTH)
    X = (images - 8.0) @ matrix
    order = public.permutation(len(X))
    source, private, test = np.split(order, [len(X) // 2, len(X) // 2 + len(X) // 3])
    reach = 8.0 * np.abs(matrix).sum(axis=0)
    centers = KMeans(n_clusters=CELLS, n_init=2, random_state=seed).fit(X[source]).cluster_centers_
    return Task(X[source], centers, (-reach, reach), X[private], labels[private], X[test], labels[test])


__all__ = ["Task", "make_task", "run"]
