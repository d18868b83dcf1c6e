"""Counts over bins of several features in one pass over the rows.

Where a value belongs is guessed as if edges were evenly spaced, and the edges themselves correct the guess:
the bin is that of ``searchsorted`` for any edges, found at once for even ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from privada._arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class BinLayout:
    """All bins one after another: where each table's edges and counts begin."""

    features: IntArray
    missing: IntArray
    edges: FloatArray
    edge_places: IntArray
    count_places: IntArray
    classes: int

    def count(self, X: FloatArray, labels: IntArray) -> list[IntArray]:
        """Counts of every table, flat: by bin, then by class."""
        counts = np.zeros(self.count_places[-1], dtype=np.int64)
        tables = (self.features, self.missing, self.edges, self.edge_places, self.count_places)
        _count(counts, np.ascontiguousarray(X), labels, *tables, self.classes)
        return np.split(counts, self.count_places[1:-1])


def lay_out(tables: Sequence[Any], classes: int) -> BinLayout:
    """The layout of `Bins`."""
    sizes = [len(table.edges) for table in tables]
    cells = [table.n_cells * classes for table in tables]
    return BinLayout(
        features=np.array([table.feature for table in tables], dtype=np.int64),
        missing=np.array(
            [-1 if table.missing is None else table.missing for table in tables], dtype=np.int64
        ),
        edges=np.concatenate([table.edges for table in tables]),
        edge_places=np.cumsum([0, *sizes]),
        count_places=np.cumsum([0, *cells]),
        classes=classes,
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _count(
    counts: IntArray,
    X: FloatArray,
    labels: IntArray,
    features: IntArray,
    missing: IntArray,
    edges: FloatArray,
    edge_places: IntArray,
    count_places: IntArray,
    classes: int,
) -> None:  # pragma: no cover - compiled
    per_step = np.empty(features.shape[0])
    for t in range(features.shape[0]):
        first, last = edges[edge_places[t]], edges[edge_places[t + 1] - 1]
        per_step[t] = (edge_places[t + 1] - edge_places[t] - 1) / (last - first)
    for i in range(X.shape[0]):
        label = labels[i] if labels.shape[0] else 0
        for t in range(features.shape[0]):
            begin, size = edge_places[t], edge_places[t + 1] - edge_places[t]
            value = X[i, features[t]]
            guess = (value - edges[begin]) * per_step[t] + 1.0
            place = np.int64(guess) if 0.0 <= guess < size else (size if guess >= size else 0)
            while place < size and edges[begin + place] <= value:
                place += 1
            while place > 0 and edges[begin + place - 1] > value:
                place -= 1
            if missing[t] >= 0 and X[i, missing[t]] == 1.0:
                place = size + 1
            counts[count_places[t] + place * classes + label] += 1


__all__ = ["BinLayout", "lay_out"]
