"""Passes over rows in which the result for a record depends on that record alone.

Dot products are summed coordinate by coordinate in one fixed order, so neither a record's place in a
batch nor its neighbours can move its last bit; sums are sums of integers, the same in every order.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray

_INSIDE = 1 - 2.0**-40


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _norm(z: FloatArray) -> float:  # pragma: no cover - compiled
    """Length of one record, without overflow."""
    largest = 0.0
    for j in range(z.shape[0]):
        largest = max(largest, abs(z[j]))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for j in range(z.shape[0]):
        part = z[j] / largest
        total += part * part
    return largest * math.sqrt(total)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _finite(z: FloatArray) -> bool:  # pragma: no cover - compiled
    """Whether all numbers of one record are."""
    largest = 0.0
    for j in range(z.shape[0]):
        largest = max(largest, abs(z[j])) if abs(z[j]) < np.inf else np.inf
    return largest < np.inf


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def mapped(
    X: FloatArray, transform: FloatArray, shift: FloatArray, radius: float
) -> FloatArray:  # pragma: no cover - compiled
    """``x P + shift`` of every row, clipped to the ball; a row that overflows is 0."""
    n, d = X.shape
    k = transform.shape[1]
    Z = np.empty((n, k))
    for i in range(n):
        for j in range(k):
            Z[i, j] = shift[j]
        for a in range(d):
            x = X[i, a]
            if x != 0.0:
                for j in range(k):
                    Z[i, j] += x * transform[a, j]
        if not _finite(Z[i]):
            Z[i] = 0.0
        norm = _norm(Z[i])
        if norm > radius * _INSIDE:  # a record that is not finite is 0 by now
            factor = radius * _INSIDE / norm
            for j in range(k):
                Z[i, j] *= factor
    return Z


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def scored(
    X: FloatArray, weights: FloatArray, intercepts: FloatArray
) -> FloatArray:  # pragma: no cover - compiled
    """``x W + b`` of every row."""
    n, d = X.shape
    outputs = weights.shape[1]
    scores = np.empty((n, outputs))
    for i in range(n):
        for o in range(outputs):
            total = intercepts[o]
            for a in range(d):
                total += X[i, a] * weights[a, o]
            scores[i, o] = total
    return scores


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def squared_pull(score: float, y: float, threshold: float) -> float:  # noqa: ARG001 # pragma: no cover
    """ψ of one record: its residual, not yet bounded; the threshold is in the bound."""
    return score - y


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def logistic_pull(score: float, y: float, threshold: float) -> float:  # pragma: no cover - compiled
    """ψ of one record of two classes."""
    signed = score if y == 1.0 else -score
    loss = math.log1p(math.exp(-abs(signed))) + max(0.0, -signed)
    push = -math.expm1(-loss)
    weight = 1.0 if loss <= threshold else math.sqrt(threshold / loss)
    return -weight * push if y == 1.0 else weight * push


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_softmax(
    sums: npt.NDArray[np.int64],
    Z: FloatArray,
    base: FloatArray,
    y: FloatArray,
    V: FloatArray,
    threshold: float,
    bound: float,
    per_step: float,
) -> None:  # pragma: no cover - compiled
    """Add ``z ⊗ ψ`` of every record of several classes, shortened to the bound, in whole grid steps.

    A pull that is not a number (scores that overflow) adds nothing: what a record adds has norm at most
    the bound whatever V is. Steps are truncated toward zero.
    """
    k, outputs = V.shape
    scores = np.empty(outputs)
    for i in range(Z.shape[0]):
        for o in range(outputs):
            total = base[i, o]
            for j in range(k):
                total += Z[i, j] * V[j, o]
            scores[o] = total
        # from scores to the record's pull, in place
        most = scores[0]
        for o in range(1, outputs):
            most = max(most, scores[o])
        total = 0.0
        for o in range(outputs):
            total += math.exp(scores[o] - most)
        code = int(y[i])
        loss = math.log(total) + most - scores[code]
        weight = 1.0 if loss <= threshold else math.sqrt(threshold / loss)
        for o in range(outputs):
            p = math.exp(scores[o] - most) / total
            scores[o] = weight * (p - 1.0 if o == code else p)
        length = _norm(Z[i]) * _norm(scores)
        if not (_finite(Z[i]) and _finite(scores) and length < np.inf):
            continue
        factor = per_step if length <= bound * _INSIDE else per_step * (bound * _INSIDE / length)
        for o in range(outputs):
            pull = scores[o] * factor
            for j in range(k):
                sums[j, o] += np.int64(Z[i, j] * pull)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_weighted(
    sums: npt.NDArray[np.int64], Z: FloatArray, push: FloatArray, per_step: float
) -> None:  # pragma: no cover - compiled
    """Add ``push_i z_i`` of every record in whole grid steps, truncated toward zero.

    A push that is not finite adds nothing.
    """
    for i in range(Z.shape[0]):
        pull = push[i] * per_step
        if not abs(pull) < np.inf:
            continue
        for j in range(Z.shape[1]):
            sums[j] += np.int64(Z[i, j] * pull)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_outer(
    sums: npt.NDArray[np.int64],
    Z: FloatArray,
    push: FloatArray,
    factor: FloatArray,
    bound: float,
    per_step: float,
) -> None:  # pragma: no cover - compiled
    """Add ``z ⊗ push`` of every record, shortened to the bound, times its factor, in whole grid steps.

    A record that is not finite, or whose factor is not in [0, 1], adds nothing. Steps are truncated toward
    zero.
    """
    for i in range(Z.shape[0]):
        if not (np.abs(push[i]).sum() < np.inf and np.abs(Z[i]).sum() < np.inf and 0.0 <= factor[i] <= 1.0):
            continue
        length = _norm(Z[i]) * _norm(push[i])
        scale = factor[i] * per_step
        if length > bound * _INSIDE:
            scale *= bound * _INSIDE / length
        for o in range(push.shape[1]):
            pull = push[i, o] * scale
            for j in range(Z.shape[1]):
                sums[j, o] += np.int64(Z[i, j] * pull)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_pairs(
    sums: npt.NDArray[np.int64], Z: FloatArray, e: FloatArray, per_step: float
) -> None:  # pragma: no cover - compiled
    """Add the outer products of (z, e), on and above the diagonal, in whole steps truncated toward zero."""
    k = Z.shape[1]
    row = np.empty(k + 1)
    for i in range(Z.shape[0]):
        for a in range(k):
            row[a] = Z[i, a]
        row[k] = e[i]
        for a in range(k + 1):
            if row[a] != 0.0:
                for b in range(a, k + 1):
                    sums[a, b] += np.int64(row[a] * row[b] * per_step)


__all__ = [
    "add_outer",
    "add_pairs",
    "add_softmax",
    "add_weighted",
    "logistic_pull",
    "mapped",
    "scored",
    "squared_pull",
]
