"""Compiled passes over rows in which the result for a record depends on that record alone.

Distances, norms and scores are summed coordinate by coordinate in one fixed order, so neither a
record's place in a batch nor its neighbours can change its last bit. Sums over records are sums of
integers, the same in every order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from privada._arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privada.methods.cells.questions.partition import Bins

_INSIDE = 1 - 2.0**-40


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_clipped(
    sums: IntArray,
    X: FloatArray,
    cells: IntArray,
    origins: FloatArray,
    radius: float,
    steps: float,
) -> None:  # pragma: no cover - compiled
    """Add each row, relative to its cell's origin, clipped to the ball and truncated to whole steps.

    Centres are the learner's choice and may be as far as floats go. Half a difference of two
    floats is finite, and a clipped row is its direction times the radius, never a row times a
    factor too small for a float. So the norm stays within the radius for every centre.
    """
    inner = radius * (_INSIDE - X.shape[1] * 2.0**-52)  # a sum of d squares is off by d units at most
    for i in range(X.shape[0]):
        cell = cells[i]
        largest = 0.0
        for k in range(X.shape[1]):
            largest = max(largest, abs(0.5 * X[i, k] - 0.5 * origins[cell, k]))
        if largest == 0.0:
            continue
        total = 0.0
        for k in range(X.shape[1]):
            part = (0.5 * X[i, k] - 0.5 * origins[cell, k]) / largest
            total += part * part
        length = np.sqrt(total)
        if 2.0 * largest * length > inner:
            for k in range(X.shape[1]):
                part = (0.5 * X[i, k] - 0.5 * origins[cell, k]) / largest
                sums[cell, k] += np.int64(part * (inner / length) * steps)
        else:
            for k in range(X.shape[1]):
                sums[cell, k] += np.int64((X[i, k] - origins[cell, k]) * steps)


def count_bins(tables: Sequence[Bins], X: FloatArray, labels: IntArray, classes: int) -> list[IntArray]:
    """Count rows over bins of several features, and by label if there are labels, reading a row once.

    Each table's counts are flat: by bin, then by class.
    """
    sizes = [len(table.edges) for table in tables]
    cells = [table.n_cells * classes for table in tables]
    count_starts = np.cumsum([0, *cells])
    counts = np.zeros(count_starts[-1], dtype=np.int64)
    add_to_bins(
        counts,
        np.ascontiguousarray(X),
        labels,
        np.array([table.feature for table in tables], dtype=np.int64),
        np.array([-1 if table.missing is None else table.missing for table in tables], dtype=np.int64),
        np.concatenate([table.edges for table in tables]),
        np.cumsum([0, *sizes]),
        count_starts,
        classes,
    )
    return np.split(counts, count_starts[1:-1])


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def add_to_bins(
    counts: IntArray,
    X: FloatArray,
    labels: IntArray,
    features: IntArray,
    missing: IntArray,
    edges: FloatArray,
    edge_starts: IntArray,
    count_starts: IntArray,
    classes: int,
) -> None:  # pragma: no cover - compiled
    """Add each row to its bin of every table: where each table's edges and counts begin is given."""
    per_step = np.empty(features.shape[0])
    for t in range(features.shape[0]):
        first, last = edges[edge_starts[t]], edges[edge_starts[t + 1] - 1]
        per_step[t] = (edge_starts[t + 1] - edge_starts[t] - 1) / (last - first)
    for i in range(X.shape[0]):
        label = labels[i] if labels.shape[0] else 0
        for t in range(features.shape[0]):
            begin, size = edge_starts[t], edge_starts[t + 1] - edge_starts[t]
            value = X[i, features[t]]
            # Guess the bin as if edges were evenly spaced; then let the edges themselves correct the
            # guess. The result is that of ``searchsorted`` for any edges, found at once for even ones.
            guess = (value - edges[begin]) * per_step[t] + 1.0
            place = np.int64(guess) if 0.0 <= guess < size else (size if guess >= size else 0)
            while place < size and edges[begin + place] <= value:
                place += 1
            while place > 0 and edges[begin + place - 1] > value:
                place -= 1
            if missing[t] >= 0 and X[i, missing[t]] == 1.0:
                place = size + 1
            counts[count_starts[t] + place * classes + label] += 1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def affine(X: FloatArray, matrix: FloatArray, shift: FloatArray) -> FloatArray:  # pragma: no cover - compiled
    """``X @ matrix + shift``, each row summed in one fixed order."""
    result = np.empty((X.shape[0], matrix.shape[1]))
    for i in range(X.shape[0]):
        for j in range(matrix.shape[1]):
            result[i, j] = shift[j]
        for k in range(X.shape[1]):
            value = X[i, k]
            for j in range(matrix.shape[1]):
                result[i, j] += value * matrix[k, j]
    return result


def forward(X: FloatArray, layers: tuple[tuple[FloatArray, FloatArray], ...], activation: str) -> FloatArray:
    """Scores of a feed-forward network whose hidden layers are "relu" or "tanh"."""
    values = np.ascontiguousarray(X, dtype=np.float64)
    for index, (weights, bias) in enumerate(layers):
        values = affine(values, weights, bias)
        if index < len(layers) - 1:
            activate(values, activation == "relu")
    return values


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def activate(values: FloatArray, relu: bool) -> None:  # pragma: no cover - compiled
    """Apply "relu" or "tanh" to every number, in place."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = max(values[i, j], 0.0) if relu else np.tanh(values[i, j])


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def largest(scores: FloatArray) -> IntArray:  # pragma: no cover - compiled
    """Index of the largest score of each row, the first on ties; one score is compared with 0."""
    codes = np.zeros(scores.shape[0], dtype=np.int64)
    for i in range(scores.shape[0]):
        if scores.shape[1] == 1:
            codes[i] = 1 if scores[i, 0] > 0.0 else 0
            continue
        best = 0
        for j in range(1, scores.shape[1]):
            if scores[i, j] > scores[i, best]:
                best = j
        codes[i] = best
    return codes


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def normalise(scores: FloatArray) -> None:  # pragma: no cover - compiled
    """Turn each row's scores into probabilities, in place; one score is the log-odds of the second class."""
    for i in range(scores.shape[0]):
        if scores.shape[1] == 1:
            scores[i, 0] = 1.0 / (1.0 + np.exp(-scores[i, 0]))
            continue
        highest = scores[i, 0]
        for j in range(1, scores.shape[1]):
            highest = max(highest, scores[i, j])
        total = 0.0
        for j in range(scores.shape[1]):
            scores[i, j] = np.exp(scores[i, j] - highest)
            total += scores[i, j]
        for j in range(scores.shape[1]):
            scores[i, j] /= total


__all__ = [
    "activate",
    "add_clipped",
    "add_to_bins",
    "affine",
    "count_bins",
    "forward",
    "largest",
    "normalise",
]
