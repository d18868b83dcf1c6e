"""How long a fit of an ordinary table takes, by every estimator with its default settings.

A table of 5,000 private and 5,000 public rows with 50 features in different units, made by a generator; the
labels are a number, or one of three classes. Each fit is made in a process of its own, which has imported and
compiled everything in a fit of a few rows before; all processors of the machine may be used. The seconds of
one fit depend on the machine and on who else uses it, so a plain logistic regression of the same rows is
timed in the same process and printed beside it.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure, main

FloatArray = npt.NDArray[np.float64]
ROWS, FEATURES, CLASSES, GOAL = 5_000, 50, ("high", "low", "middle"), 10.0
FEW = 300  # rows of the fit that warms up
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
BOUNDS = (-1e3, 1e3)


def measure(quick: bool) -> Iterator[Figure]:
    """Time every estimator."""
    for name in FITS:
        runs = 1 if quick else 3
        found = [_timed(name) for _ in range(runs)]
        ours, plain = (sorted(times)[runs // 2] for times in zip(*found, strict=True))
        beside = f"logistic regression in the clear: {plain:.2f} s"
        yield Figure(f"fit_seconds_{name}", ours, GOAL, "lower", beside, runs)


def _timed(name: str) -> tuple[float, float]:
    """Seconds of ours and of the plain model, in a fresh interpreter."""
    command = [sys.executable, "-m", "benchmarks.fits", "--only", name]
    ours, plain = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(ours), float(plain)


def table(rows: int, seed: int) -> tuple[FloatArray, FloatArray, npt.NDArray[Any]]:
    """Rows in different units, a numeric label within [-10, 10], and classes."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(rows, 10))
    mixing = np.random.default_rng(0).normal(size=(10, FEATURES))
    X = latent @ mixing / 3 + rng.normal(size=(rows, FEATURES))
    units = np.logspace(-1, 1.5, FEATURES)
    y = np.clip(X[:, 0] - X[:, 1] + latent[:, 0] * latent[:, 1] + 0.5 * rng.normal(size=rows), -10, 10)
    named = np.asarray(CLASSES)[np.digitize(y, [-0.7, 0.7])]
    return np.clip(X * units, *BOUNDS), y, named


def _reweighting_regressor(rows: int) -> None:
    from privada import ReweightedRegressor

    (X, y, _), (Xt, yt, _) = table(rows, 1), table(rows, 2)
    model = ReweightedRegressor(**BUDGET, bounds=BOUNDS, label_bounds=(-10, 10), random_state=0)
    model.fit(X, y, Xt, yt)


def _reweighting_classifier(rows: int) -> None:
    from privada import ReweightedClassifier

    (X, _, y), (Xt, _, yt) = table(rows, 1), table(rows, 2)
    ReweightedClassifier(**BUDGET, classes=CLASSES, bounds=BOUNDS, random_state=0).fit(X, y, Xt, yt)


def _marginals_learner(rows: int) -> None:
    from privada import MarginalClassifier

    (X, _, _), (Xt, _, yt) = table(rows, 1), table(rows, 2)
    model = MarginalClassifier(**BUDGET, classes=CLASSES, bounds=BOUNDS, relation="replace-one", size=rows)
    model.fit(Xt, yt, source=X)


def _marginals_regressor(rows: int) -> None:
    from privada import MarginalRegressor

    (X, _, _), (Xt, yt, _) = table(rows, 1), table(rows, 2)
    about: dict[str, Any] = {"bounds": BOUNDS, "label_bounds": (-10, 10), "size": rows}
    MarginalRegressor(**BUDGET, relation="replace-one", **about).fit(Xt, yt, source=X)


def _transport(rows: int) -> None:
    from privada import TransportClassifier

    (X, _, y), (Xt, _, _) = table(rows, 1), table(rows, 2)
    TransportClassifier(**BUDGET, classes=CLASSES, bounds=BOUNDS).fit(X, y, Xt)


def _clustering(rows: int) -> None:
    from privada import SourceTargetMedoids

    (X, _, _), (Xt, _, _) = table(rows, 1), table(rows, 2)
    model = SourceTargetMedoids(n_centers=20, norm_bound=300.0, epsilon=1.0, random_state=0)
    model.fit(X, Xt=Xt)


def _summarization(rows: int) -> None:
    from privada import PrivateSummarizer

    (X, _, _), (Xt, _, _) = table(rows, 1), table(rows // 10, 2)
    units = np.logspace(-1, 1.5, FEATURES)
    model = PrivateSummarizer(size=100, gamma=0.01, bounds=(-20, 20), **BUDGET, random_state=0)
    model.fit(np.clip(Xt / units, -20, 20), owners=np.array_split(np.clip(X / units, -20, 20), 4))


def _cells(rows: int) -> None:
    from privada import CellClassifier

    (X, _, _), (Xt, _, yt) = table(rows, 1), table(rows, 2)
    CellClassifier(X[:50], **BUDGET, classes=CLASSES, bounds=BOUNDS).fit(Xt, yt)


FITS: dict[str, Callable[[int], None]] = {
    "reweighting_regressor": _reweighting_regressor,
    "reweighting_classifier": _reweighting_classifier,
    "marginals_learner": _marginals_learner,
    "marginals_regressor": _marginals_regressor,
    "transport": _transport,
    "clustering": _clustering,
    "summarization": _summarization,
    "cells": _cells,
}


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _logistic() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    X, _, y = table(ROWS, 2)
    LogisticRegression(max_iter=300).fit(StandardScaler().fit_transform(X), y)


def _only(name: str) -> None:
    """Print the seconds of one estimator and of the plain model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FITS[name](FEW)
        print(_seconds(lambda: FITS[name](ROWS)), _seconds(_logistic))


if __name__ == "__main__":
    if "--only" in sys.argv:
        _only(sys.argv[sys.argv.index("--only") + 1])
    else:
        main(measure, "Fits of an ordinary table")
