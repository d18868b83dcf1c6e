"""Accuracy for each class of a target: the form of the paper's Table 2."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.report.tables import Table
from privada_lab.experiments.transport.accuracies import FEW, MAIN, QUICK
from privada_lab.experiments.transport.case import Case, accuracy
from privada_lab.experiments.transport.contenders import (
    in_the_clear,
    minibatched,
    ours,
    pate,
    printed_in_batches,
    quickly_in_the_clear,
)


def classwise(title: str, case: Case, runs: int) -> Table:
    """Mean accuracies of one pair's target by class, over a few runs; fewer contenders in a quick look."""
    found: dict[str, list[list[float]]] = {}
    with warnings.catch_warnings():
        for kind in (RuntimeWarning, UserWarning):  # POT's, where a coupling underflows or is not finished
            warnings.simplefilter("ignore", kind)
        for seed in range(min(runs, FEW)):
            for name, table in _contenders(case, seed, quick=runs <= QUICK):
                found.setdefault(name, []).append(
                    by_class(table.argmax(axis=1), case.labels[1], case.n_classes)
                )
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    names = [*(f"class {code}" for code in range(case.n_classes)), "all"]
    rows = tuple(
        (label, *(f"{mean[index]:.1f}" for mean in means.values())) for index, label in enumerate(names)
    )
    return Table(
        title=f"{title}, {case.names[0]} to {case.names[1]}: accuracy for each class (%)",
        columns=("class", *means),
        rows=rows,
        note=f"Private ones at epsilon {MAIN:g}, delta 1/(10 n), replace-one. Runs: {min(runs, FEW)}.",
    )


def _contenders(case: Case, seed: int, *, quick: bool) -> Iterator[tuple[str, FloatArray]]:
    yield "ours", ours(case, MAIN).model_.probabilities
    yield "PATE", pate(case, MAIN)
    yield "DPDA made sound, minibatches", minibatched(case, MAIN)
    yield "DPDA as printed, minibatches (attribute level)", printed_in_batches(case, seed)
    clear = quickly_in_the_clear(case) if quick else in_the_clear(case)
    for name, table in clear.items():
        if "propagated" not in name:
            yield f"{name} (not private)", table


def by_class(found: npt.NDArray[np.int64], truth: npt.NDArray[np.int64], n_classes: int) -> list[float]:
    """Percent of each class's points that are found, then of all; nan for a class without points.

    >>> by_class(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)[:2]
    [50.0, 100.0]
    """
    each = [
        accuracy(found[truth == code], truth[truth == code]) if (truth == code).any() else float("nan")
        for code in range(n_classes)
    ]
    return [*each, accuracy(found, truth)]


__all__ = ["by_class", "classwise"]
