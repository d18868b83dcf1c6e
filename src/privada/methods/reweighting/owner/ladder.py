"""How moments of residuals are answered: public features of every record, exact sums, then noise."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numba
import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner import kernels
from privada.methods.linear.owner.descent import labelled
from privada.methods.reweighting.questions.moments import CorrectionMoments, MixtureMoments, ResidualMoments
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows

_INSIDE = 1 - 2.0**-40


def answer_moments(question: ResidualMoments, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Exact sums of every record's moments in whole grid steps, then noise."""
    numbers = question.features.width + question.directions_count * question.outputs
    totals = rows.total(partial(_moments, question), numbers=numbers)
    return {name: draw(name, total) for name, total in totals.items()}


def _moments(question: ResidualMoments, batch: Batch) -> dict[str, IntArray]:
    """What a batch adds to every sum, in grid steps."""
    X, y = labelled(batch)
    seen = question.features.extend(X)
    left = _residuals(question, kernels.scored(seen, question.weights, question.intercepts), y)
    per_step = [1 / _step(question, name) for name in ("moments", "products")]
    if isinstance(question, MixtureMoments):
        Phi = _directions(
            np.ascontiguousarray(seen[:, question.features.columns :]), question.directions, question.radius
        )
        squares = np.array([_sum_squares(left, 1 / _step(question, "squares"))], dtype=np.int64)
        return {
            "moments": _sum_moments(Phi, per_step[0]),
            "products": _sum_shared(Phi, left, per_step[1]),
            "squares": squares,
        }
    assert isinstance(question, CorrectionMoments)
    Z = kernels.mapped(seen, question.transform, question.shift, float(question.radius))
    return {
        "moments": _sum_moments(Z[:, :, None], per_step[0]),
        "products": _sum_outer(Z, left, per_step[1]),
    }


def _step(question: ResidualMoments, name: str) -> float:
    return question.plan.lattice(name).grid.step


def _residuals(question: ResidualMoments, scores: FloatArray, y: FloatArray) -> FloatArray:
    """Labels less scores, clipped; a record whose score is not a number has none."""
    if question.features.link == "identity":
        wanted = y[:, None]
    elif question.outputs == 1:
        wanted = (y == 1.0).astype(np.float64)[:, None]
    else:
        wanted = (y[:, None] == np.arange(question.outputs)).astype(np.float64)
    return np.asarray(_clipped(wanted - scores, float(question.clip)))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _clipped(R: FloatArray, most: float) -> FloatArray:  # pragma: no cover - compiled
    """Rows shortened to a length, each by itself; one that is not finite is 0."""
    made = np.empty(R.shape)
    for i in range(R.shape[0]):
        total = 0.0
        for j in range(R.shape[1]):
            total += R[i, j] * R[i, j]
        length = math.sqrt(total)
        factor = 1.0 if length <= most * _INSIDE else most * _INSIDE / length
        for j in range(R.shape[1]):
            made[i, j] = R[i, j] * factor if length < np.inf else 0.0
    return made


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _directions(
    seen: FloatArray, directions: FloatArray, radius: float
) -> FloatArray:  # pragma: no cover - compiled
    """Φ of every record, shortened to the radius."""
    n, c = seen.shape
    k, outputs = directions.shape[0], directions.shape[2]
    flat = np.empty((n, k * outputs))
    for i in range(n):
        for a in range(k):
            for o in range(outputs):
                total = directions[a, c, o]
                for j in range(c):
                    total += seen[i, j] * directions[a, j, o]
                flat[i, a * outputs + o] = total
    return _clipped(flat, radius).reshape(n, k, outputs)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sum_moments(Phi: FloatArray, per_step: float) -> IntArray:  # pragma: no cover - compiled
    """Entries of ``Φ Φ'`` on and above the diagonal, those above it times √2, truncated toward zero."""
    n, k, outputs = Phi.shape
    sums = np.zeros(k * (k + 1) // 2, dtype=np.int64)
    root = math.sqrt(2.0)
    for i in range(n):
        at = 0
        for a in range(k):
            for b in range(a, k):
                total = 0.0
                for o in range(outputs):
                    total += Phi[i, a, o] * Phi[i, b, o]
                sums[at] += np.int64((total if a == b else root * total) * per_step)
                at += 1
    return sums


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sum_shared(Phi: FloatArray, left: FloatArray, per_step: float) -> IntArray:  # pragma: no cover
    """``Φ r``, truncated toward zero."""
    n, k, outputs = Phi.shape
    sums = np.zeros(k, dtype=np.int64)
    for i in range(n):
        for a in range(k):
            total = 0.0
            for o in range(outputs):
                total += Phi[i, a, o] * left[i, o]
            sums[a] += np.int64(total * per_step)
    return sums


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sum_outer(Z: FloatArray, left: FloatArray, per_step: float) -> IntArray:  # pragma: no cover
    """``z r'``, truncated toward zero."""
    n, k = Z.shape
    sums = np.zeros((k, left.shape[1]), dtype=np.int64)
    for i in range(n):
        for a in range(k):
            for o in range(left.shape[1]):
                sums[a, o] += np.int64(Z[i, a] * left[i, o] * per_step)
    return sums


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sum_squares(left: FloatArray, per_step: float) -> np.int64:  # pragma: no cover - compiled
    """``|r|²``, truncated toward zero."""
    found = np.int64(0)
    for i in range(left.shape[0]):
        total = 0.0
        for o in range(left.shape[1]):
            total += left[i, o] * left[i, o]
        found += np.int64(total * per_step)
    return found


__all__ = ["answer_moments"]
