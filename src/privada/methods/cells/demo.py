"""The row of cells in ``privada demo``: handwritten digits whose labels stay with their owner."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.methods.cells.learner import CellTable
from privada.methods.cells.method import Cells
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.example import DemoRow
from privada.methods.method import Public
from privada.methods.pictures import Picture, Tiles
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import PureDP
from privada.privacy.relation import Relation

DIGITS = tuple(range(10))
CELLS = 40
EPSILON = 1.0
BUDGET = 4.0


def demo(seed: int) -> DemoRow:
    """Classify digits by private class counts in the cells of a public, unlabelled source.

    Only public randomness is seeded (split and centres); the noise is drawn
    from the operating system, so the private score differs from run to run.
    """
    from sklearn.cluster import KMeans

    X, y, part = _digits(seed)
    clusters = KMeans(n_clusters=CELLS, n_init=2, random_state=seed).fit(X[part == 0])
    centers = NearestCells(centers=clusters.cluster_centers_)
    schema = Schema.of_numbers(
        bounds=(0.0, 16.0), width=X.shape[1], label=Category(name="digit", values=DIGITS)
    )
    budget = PureDP(epsilon=BUDGET, relation=Relation.ADD_REMOVE)
    owner = Owner(X[part == 1], y=y[part == 1], schema=schema, dataset="digits", budget=budget)
    pure = PureDP(epsilon=EPSILON, relation=Relation.ADD_REMOVE)
    method = Cells(centers=centers.centers, by_label=True)
    estimates = run(method.prepare(Public(), {"archive": schema}, pure), {"archive": owner})
    test = X[part == 2], y[part == 2]
    return DemoRow(
        method="cells",
        title="read digits that nobody may look at",
        holders=(
            "An archive holds digits with their labels; "
            f"the learner holds {int((part == 0).sum())} other digits without labels."
        ),
        guarantee=estimates.release.guarantee,
        score="accuracy (%) on digits that neither side used",
        without=100 / len(DIGITS),
        ours=_accuracy(centers, estimates.tables[0], *test),
        clear=_accuracy(centers, _in_the_clear(centers, X[part == 1], y[part == 1]), *test),
        ledger=owner.ledger.export(),
        stamps=estimates.release.stamps,
        surprise=(
            "Both read a digit by the commonest class of its cell. Noise changes it in a cell or two, "
            f"and over {len(test[1])} test digits either may come out ahead by chance."
        ),
        picture=_named_cells(centers.centers, estimates.tables[0]),
    )


def _named_cells(centers: FloatArray, table: CellTable) -> Picture:
    names = [str(digit) for digit in table.probabilities.argmax(axis=1)]
    caption = (
        "The learner's own, unlabelled cells. The name above each comes from the archive, as noisy counts."
    )
    tiles = Tiles(
        title="Each public cell, and what the archive's counts call it",
        images=np.asarray(centers, dtype=np.float64).reshape(-1, 8, 8),
        names=names,
    )
    return Picture(caption=caption, parts=(tiles,))


def _digits(seed: int) -> tuple[FloatArray, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Images, labels, and a random part for each: 0 public (half), 1 private (three eighths), 2 test."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    place = np.random.default_rng(seed).permutation(len(X)) / len(X)
    return X, y, np.searchsorted([0.5, 0.875], place, side="right")


def _in_the_clear(cells: NearestCells, X: FloatArray, y: npt.NDArray[np.int64]) -> CellTable:
    """Accuracy with exact counts, for comparison, on public data."""
    codes = cells.assign(X) * len(DIGITS) + y
    counts = np.bincount(codes, minlength=cells.n_cells * len(DIGITS)).reshape(-1, len(DIGITS))
    return CellTable(counts=counts.astype(np.float64), noise=1e-9)


def _accuracy(cells: NearestCells, table: CellTable, X: FloatArray, y: Any) -> float:
    guesses = table.probabilities[cells.assign(X)].argmax(axis=1)
    return float(100 * (guesses == y).mean())


__all__ = ["demo"]
