"""Every estimator with a small case of its own, for tests that run over all of them.

A case gives new private rows for each seed, and the public rest of ``fit`` by name, so that scikit-learn can
divide the private rows: ``model.fit(X, y, **public)``.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import privada
from privada.methods.hypotheses import linear
from privada.methods.reweighting.deep import DeepReweightedClassifier, DeepReweightedRegressor

CLASSES = ("no", "yes")
ROWS = 90
PURE = {"epsilon": 0.5}
GAUSSIAN = {"epsilon": 0.5, "delta": 1e-6}


@dataclass
class Case:
    """One estimator: a function of further settings, what it protects its rows by, and its public side."""

    name: str
    kind: Any
    settings: dict[str, Any]
    label: str = "class"  # "class", "number" or "none"
    public: dict[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> Any:
        """The estimator, not fitted."""
        return self.kind(**(self.settings | more))

    def private(self, seed: int = 0, rows: int = ROWS) -> tuple[Any, Any]:
        """New private rows and labels."""
        X, y, number = table(seed, rows)
        return X, {"class": y, "number": number, "none": None}[self.label]


def table(seed: int, rows: int) -> tuple[Any, Any, Any]:
    """Rows of two features in [0, 1], a class and a number of each."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, 2))
    number = X.sum(axis=1) / 2
    return X, np.asarray(CLASSES)[(number > 0.5).astype(int)], number


def _cases() -> list[Case]:
    X, y, number = table(99, 70)
    classes = {"classes": CLASSES, "bounds": (0, 1)}
    numbers = {"bounds": (0, 1), "label_bounds": (0, 1)}
    centers = {"centers": [[0.2, 0.2], [0.8, 0.8]]}
    labelled = {"Xs": X, "ys": y}
    return [
        Case("CellClassifier", privada.CellClassifier, classes | centers | PURE),
        Case("CellMeans", privada.CellMeans, centers | PURE | {"bounds": (0, 1), "radius": 1}, "none"),
        Case(
            "SourceTargetMedoids",
            privada.SourceTargetMedoids,
            {"n_centers": 2, "norm_bound": 2.0, "n_draws": 2, "random_state": 0} | PURE,
            "none",
            {"Xt": X},
        ),
        Case(
            "PrivateEvaluator",
            privada.PrivateEvaluator,
            classes | PURE | {"model": linear([[4.0], [4.0]], [-4.0])},
        ),
        Case(
            "MarginalClassifier",
            privada.MarginalClassifier,
            classes | PURE | {"size": 60},
            "class",
            {"source": X},
        ),
        Case(
            "MarginalRegressor",
            privada.MarginalRegressor,
            numbers | GAUSSIAN | {"size": 60},
            "number",
            {"source": X},
        ),
        Case("TransportClassifier", privada.TransportClassifier, classes | GAUSSIAN, "class", {"Xt": X}),
        Case(
            "ReweightedClassifier",
            privada.ReweightedClassifier,
            classes | GAUSSIAN | {"base": "linear"},
            "class",
            labelled,
        ),
        Case(
            "ReweightedRegressor",
            privada.ReweightedRegressor,
            numbers | GAUSSIAN | {"base": "linear"},
            "number",
            {"Xs": X, "ys": number},
        ),
        Case(
            "DeepReweightedClassifier",
            DeepReweightedClassifier,
            classes | GAUSSIAN | {"steps": 2},
            "class",
            labelled,
        ),
        Case(
            "DeepReweightedRegressor",
            DeepReweightedRegressor,
            numbers | GAUSSIAN | {"steps": 2},
            "number",
            {"Xs": X, "ys": number},
        ),
        Case(
            "PrivateSummarizer",
            privada.PrivateSummarizer,
            {"size": 5, "gamma": 1.0, "bounds": (0, 1), "n_features": 4, "random_state": 0} | GAUSSIAN,
            "none",
            {"owners": {"a": table(7, 31)[0], "b": table(8, 32)[0]}},
        ),
    ]


CASES = _cases()
NAMES = [case.name for case in CASES]
