"""How the questions of this method are answered: exact sums on the grid, a step at a time, then noise."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numba
import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner import add_pairs, labelled, mapped, scored
from privada.methods.linear.questions import losses
from privada.methods.reweighting.owner.adaptation import adapt
from privada.methods.reweighting.questions import supremum
from privada.methods.reweighting.questions.adaptation import ConvexAdaptation, NonconvexAdaptation
from privada.methods.reweighting.questions.discrepancy import Discrepancy, FiniteDiscrepancy
from privada.methods.reweighting.questions.module import ModuleAdaptation
from privada.methods.reweighting.questions.moments import CorrectionMoments, MixtureMoments, ResidualMoments
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.bounds import Grid
from privada.privacy.release import Question

_INSIDE = 1 - 2.0**-40  # of a norm, for the rounding of its own computation
FINE = Grid(-30)  # of a share of the largest loss


def _step(question: Question, name: str) -> float:
    return question.plan.lattice(name).grid.step


def answer_discrepancy(question: Discrepancy, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Second moments of the private rows in whole steps, the exact supremum, then noise."""
    total = rows.at_most(question.size, draw.noise).total(partial(_sum_pairs, question))
    gap = question.moments_of(total) - question.source_moments
    if question.labelled:
        value = supremum.of_moments(gap, question.hypothesis_radius).value
    else:
        value = supremum.of_second_moments(gap[:-1, :-1], question.hypothesis_radius).value
    return _released(question, value, draw)


def _sum_pairs(question: Discrepancy, batch: Batch) -> IntArray:
    """Products of a batch's features and residuals, in whole steps of the largest."""
    X, y = labelled(batch)
    Z = mapped(X, question.transform, question.shift, float(question.radius))
    base = scored(X, question.weights[:, None], np.array([float(question.intercept)]))[:, 0]
    residuals = np.nan_to_num(y - base, nan=0.0)  # a score that overflows says nothing of its record
    residuals = np.clip(residuals, -question.label_bound, question.label_bound)
    sums = np.zeros(question.source_moments.shape, dtype=np.int64)
    add_pairs(sums, Z / question.radius, residuals / question.label_bound, 1 / question.grid.step)
    return sums


def answer_finite(question: FiniteDiscrepancy, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Mean clipped loss of every hypothesis, the largest difference from the source's, then noise."""
    wide = question.table()[1].size
    total = rows.total(partial(_sum_losses, question), numbers=wide)
    means = FINE.values(total) * question.largest_loss / question.size
    return _released(question, float(np.abs(means - question.source_losses).max()), draw)


def _sum_losses(question: FiniteDiscrepancy, batch: Batch) -> IntArray:
    """Losses of every hypothesis over a batch, in fine steps."""
    (weights, intercepts), (X, y) = question.table(), labelled(batch)
    scores, wide = scored(X, weights, intercepts), len(intercepts) // len(question.weights)
    parts = (scores[:, at : at + wide] for at in range(0, len(intercepts), wide))
    # Clipped losses over the largest, from 0 to 1, in whole steps: their sum is the same in every order.
    shares = (losses.clipped(question.loss, part, y, question.largest_loss) for part in parts)
    return np.array(
        [FINE.truncate(np.minimum(part / question.largest_loss, 1.0)).sum() for part in shares],
        dtype=np.int64,
    )


def _released(question: Discrepancy | FiniteDiscrepancy, value: float, draw: Draws) -> dict[str, Any]:
    """No two means of losses are further apart than the largest loss: a value beyond it is cut."""
    exact = question.plan.lattice("discrepancy").grid.truncate(np.array([min(value, question.largest_loss)]))
    return {"discrepancy": draw("discrepancy", exact)}


def answer_convex(question: ConvexAdaptation, rows: Rows, draw: Draws) -> dict[str, Any]:
    """PCnvxAdap: the average of all iterates."""
    coef = np.zeros(question.shape)
    for w in adapt(question, rows, draw):
        coef += w / question.steps
    return {"coef": coef}


def answer_nonconvex(question: NonconvexAdaptation, rows: Rows, draw: Draws) -> dict[str, Any]:
    """PNCnvxAdap: the iterate of a random step, and nothing else."""
    stop = min(int(draw.noise.uniform((1,))[0] * question.steps), question.steps - 1)
    coef = np.zeros(question.shape)
    for t, w in enumerate(adapt(question, rows, draw)):  # to the end: time must not tell the step
        coef = w if t == stop else coef
    return {"coef": coef}


def answer_module(question: ModuleAdaptation, rows: Rows, draw: Draws) -> dict[str, Any]:
    """PNCnvxAdap on a torch module: the iterate of a random step, or the mean of the later half."""
    from privada.methods.reweighting.owner import module_steps

    stop = int(draw.noise.uniform((1,))[0] * question.steps)
    path, half = module_steps.adapt(question, rows, draw), question.steps // 2
    stopped, mean = question.start, np.zeros_like(question.start)
    for t, w in enumerate(path):  # to the end: time must not tell the step
        stopped = w if t == min(stop, question.steps - 1) else stopped
        mean = mean + w / (question.steps - half) if t >= half else mean
    return {"weights": np.array(stopped if question.stopping == "random" else mean)}


def answer_moments(question: ResidualMoments, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Exact sums of every record's moments in whole grid steps, then noise."""
    numbers = question.features.width + question.directions_count * question.outputs
    totals = rows.total(partial(_moments, question), numbers=numbers)
    return {name: draw(name, total) for name, total in totals.items()}


def _moments(question: ResidualMoments, batch: Batch) -> dict[str, IntArray]:
    """What a batch adds to every sum, in grid steps."""
    X, y = labelled(batch)
    features = question.features.extend(X)
    if question.features.link == "identity":
        labels = y[:, None]
    elif question.outputs == 1:
        labels = (y == 1.0).astype(np.float64)[:, None]
    else:
        labels = (y[:, None] == np.arange(question.outputs)).astype(np.float64)
    # labels less scores, shortened; a record whose score is not a number has none
    scores = scored(features, question.weights, question.intercepts)
    residuals = np.asarray(_clipped(labels - scores, float(question.clip)))
    per_step = [1 / _step(question, name) for name in ("moments", "products")]
    if isinstance(question, MixtureMoments):
        Phi = _directions(
            np.ascontiguousarray(features[:, question.features.columns :]),
            question.directions,
            question.radius,
        )
        squares = np.array([_sum_squares(residuals, 1 / _step(question, "squares"))], dtype=np.int64)
        return {
            "moments": _sum_moments(Phi, per_step[0]),
            "products": _sum_shared(Phi, residuals, per_step[1]),
            "squares": squares,
        }
    assert isinstance(question, CorrectionMoments)
    Z = mapped(features, question.transform, question.shift, float(question.radius))
    return {
        "moments": _sum_moments(Z[:, :, None], per_step[0]),
        "products": _sum_outer(Z, residuals, per_step[1]),
    }


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _clipped(R: FloatArray, most: float) -> FloatArray:  # pragma: no cover - compiled
    """Rows shortened to a length, each by itself; one that is not finite is 0."""
    shortened = np.empty(R.shape)
    for i in range(R.shape[0]):
        total = 0.0
        for j in range(R.shape[1]):
            total += R[i, j] * R[i, j]
        length = math.sqrt(total)
        factor = 1.0 if length <= most * _INSIDE else most * _INSIDE / length
        for j in range(R.shape[1]):
            shortened[i, j] = R[i, j] * factor if length < np.inf else 0.0
    return shortened


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _directions(
    predictions: FloatArray, directions: FloatArray, radius: float
) -> FloatArray:  # pragma: no cover - compiled
    """Φ of every record, shortened to the radius."""
    n, c = predictions.shape
    k, outputs = directions.shape[0], directions.shape[2]
    flat = np.empty((n, k * outputs))
    for i in range(n):
        for a in range(k):
            for o in range(outputs):
                total = directions[a, c, o]
                for j in range(c):
                    total += predictions[i, j] * directions[a, j, o]
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
    squares = np.int64(0)
    for i in range(left.shape[0]):
        total = 0.0
        for o in range(left.shape[1]):
            total += left[i, o] * left[i, o]
        squares += np.int64(total * per_step)
    return squares


__all__ = [
    "answer_convex",
    "answer_discrepancy",
    "answer_finite",
    "answer_module",
    "answer_moments",
    "answer_nonconvex",
]
