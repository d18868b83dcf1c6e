"""The steps of PNCnvxAdap on a torch module, at the owner's: public parts exact, private parts noised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner import labelled
from privada.methods.reweighting.questions import network, problem
from privada.methods.reweighting.questions.module import ModuleAdaptation
from privada.methods.reweighting.questions.network import Gradients
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
    # the paper's step size of w (line 4), with A and G of the question and its exact noise
    share = (1 - penalties.alpha) / n
    deviation = share * question.plan.lattice("gradient_0").scale * math.sqrt(len(question.start))
    pace = question.step_scale * question.A / math.sqrt(question.steps * (question.clip**2 + deviation**2))
    with one_thread():
        for name in question.names():
            slope, public_losses = public.weighted(w, 1 / u)
            private = private.advanced(partial(_advance, question, w, name))
            slope = slope + draw(name, private.total(_sums)) * (1 - penalties.alpha) / n
            losses = np.minimum(public_losses, question.largest_loss) + penalties.discrepancy
            u = _reweighted(question, u, low, losses)
            # the nearest point of the ball around the start
            away = w - pace * slope - question.start
            w = question.start + away * min(1.0, question.A / max(float(np.linalg.norm(away)), 1e-300))
            yield w


def _lowest(question: ModuleAdaptation) -> FloatArray:
    return problem.lowest(question.penalties.reference(len(question.source), question.size))


def _private_side(question: ModuleAdaptation, batch: Batch) -> _Private:
    """Private rows before the first step, with a module of their own: threads share none."""
    side = _side(question, *labelled(batch))
    return _Private(side, np.full(len(batch), _lowest(question)[-1]), np.zeros(len(question.start), np.int64))


def _advance(question: ModuleAdaptation, w: FloatArray, name: str, private: _Private) -> _Private:
    """One step of private rows: what they add to the gradient at w, and the next u of each."""
    network.torch_module().set_num_threads(1)
    grid = question.plan.lattice(name).grid
    factors = np.minimum(1.0, question.size / (1 - question.penalties.alpha) / private.u)
    sums, losses = np.zeros(len(w), dtype=np.int64), np.zeros(private.side.size)
    for at, values, gradients in private.side.blocks(w):
        sums += clipped(gradients, factors[at], question.clip, grid)
        # a loss that is not finite counts as the worst
        losses[at] = np.nan_to_num(values, nan=question.largest_loss, posinf=question.largest_loss)
    losses, low = np.minimum(losses, question.largest_loss), _lowest(question)[-1:]
    return _Private(private.side, _reweighted(question, private.u, low, losses), sums)


def _sums(private: _Private) -> IntArray:
    """A function of a module, which a cluster finds by its name."""
    return private.sums


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


__all__ = ["adapt", "clipped", "one_thread"]
