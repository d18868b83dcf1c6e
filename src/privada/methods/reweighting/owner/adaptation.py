"""The steps of PCnvxAdap and PNCnvxAdap at the owner's: public parts exact, private parts noised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.methods.linear.owner import add_outer, add_weighted, labelled, scored
from privada.methods.linear.questions import losses
from privada.methods.reweighting.questions import problem
from privada.methods.reweighting.questions.adaptation import ConvexAdaptation, NonconvexAdaptation
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.bounds import Ball

Adaptation = ConvexAdaptation | NonconvexAdaptation


@dataclass(frozen=True, eq=False)
class _Side:
    """Clipped rows of one side, with their losses and pulls at a point."""

    X: FloatArray
    y: FloatArray
    loss: str
    largest: float

    def look(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Losses in [0, B], and the factor of each row's features in its gradient, one or one a class."""
        W = w.reshape(len(w), -1)
        scores = scored(self.X, W, np.zeros(W.shape[1]))
        clipped = losses.clipped(self.loss, scores, self.y, self.largest)
        if self.loss == "squared":
            return clipped, 2 * (scores[:, 0] - self.y)
        push = losses.probabilities(self.loss, scores)
        if self.loss == "logistic":
            return clipped, push[:, 0] - self.y
        push[np.arange(len(push)), self.y.astype(np.int64)] -= 1
        return clipped, push


@dataclass(frozen=True, eq=False)
class _Private:
    """Private rows, their u, and what they add to the gradient of the last step, in grid steps."""

    side: _Side
    u: FloatArray
    sums: IntArray


def _side(question: Adaptation, X: FloatArray, y: FloatArray) -> _Side:
    """Rows, clipped into the ball; labels of the convex problem are clipped, too."""
    X = Ball(radius=question.r).clip(X)
    convex = isinstance(question, ConvexAdaptation)
    loss = "squared" if convex else ("logistic" if len(question.shape) == 1 else "softmax")
    return _Side(np.ascontiguousarray(X), np.clip(y, -1, 1) if convex else y, loss, question.largest_loss)


def _private_side(question: Adaptation, batch: Batch) -> _Private:
    """Private rows before the first step."""
    X, y = labelled(batch)
    side = _side(question, X, y)
    least, _ = _least(question)
    return _Private(side, np.full(len(X), least), np.zeros(question.shape, dtype=np.int64))


def _least(question: Adaptation) -> tuple[float, float]:
    """The lowest u of a private row, and its reference weight: the same for all."""
    reference = question.penalties.reference(len(question.source), question.size)
    return float(problem.lowest(reference)[-1]), float(reference[-1])


@dataclass(frozen=True, eq=False)
class _Sizes:
    """The paper's step sizes (line 4), times the question's factor; in the question's units for private u."""

    w: float
    public: float
    private: float

    @classmethod
    def of(cls, question: Adaptation) -> _Sizes:
        penalties, n, m = question.penalties, question.size, len(question.source)
        private_share, T = (1 - penalties.alpha) / n, question.steps
        deviation = (
            private_share * question.plan.lattice("gradient_0").scale * math.sqrt(math.prod(question.shape))
        )
        w = question.A / math.sqrt(T * (question.largest_gradient**2 + deviation**2))
        more = question.largest_loss + penalties.kappa1 + penalties.kappa2 + penalties.kappa_inf
        public = m**1.5 / (math.sqrt(T) * penalties.alpha**2 * (question.largest_loss + more))
        spread = private_share**2 * more
        factor = question.step_scale
        return cls(factor * w, factor * public, factor / math.sqrt(T * n) / spread)


def adapt(question: Adaptation, rows: Rows, draw: Draws) -> Iterator[FloatArray]:
    """The iterates w, after each of T steps."""
    public = _side(question, question.source, question.source_labels)
    private = rows.at_most(question.size, draw.noise).prepared(partial(_private_side, question))
    m, penalties = len(public.X), question.penalties
    p, sizes = penalties.reference(m, question.size)[:m], _Sizes.of(question)
    low = problem.lowest(penalties.reference(m, question.size))[:m]
    w, u = np.zeros(question.shape), low.copy()
    for t in range(question.steps):
        public_losses, push = public.look(w)
        private = private.advanced(partial(_advance, question, w, f"gradient_{t}", sizes.private))
        noisy = draw(f"gradient_{t}", private.total(_sums)) / _most(question)
        slope_w = public.X.T @ (push.T / u).T + noisy
        slope_u = _separable(question, public_losses + penalties.discrepancy, u, p)
        # Projected steps: w back into its ball, u back to its least values.
        w = w - sizes.w * slope_w
        w = w * min(1.0, question.A / max(float(np.linalg.norm(w)), 1e-300))
        u = _lifted(u, sizes.public, slope_u, low)
        yield w


def _sums(private: _Private) -> IntArray:
    """A function of a module, which a cluster finds by its name."""
    return private.sums


def _advance(question: Adaptation, w: FloatArray, name: str, step: float, private: _Private) -> _Private:
    """One step of private rows, each by itself: what they add to the gradient at w, and their next u."""
    private_losses, pull = private.side.look(w)
    # ``Σ ∇l/u``, times `_most`, in grid steps
    per_step = 1 / question.plan.lattice(name).grid.step
    sums, factor = np.zeros(question.shape, dtype=np.int64), np.minimum(1.0, _most(question) / private.u)
    if pull.ndim == 2:
        add_outer(sums, private.side.X, pull, factor, question.largest_gradient, per_step)
    else:
        add_weighted(sums, private.side.X, pull * factor, per_step)
    low, p = _least(question)
    slope = _separable(question, private_losses, private.u, p)
    return _Private(private.side, _lifted(private.u, step, slope, low), sums)


def _lifted(u: FloatArray, step: float, slope: FloatArray, low: FloatArray | float) -> FloatArray:
    """One step of u, each by itself: at least the lowest, which it also is where a step overflows."""
    return np.asarray(np.fmax(low, u - step * slope))


def _most(question: Adaptation) -> float:
    """``n/(1-α)``: the unit of private u."""
    return question.size / (1 - question.penalties.alpha)


def _separable(
    question: Adaptation, all_losses: FloatArray, u: FloatArray, p: FloatArray | float
) -> FloatArray:
    """``∂/∂u`` with the separable penalty κ₂ Σ 1/u², row by row: exact, for private u never leave."""
    penalties = question.penalties
    pull = penalties.kappa1 * p**2 if isinstance(question, ConvexAdaptation) else penalties.kappa1 / u**2
    return np.asarray(pull - all_losses / u**2 - 2 * penalties.kappa2 / u**3)


__all__ = ["adapt"]
