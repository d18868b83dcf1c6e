"""What is scored of a summary, and summaries that no market gathers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada_lab.baselines.summaries import uniform_sample
from privada_lab.datasets.shift import Shift
from privada_lab.experiments.summarization.market import FEATURES, Rows
from privada_lab.papers.summarization import paper_features, paper_summary


class Scores:
    """MMD² and accuracies of each method, size and number of owners, over runs."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int, int, str], list[float]] = defaultdict(list)

    def add(self, method: str, p: int, k: int, **values: float) -> None:
        """One run's scores."""
        for name, value in values.items():
            self._seen[method, p, k, name].append(value)

    def values(self, method: str, p: int, k: int, name: str) -> FloatArray:
        """A score of all runs."""
        return np.array(self._seen[method, p, k, name])

    def mean(self, method: str, p: int, k: int, name: str = "mmd2") -> float:
        """A score's mean."""
        return float(self.values(method, p, k, name).mean())


def uniform_rows(shift: Shift, p: int, seed: int) -> Rows:
    """As many random rows from each owner."""
    parts = uniform_sample([len(y) for _, y in shift.owners], p, random_state=seed)
    pairs = list(zip(shift.owners, parts, strict=True))
    return np.vstack([X[i] for (X, _), i in pairs]), np.concatenate([y[i] for (_, y), i in pairs])


def printed_rows(shift: Shift, p: int, seed: int) -> tuple[Rows, int]:
    """What Algorithm 3 gathers as printed, with seeded noise, and how many points the curator saw."""

    def features(X: FloatArray) -> FloatArray:
        return paper_features(X, dimension=FEATURES, gamma=shift.gamma, random_state=seed)

    owners = [features(X) for X, _ in shift.owners]
    made = paper_summary(owners, features(shift.validation), features(shift.seed_set), p, insecure_seed=seed)
    pairs = list(zip(made.owner.tolist(), made.index.tolist(), strict=True))
    X, y = (np.array([shift.owners[k][part][i] for k, i in pairs]) for part in (0, 1))
    return (X, y), made.points_seen


def accuracy(name: str, found: Rows, shift: Shift, *, test: Rows | None = None) -> float:
    """Accuracy in percent, on the shift's test rows unless others are given, of a model of a summary."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    makers: dict[str, Callable[[], Any]] = {
        "svm": lambda: LinearSVC(C=1.0, max_iter=5000),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=0),
        "tree": lambda: DecisionTreeClassifier(random_state=0),
    }
    tested = shift.test if test is None else test
    if len(np.unique(found[1])) < 2:
        return 100 * float(np.mean(tested[1] == found[1][0]))
    return 100 * float(makers[name]().fit(*found).score(*tested))


__all__ = ["Scores", "accuracy", "printed_rows", "uniform_rows"]
