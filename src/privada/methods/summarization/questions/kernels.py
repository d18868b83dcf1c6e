"""Random Fourier features in which the result for a record depends on that record alone.

Phases and scores are summed in one fixed order, row by row, so neither a record's place
in a batch nor its neighbours can move its last bit (hazard 10 of privacy.md, section 0).
"""

from __future__ import annotations

import numba
import numpy as np

from privada._arrays import FloatArray, IntArray

FARTHEST = 1e300  # largest sum of a row's coordinates
INSIDE = 1 - 2.0**-40  # keeps the computed feature vector inside the unit ball


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def embed(
    X: FloatArray, frequencies: FloatArray, features: FloatArray
) -> None:  # pragma: no cover - compiled
    """Write cosines, then sines, of every row; each row has norm just under 1.

    Frequencies are within ±1e6; a row so far out that a phase could leave the floats has phases of 0.
    """
    pairs = frequencies.shape[0]
    unit = INSIDE / np.sqrt(pairs)
    for i in range(X.shape[0]):
        size = 0.0
        for k in range(X.shape[1]):
            size += abs(X[i, k])
        if not size < FARTHEST:
            features[i, :pairs] = unit
            features[i, pairs:] = 0.0
            continue
        for j in range(pairs):
            phase = 0.0
            for k in range(X.shape[1]):
                phase += X[i, k] * frequencies[j, k]
            features[i, j] = unit * np.cos(phase)
            features[i, pairs + j] = unit * np.sin(phase)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_truncated(sums: IntArray, features: FloatArray, steps: float) -> None:  # pragma: no cover - compiled
    """Add every row in whole grid steps, truncated toward zero."""
    for i in range(features.shape[0]):
        for j in range(features.shape[1]):
            sums[j] += np.int64(features[i, j] * steps)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def score(
    features: FloatArray, direction: FloatArray, scores: FloatArray
) -> None:  # pragma: no cover - compiled
    """Write every row's product with a direction, summed from the first coordinate to the last."""
    for i in range(features.shape[0]):
        total = 0.0
        for j in range(features.shape[1]):
            total += features[i, j] * direction[j]
        scores[i] = total


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def count_beyond(
    features: FloatArray, direction: FloatArray, threshold: float
) -> int:  # pragma: no cover - compiled
    """How many rows score above the threshold."""
    count = 0
    for i in range(features.shape[0]):
        score = 0.0
        for j in range(features.shape[1]):
            score += features[i, j] * direction[j]
        if score > threshold:
            count += 1
    return count


__all__ = ["INSIDE", "add_truncated", "count_beyond", "embed", "score"]
