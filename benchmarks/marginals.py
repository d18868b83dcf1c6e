"""One round of the oracle on a million target rows beside counting and predicting alone.

A round judges a network of the paper's shape (32, 32) over bins of all 25 features: it predicts, finds
bins, counts outcomes, draws noise, charges a ledger and signs. *Beside*: one ``numpy.bincount`` pass for
each feature over bins already found, plus scikit-learn's own prediction of the same network. Both take
turns after a first round that compiles; the ratio is the median over the turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier

from benchmarks._figures import Figure, main
from privada import Owner, Schema
from privada.methods.marginals import OutcomeTables, feature_bins, of_classifier
from privada.parties.schema import Category
from privada.privacy import PureDP, Relation

ROWS, WIDTH, BINS, TURNS = 1_000_000, 25, 8, 5


def measure(quick: bool) -> Iterator[Figure]:
    """Time whole rounds and their peers in turns."""
    rng = np.random.default_rng(0)
    rows = ROWS // 10 if quick else ROWS
    X = rng.normal(size=(rows, WIDTH)).clip(-5, 5)
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    model = MLPClassifier((32, 32), max_iter=2, n_iter_no_change=2, random_state=0)
    _quietly(model, X[:5000], y[:5000])
    tables = feature_bins(X[:4000], BINS)
    question = OutcomeTables(
        tables=tables,
        hypothesis=of_classifier(model, mean=np.zeros(WIDTH), scale=np.ones(WIDTH)),
        guarantee=PureDP(epsilon=1, relation=Relation.ADD_REMOVE),
    )
    owner = Owner(
        X,
        y=y,
        schema=Schema.of_numbers(bounds=(-5.0, 5.0), width=WIDTH, label=Category(name="y", values=(0, 1))),
        dataset="rows",
        budget=PureDP(epsilon=1000, relation=Relation.ADD_REMOVE),
    )
    owner.answer(question)
    ready = [table.assign(X) for table in tables]
    ratios = []
    for turn in range(TURNS):
        asked = replace(question, salt=f"turn {turn}")  # the same again would be given what is kept
        ours = _seconds(partial(owner.answer, asked))
        counted = _seconds(lambda: [np.bincount(cells, minlength=BINS) for cells in ready])
        predicted = _seconds(lambda: model.predict(X))
        ratios.append(ours / (counted + predicted))
    beside = f"{WIDTH} numpy.bincount passes and sklearn's predict, {rows:,} rows"
    yield Figure("round_time_vs_bincount_and_predict", median(ratios), 3.0, "lower", beside, TURNS)


def _quietly(model: Any, X: Any, y: Any) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)


def _seconds(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(measure, __doc__.splitlines()[0] if __doc__ else "")
