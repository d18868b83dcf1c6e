"""Evaluation: do the intervals hold, how wide are they, and how fast is an answer.

* ``coverage_*``: share of generated data sets whose interval of 95 % holds the population's number.
* ``width_over_clear``: width of an accuracy's interval over Clopper and Pearson's of the exact counts.
* ``rows_per_second``: rows of 20 features that an owner evaluates a linear model on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._figures import Figure, main
from privada import Category, Number, Owner, PureDP, Relation, Schema, run
from privada.methods.evaluation import ErrorMoments, OutcomeCounts, even_edges, learn
from privada.methods.hypotheses import linear

MODEL = linear([[4.0]], [-2.0])
PURE = PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE)
CLASSES = Category(name="y", values=(0, 1))


def measure(quick: bool) -> Iterator[Figure]:
    """Generate, ask and compare."""
    runs = 60 if quick else 300
    held = [_held(np.random.default_rng(seed)) for seed in range(runs)]
    for at, name in enumerate(("accuracy", "auc", "squared_error")):
        share = float(np.mean([each[at] for each in held]))
        yield Figure(f"coverage_{name}", share, 0.94, "higher", "nominal 0.95", runs)
    yield Figure(
        "width_over_clear", _width(runs // 10), 2.0, "lower", "Clopper-Pearson without noise", runs // 10
    )
    yield Figure("rows_per_second", _speed(), 1e6, "higher", "linear model, 20 features", 3)


def _world(rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.uniform(size=(rows, 1))
    return X, (rng.uniform(size=rows) < _chance(X[:, 0])).astype(int)


def _chance(x: Any) -> Any:
    return 1 / (1 + np.exp(2 - 4 * x))


def _truth() -> tuple[float, float]:
    """Accuracy and area under the curve of ten bins, by integration."""
    x = (np.arange(100_000) + 0.5) / 100_000
    p = _chance(x)
    bins = np.searchsorted(even_edges(10), p, side="right")
    pos, neg = np.bincount(bins, p, 10), np.bincount(bins, 1 - p, 10)
    below = (np.cumsum(neg) - neg / 2) / neg.sum()
    return float(np.maximum(p, 1 - p).mean()), float(pos @ below / pos.sum())


def _held(rng: np.random.Generator) -> tuple[bool, bool, bool]:
    """Whether each interval of one data set holds."""
    found = _classified(*_world(400, rng), bins=10)
    accuracy, area = _truth()
    X = rng.uniform(size=(400, 1))
    error = _regressed(X, 2 * X[:, 0] + rng.normal(0, 0.3, size=400))
    return (
        found.accuracy.low <= accuracy <= found.accuracy.high,
        found.auc.low <= area <= found.auc.high,
        error.low <= 0.09 <= error.high,
    )


def _classified(X: Any, y: Any, bins: int) -> Any:
    schema = Schema.of_numbers(bounds=(0, 1), width=X.shape[1], label=CLASSES)
    edges = even_edges(bins) if bins > 1 else np.zeros(0)
    question = OutcomeCounts(hypothesis=MODEL, n_classes=2, edges=edges, link="softmax", guarantee=PURE)
    owner = Owner(X, y=y, schema=schema, dataset="rows", budget=PURE)
    return run(learn("owner", question), {"owner": owner})


def _regressed(X: Any, y: Any) -> Any:
    schema = Schema.of_numbers(bounds=(0, 1), width=1, label=Number(name="y", low=-2, high=4))
    question = ErrorMoments(hypothesis=linear([[2.0]], [0.0]), largest=1.0, guarantee=PURE)
    owner = Owner(X, y=y, schema=schema, dataset="rows", budget=PURE)
    return run(learn("owner", question), {"owner": owner}).squared_error


def _width(runs: int) -> float:
    """Mean width over that without noise."""
    from scipy.stats import binomtest

    found = []
    for seed in range(runs):
        X, y = _world(4000, np.random.default_rng(seed))
        right = int((y == (X[:, 0] >= 0.5)).sum())
        clear = binomtest(right, 4000).proportion_ci(0.95)
        ours = _classified(X, y, bins=1).accuracy
        found.append((ours.high - ours.low) / (clear.high - clear.low))
    return float(np.mean(found))


def _speed() -> float:
    """The best of three answers on a million rows."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(1_000_000, 20)), rng.integers(2, size=1_000_000)
    schema = Schema.of_numbers(bounds=(0, 1), width=20, label=CLASSES)
    owner = Owner(
        X, y=y, schema=schema, dataset="rows", budget=PureDP(epsilon=8, relation=Relation.ADD_REMOVE)
    )
    times = []
    for run_at in range(3):
        question = OutcomeCounts(
            hypothesis=linear(np.ones((20, 1)), [-10.0]),
            n_classes=2,
            edges=even_edges(10),
            link="softmax",
            guarantee=PURE,
            salt=str(run_at),
        )
        begun = time.perf_counter()
        owner.answer(question)
        times.append(time.perf_counter() - begun)
    return 1_000_000 / min(times)


if __name__ == "__main__":
    main(measure, "Evaluation")
