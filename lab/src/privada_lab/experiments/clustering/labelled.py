"""End to end: label the chosen target points, train on them and on the private source, predict the rest.

A softmax model is trained on the labelled source under (ε, δ). Then one model is fitted to the
mean loss of the k chosen points, whose labels the learner paid for, and the mean loss of the source, both
counting alike; the latter is known as a quadratic around the private weights, its curvature taken from the
public target (a softmax curves by at most 1/2).
What differs between rows is only how the k points were chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.report.exhibit import Curves, Series
from privada_lab.baselines.clustering import STC, ClusterT
from privada_lab.baselines.private.logistic import DPLogisticRegression
from privada_lab.datasets.source_target import RADIUS, LabelledPair, labelled_pairs
from privada_lab.experiments.clustering.contenders import BUDGETS, ours
from privada_lab.experiments.registry import Track

KS = (10, 20, 40)
EPSILON, DELTA = 3.0, 1e-5  # of the training on the source
MOST_RUNS = 10


def adaptation(folder: Path, runs: int, track: Track) -> Iterator[Curves]:
    """Accuracy on unlabelled target points against k, for each way to choose."""
    for pair in labelled_pairs(folder):
        values: dict[str, list[list[float]]] = {}
        for seed in track(range(min(runs, MOST_RUNS)), f"labelled {pair.pair.name}"):
            start = _private_weights(pair)
            for name, choose in _ways(seed).items():
                row = [_accuracy(pair, choose(pair, k), start) for k in KS]
                values.setdefault(name, []).append(row)
        series = tuple(Series.over_runs(name, KS, found, role=_role(name)) for name, found in values.items())
        title = f"Labelled points for {pair.pair.name}"
        yield Curves(title=title, xlabel="k", ylabel="accuracy on the rest of the target", series=series)


def _role(name: str) -> str:
    return {"ours": "ours", "STC": "bound"}.get(name, "baseline")


def _ways(seed: int) -> dict[str, Callable[[LabelledPair, int], IntArray]]:
    rng = np.random.default_rng(seed)
    return {
        "random": lambda pair, k: rng.choice(len(pair.pair.target), k, replace=False),
        "ClusterT": lambda pair, k: ClusterT(k).fit(None, Xt=pair.pair.target).indices_,
        "ours": lambda pair, k: ours(pair.pair, k, BUDGETS["pure"]),
        "STC": lambda pair, k: STC(k).fit(pair.pair.source, Xt=pair.pair.target).indices_,
    }


def _private_weights(pair: LabelledPair) -> DPLogisticRegression:
    return DPLogisticRegression(EPSILON, DELTA, pair.classes, RADIUS).fit(pair.X, pair.y)


def _accuracy(pair: LabelledPair, chosen: IntArray, start: DPLogisticRegression) -> float:
    """Accuracy of the model, moved by the chosen labels, on all other target points."""
    rest = np.setdiff1d(np.arange(len(pair.yt)), chosen)
    weights = _moved(pair, chosen, np.column_stack([start.coef_, start.intercept_]))
    scores = _with_one(pair.Xt[rest]) @ weights.T
    return float(np.mean(np.asarray(pair.classes)[scores.argmax(axis=1)] == pair.yt[rest]))


def _with_one(X: FloatArray) -> FloatArray:
    return np.column_stack([X, np.ones(len(X))])


def _moved(pair: LabelledPair, chosen: IntArray, start: FloatArray) -> FloatArray:
    from scipy.optimize import minimize
    from scipy.special import log_softmax, softmax

    X = _with_one(pair.Xt[chosen])
    Y = pair.yt[chosen][:, None] == np.asarray(pair.classes)
    around = _with_one(pair.Xt)
    curvature = around.T @ around / (2 * len(around))

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        moved = flat.reshape(start.shape)
        scores = X @ moved.T
        pull = (moved - start) @ curvature
        value = -float(log_softmax(scores, axis=1)[Y].mean()) + float(np.sum((moved - start) * pull)) / 2
        slope = (softmax(scores, axis=1) - Y).T @ X / len(X) + pull
        return value, slope.ravel()

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B")
    return np.asarray(found.x, dtype=np.float64).reshape(start.shape)


__all__ = ["adaptation"]
