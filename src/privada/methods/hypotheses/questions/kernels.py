"""Predictions in which the result for a record depends on that record alone.

Each layer sums over inputs in one fixed order, so neither a record's place in a
batch nor its neighbours can move its last bit, and hence no other record's label.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.methods.cells.questions import kernels


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _relu(values: FloatArray) -> None:  # pragma: no cover - compiled
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = max(values[i, j], 0.0)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _tanh(values: FloatArray) -> None:  # pragma: no cover - compiled
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = np.tanh(values[i, j])


_ACTIVATIONS = {"relu": _relu, "tanh": _tanh}


def forward(X: FloatArray, layers: tuple[tuple[FloatArray, FloatArray], ...], activation: str) -> FloatArray:
    """Scores of a feed-forward network."""
    values = np.ascontiguousarray(X, dtype=np.float64)
    for index, (weights, bias) in enumerate(layers):
        values = kernels.affine(values, weights, bias)
        if index < len(layers) - 1:
            _ACTIVATIONS[activation](values)
    return values


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def largest(scores: FloatArray) -> npt.NDArray[np.int64]:  # pragma: no cover - compiled
    """Index of the largest score of each row, the first on ties; one score is compared with 0."""
    found = np.zeros(scores.shape[0], dtype=np.int64)
    for i in range(scores.shape[0]):
        if scores.shape[1] == 1:
            found[i] = 1 if scores[i, 0] > 0.0 else 0
            continue
        best = 0
        for j in range(1, scores.shape[1]):
            if scores[i, j] > scores[i, best]:
                best = j
        found[i] = best
    return found


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


__all__ = ["forward", "largest", "normalise"]
