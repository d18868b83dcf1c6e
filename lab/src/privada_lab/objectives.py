"""The paper's two objectives, F (equation 6) and J (equation 7), with gradients: for those who see all rows.

**Reduced form.** With κ₂ = κ_∞ = 0 each u_i can be minimised by itself: the term ``l/u + κ₁ p² u`` over
``u >= 1/p`` is least at ``u = max(1, √(l/κ₁))/p``, where it is ``p(l + κ₁)`` if ``l <= κ₁`` and ``2p√(κ₁ l)``
beyond. For a squared residual that is the Huber loss of threshold √κ₁; a public row, whose l includes the
discrepancy, gets a pseudo-Huber form. No weight has to be kept, noised or released.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.reweighting.questions.problem import Penalties, lowest


def objective_f(losses: FloatArray, u: FloatArray, p: FloatArray, penalties: Penalties) -> float:
    """F(w, u) from the rows' losses, the discrepancy included for public ones."""
    q, live = 1 / u, p > 0
    linear = float((p[live] ** 2 * u[live]).sum()) - 1
    total = float(q @ losses) + penalties.kappa1 * linear + penalties.kappa2 * float(np.linalg.norm(q))
    return total + penalties.kappa_inf * float(q.max())


def gradient_f(losses: FloatArray, u: FloatArray, p: FloatArray, penalties: Penalties) -> FloatArray:
    """``∂F/∂u``; the largest weight's penalty acts on the (first) row that attains it."""
    q = 1 / u
    slope = -losses * q**2 + penalties.kappa1 * p**2
    if penalties.kappa2:
        slope -= penalties.kappa2 * q**3 / np.linalg.norm(q)
    if penalties.kappa_inf:
        at = int(q.argmax())
        slope[at] -= penalties.kappa_inf * q[at] ** 2
    return np.asarray(slope)


def objective_j(losses: FloatArray, u: FloatArray, p: FloatArray, penalties: Penalties) -> float:
    """J(w, u), as F; λ₁, λ₂ and λ_∞ are κ₁, κ₂ and κ_∞."""
    from scipy.special import logsumexp

    del p
    q = 1 / u
    total = float(q @ losses) + penalties.kappa1 * (1 - float(q.sum()))
    total += penalties.kappa2 * float(np.linalg.norm(q))
    return total + penalties.kappa_inf / penalties.sharpness * float(logsumexp(penalties.sharpness * q))


def gradient_j(losses: FloatArray, u: FloatArray, p: FloatArray, penalties: Penalties) -> FloatArray:
    """``∂J/∂u``."""
    from scipy.special import softmax

    del p
    q = 1 / u
    slope = (penalties.kappa1 - losses) * q**2
    if penalties.kappa2:
        slope -= penalties.kappa2 * q**3 / np.linalg.norm(q)
    if penalties.kappa_inf:
        slope -= penalties.kappa_inf * softmax(penalties.sharpness * q) * q**2
    return np.asarray(slope)


def best_u(losses: FloatArray, p: FloatArray, kappa1: float) -> FloatArray:
    """The u that minimises F for given losses when κ₂ = κ_∞ = 0."""
    return np.asarray(np.maximum(1.0, np.sqrt(np.maximum(losses, 0) / kappa1)) * lowest(p))


def reduced(losses: FloatArray, p: FloatArray, kappa1: float) -> float:
    """F minimised over u, for κ₂ = κ_∞ = 0."""
    inside = losses + kappa1
    beyond = 2 * np.sqrt(kappa1 * np.maximum(losses, kappa1))
    return float(p @ np.where(losses <= kappa1, inside, beyond)) - kappa1


def check_rows(Xs: Any, ys: Any, Xt: Any, yt: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Two labelled samples of one width, finite."""
    S, T = _check.matrix(Xs=Xs), _check.matrix(Xt=Xt)
    if S.shape[1] != T.shape[1]:
        raise InputError(f"Expected source and target of one width, got {S.shape[1]} and {T.shape[1]}.")
    labels = []
    for name, X, y in (("ys", S, ys), ("yt", T, yt)):
        values = np.asarray(y, dtype=np.float64)
        if values.shape != (len(X),) or not np.isfinite(values).all():
            raise InputError(f"Expected {name} to be one finite number for each row.")
        labels.append(values)
    return S, labels[0], T, labels[1]


__all__ = [
    "best_u",
    "check_rows",
    "gradient_f",
    "gradient_j",
    "objective_f",
    "objective_j",
    "reduced",
]
