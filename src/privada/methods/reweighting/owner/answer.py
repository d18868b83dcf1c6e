"""How the questions of this room are answered: exact sums on the grid, a step at a time, then noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner import kernels
from privada.methods.linear.owner.descent import labelled
from privada.methods.linear.questions import losses
from privada.methods.reweighting.owner.adaptation import adapt
from privada.methods.reweighting.questions import supremum
from privada.methods.reweighting.questions.adaptation import ConvexAdaptation, NonconvexAdaptation
from privada.methods.reweighting.questions.discrepancy import Discrepancy, FiniteDiscrepancy
from privada.methods.reweighting.questions.module import ModuleAdaptation
from privada.methods.reweighting.questions.selection import Selection
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.bounds import Grid
from privada.privacy.release import Question

FINE, COARSE = (
    Grid(-30),
    Grid(-20),
)  # of a share of the largest loss; sums of 2^33 coarse ones are exact floats


def _step(question: Question, name: str) -> float:
    return question.plan.lattice(name).grid.step


def answer_discrepancy(question: Discrepancy, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Second moments of the private rows in whole steps, the exact supremum, then noise."""
    total = rows.at_most(question.size, draw.noise).total(partial(_sum_pairs, question))
    gap = question.moments_of(total) - question.source_moments
    if question.labelled:
        found = supremum.of_moments(gap, question.hypothesis_radius)
    else:
        found = supremum.of_second_moments(gap[:-1, :-1], question.hypothesis_radius)
    return _released(question, found.value, draw)


def _sum_pairs(question: Discrepancy, batch: Batch) -> IntArray:
    """Products of a batch's features and residuals, in whole steps of the largest."""
    X, y = labelled(batch)
    Z = kernels.mapped(X, question.transform, question.shift, float(question.radius))
    base = kernels.scored(X, question.weights[:, None], np.array([float(question.intercept)]))[:, 0]
    left = np.nan_to_num(y - base, nan=0.0)  # a score that overflows says nothing of its record
    left = np.clip(left, -question.label_bound, question.label_bound)
    sums = np.zeros(question.source_moments.shape, dtype=np.int64)
    kernels.add_pairs(sums, Z / question.radius, left / question.label_bound, 1 / question.grid.step)
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
    scores, wide = kernels.scored(X, weights, intercepts), len(intercepts) // len(question.weights)
    parts = (scores[:, at : at + wide] for at in range(0, len(intercepts), wide))
    return np.array([_steps(question, each, y, FINE).sum() for each in parts], dtype=np.int64)


def _steps(
    question: FiniteDiscrepancy | Selection, scores: FloatArray, y: FloatArray, grid: Grid
) -> IntArray:
    """Clipped losses over the largest, from 0 to 1, in whole steps: their sum is the same in every order."""
    each = losses.clipped(question.loss, scores, y, question.largest_loss)
    return grid.truncate(np.minimum(each / question.largest_loss, 1.0))


def _released(question: Discrepancy | FiniteDiscrepancy, value: float, draw: Draws) -> dict[str, Any]:
    """No two means of losses are further apart than the largest loss: a value beyond it is cut."""
    exact = question.plan.lattice("discrepancy").grid.truncate(np.array([min(value, question.largest_loss)]))
    return {"discrepancy": draw("discrepancy", exact)}


def answer_selection(question: Selection, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Minus the sum of clipped losses of every candidate, then a choice."""
    return {"choice": draw("choice", COARSE.values(-rows.total(partial(_sum_candidates, question))))}


def _sum_candidates(question: Selection, batch: Batch) -> IntArray:
    """Losses of every candidate over a batch, in coarse steps."""
    X, y = labelled(batch)
    scores = (kernels.scored(X, *each) for each in zip(question.weights, question.intercepts, strict=True))
    return np.array([_steps(question, each, y, COARSE).sum() for each in scores], dtype=np.int64)


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
    taken, mean = question.start, np.zeros_like(question.start)
    for t, w in enumerate(path):
        taken = w if t == min(stop, question.steps - 1) else taken
        mean = mean + w / (question.steps - half) if t >= half else mean
    return {"weights": np.array(taken if question.stopping == "random" else mean)}


__all__ = [
    "answer_convex",
    "answer_discrepancy",
    "answer_finite",
    "answer_module",
    "answer_nonconvex",
    "answer_selection",
]
