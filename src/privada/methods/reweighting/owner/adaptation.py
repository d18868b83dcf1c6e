"""The steps of PCnvxAdap and PNCnvxAdap at the owner's: public parts exact, private parts noised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada.methods.linear.owner import kernels
from privada.methods.linear.questions import losses
from privada.methods.reweighting.owner.counted import counted
from privada.methods.reweighting.questions import problem
from privada.methods.reweighting.questions.adaptation import ConvexAdaptation, NonconvexAdaptation
from privada.parties.answering import Draws
from privada.parties.rows import BATCH, Rows
from privada.privacy.bounds import Ball
from privada.privacy.noise import Noise

FloatArray = npt.NDArray[np.float64]
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
        if self.loss == "softmax":
            return self._look_at_classes(w)
        scores = kernels.scored(self.X, w[:, None], np.zeros(1))
        found = losses.clipped(self.loss, scores, self.y, self.largest)
        if self.loss == "squared":
            return found, 2 * (scores[:, 0] - self.y)
        return found, losses.probabilities("logistic", scores)[:, 0] - self.y

    def _look_at_classes(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores = kernels.scored(self.X, W, np.zeros(W.shape[1]))
        push = losses.probabilities("softmax", scores)
        push[np.arange(len(push)), self.y.astype(np.int64)] -= 1
        return losses.clipped("softmax", scores, self.y, self.largest), push


def _sides(question: Adaptation, rows: Rows, noise: Noise) -> tuple[_Side, _Side]:
    convex = isinstance(question, ConvexAdaptation)
    loss = "squared" if convex else ("logistic" if len(question.shape) == 1 else "softmax")
    ball = Ball(radius=question.r)
    X, y, _ = counted(rows, question.size, np.zeros(question.source.shape[1]), noise)
    for start in range(0, len(X), BATCH):
        X[start : start + BATCH] = ball.clip(X[start : start + BATCH])
    source = ball.clip(question.source)
    labels = question.source_labels
    if convex:
        y, labels = np.clip(y, -1, 1), np.clip(labels, -1, 1)
    return (
        _Side(np.ascontiguousarray(source), labels, loss, question.largest_loss),
        _Side(X, y, loss, question.largest_loss),
    )


@dataclass(frozen=True, eq=False)
class _Sizes:
    """The paper's step sizes (line 4), times the question's factor; in the question's units for private u."""

    w: float
    public: float
    private: float

    @classmethod
    def of(cls, question: Adaptation) -> _Sizes:
        penalties, n, m = question.penalties, question.size, len(question.source)
        left, T = (1 - penalties.alpha) / n, question.steps
        deviation = left * question.plan.lattice("gradient_0").scale * math.sqrt(math.prod(question.shape))
        w = question.A / math.sqrt(T * (question.largest_gradient**2 + deviation**2))
        more = question.largest_loss + penalties.kappa1 + penalties.kappa2 + penalties.kappa_inf
        public = m**1.5 / (math.sqrt(T) * penalties.alpha**2 * (question.largest_loss + more))
        spread = left**2 * more
        factor = question.step_scale
        return cls(factor * w, factor * public, factor / math.sqrt(T * n) / spread)


def adapt(question: Adaptation, rows: Rows, draw: Draws) -> Iterator[FloatArray]:
    """The iterates w, after each of T steps."""
    public, private = _sides(question, rows, draw.noise)
    m, n, penalties = len(public.X), question.size, question.penalties
    p, sizes = penalties.reference(m, n), _Sizes.of(question)
    low = problem.lowest(p)
    w, u = np.zeros(question.shape), low.copy()
    for t in range(question.steps):
        seen, push = public.look(w)
        kept, pull = private.look(w)
        noisy = _noisy_gradient(question, private.X, pull, u[m:], t, draw)
        slope_w = public.X.T @ (push.T / u[:m]).T + noisy
        slope_u = _separable(question, np.r_[seen + penalties.discrepancy, kept], u, p)
        w = _into_ball(w - sizes.w * slope_w, question.A)
        step = np.r_[np.full(m, sizes.public), np.full(n, sizes.private)]
        u = _lifted(u, step, slope_u, low)
        yield w


def _lifted(u: FloatArray, step: FloatArray, slope: FloatArray, low: FloatArray) -> FloatArray:
    """One step of u, each by itself: at least the lowest, which it also is where a step overflows."""
    return np.asarray(np.fmax(low, u - step * slope))


def _noisy_gradient(
    question: Adaptation, X: FloatArray, pull: FloatArray, u: FloatArray, t: int, draw: Draws
) -> FloatArray:
    """Noisy ``Σ ∇l/u`` over the private rows."""
    mechanism = question.plan.lattice(f"gradient_{t}")
    least = question.size / (1 - question.penalties.alpha)
    sums, factor = np.zeros(question.shape, dtype=np.int64), np.minimum(1.0, least / u)
    if pull.ndim == 2:
        kernels.add_outer(sums, X, pull, factor, question.largest_gradient, 1 / mechanism.grid.step)
    else:
        kernels.add_weighted(sums, X, pull * factor, 1 / mechanism.grid.step)
    return draw(f"gradient_{t}", sums) / least


def _separable(question: Adaptation, all_losses: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
    """``∂/∂u`` with the separable penalty κ₂ Σ 1/u², row by row: exact, for private u never leave."""
    penalties = question.penalties
    pull = penalties.kappa1 * p**2 if isinstance(question, ConvexAdaptation) else penalties.kappa1 / u**2
    return np.asarray(pull - all_losses / u**2 - 2 * penalties.kappa2 / u**3)


def _into_ball(w: FloatArray, radius: float) -> FloatArray:
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


__all__ = ["adapt"]
