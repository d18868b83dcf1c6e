"""The steps of PNCnvxAdap on a torch module, at the owner's: public parts exact, private parts noised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner.descent import labelled
from privada.methods.reweighting.questions import network, problem
from privada.methods.reweighting.questions.gradients import Gradients
from privada.methods.reweighting.questions.module import ModuleAdaptation
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.bounds import Grid

WEIGHT_STEP = 0.5  # as `nonprivate.ncnvx_adap` has it
_INSIDE = 1 - 2.0**-40  # of a norm, for the rounding of its own computation


def clipped(gradients: FloatArray, factors: FloatArray, clip: float, grid: Grid) -> IntArray:
    """Sum of rows of norm at most ``clip`` times their factor, in whole grid steps.

    A row that is not finite, or whose factor is not in [0, 1], adds nothing.
    """
    norms = np.sqrt((gradients * gradients).sum(axis=1))
    usable = np.isfinite(norms) & (factors >= 0) & (factors <= 1)
    shrunk = np.where(usable, factors * np.minimum(1.0, clip * _INSIDE / np.maximum(norms, 1e-300)), 0.0)
    rows = np.where(usable[:, None], gradients, 0.0) * shrunk[:, None]
    return np.asarray(grid.truncate(rows).sum(axis=0))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work in one thread, so that no result depends on how work is shared."""
    torch = network.torch_module()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class _Private:
    """Private rows, their u, and what they add to the gradient of the last step, in grid steps."""

    side: Gradients
    u: FloatArray
    sums: IntArray


def adapt(question: ModuleAdaptation, rows: Rows, draw: Draws) -> Iterator[FloatArray]:
    """All iterates, after each of T steps."""
    public = _side(question, question.source, question.source_labels)
    private = rows.at_most(question.size, draw.noise).prepared(partial(_private_side, question))
    m, n, penalties = public.size, question.size, question.penalties
    low = _lowest(question)[:m]
    w, u = question.start.copy(), low.copy()
    pace = _pace(question)
    with one_thread():
        for name in question.names():
            slope, seen = public.weighted(w, 1 / u)
            private = private.advanced(partial(_advance, question, w, name))
            slope = slope + draw(name, private.total(_sums)) * (1 - penalties.alpha) / n
            losses = np.minimum(seen, question.largest_loss) + penalties.discrepancy
            u = _reweighted(question, u, low, losses)
            w = _near(w - pace * slope, question.start, question.A)
            yield w


def _lowest(question: ModuleAdaptation) -> FloatArray:
    return problem.lowest(question.penalties.reference(len(question.source), question.size))


def _private_side(question: ModuleAdaptation, batch: Batch) -> _Private:
    """Private rows before the first step, with a module of their own: threads share none."""
    side = _side(question, *labelled(batch))
    return _Private(side, np.full(len(batch), _lowest(question)[-1]), np.zeros(len(question.start), np.int64))


def _advance(question: ModuleAdaptation, w: FloatArray, name: str, held: _Private) -> _Private:
    """One step of private rows: what they add to the gradient at w, and the next u of each."""
    network.torch_module().set_num_threads(1)
    sums, losses = _private_sums(question, held.side, w, held.u, name)
    losses, low = np.minimum(losses, question.largest_loss), _lowest(question)[-1:]
    return _Private(held.side, _reweighted(question, held.u, low, losses), sums)


def _sums(held: _Private) -> IntArray:
    return held.sums


def _private_sums(
    question: ModuleAdaptation, private: Gradients, w: FloatArray, u: FloatArray, name: str
) -> tuple[IntArray, FloatArray]:
    """Exact sum of the private rows' clipped gradients, and their losses (worst where not finite)."""
    mechanism = question.plan.lattice(name)
    least = question.size / (1 - question.penalties.alpha)
    factors = np.minimum(1.0, least / u)
    sums, losses = np.zeros(len(w), dtype=np.int64), np.zeros(private.size)
    for at, values, gradients in private.blocks(w):
        sums += clipped(gradients, factors[at], question.clip, mechanism.grid)
        losses[at] = np.nan_to_num(values, nan=question.largest_loss, posinf=question.largest_loss)
    return sums, losses


def _pace(question: ModuleAdaptation) -> float:
    """The paper's step size of w (line 4), with A and G of the question and its exact noise."""
    noise = question.plan.lattice("gradient_0")
    left = (1 - question.penalties.alpha) / question.size
    deviation = left * noise.scale * math.sqrt(len(question.start))
    return question.step_scale * question.A / math.sqrt(question.steps * (question.clip**2 + deviation**2))


def _reweighted(question: ModuleAdaptation, u: FloatArray, low: FloatArray, losses: FloatArray) -> FloatArray:
    """A projected step on J's separable form, in units of the least u: nothing in it is noised."""
    penalties = question.penalties
    slope = (penalties.kappa1 - losses) / u**2 - 2 * penalties.kappa2 / u**3
    return np.asarray(np.fmax(low, u - WEIGHT_STEP * low**3 * slope))  # the lowest where a step overflows


def _side(question: ModuleAdaptation, X: FloatArray, y: FloatArray) -> Gradients:
    module = network.resolve(question.network, width=question.source.shape[1])
    if question.loss == "squared":
        y = (y - question.label_mean) / question.label_scale
    return Gradients(module, question.loss, (X - question.mean) / question.scale, y)


def _near(w: FloatArray, start: FloatArray, radius: float) -> FloatArray:
    """The nearest point of the ball around the start."""
    away = float(np.linalg.norm(w - start))
    return w if away <= radius else start + (w - start) * (radius / away)


__all__ = ["adapt", "clipped", "one_thread"]
