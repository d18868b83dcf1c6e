"""Theorems 2, 4 and 5 of the reweighting paper as numbers.

They bound what is expected with the *printed* noise, and hold without any regard to privacy. Where a theorem
has an O, the number is that of its proof's last line.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError
from privada.methods.reweighting.questions.problem import Bounds, Penalties
from privada_lab.papers.reweighting import printed_scales


def excess_objective(
    *,
    epsilon: float,
    delta: float,
    steps: int,
    m: int,
    n: int,
    d: int,
    penalties: Penalties,
    bounds: Bounds,
    moved: tuple[float, float] = (0.0, 0.0),
) -> float:
    """Theorem 2: the expected ``F(w, u) - F(w*, u*)`` of Algorithm 1 is at most this.

    ``moved`` are the squared distances of the public and private u from where they start to the optimum; both
    are 0 where no loss, the discrepancy included, exceeds κ₁.

    >>> settings = dict(delta=0.01, m=7000, n=1500, d=129, penalties=Penalties(alpha=0.1), bounds=Bounds(A=2))
    >>> few, many = (excess_objective(epsilon=e, steps=10_000, **settings) for e in (1, 10))
    >>> few > many
    True
    """
    alpha = penalties.alpha
    sigma = printed_scales(epsilon=epsilon, delta=delta, steps=steps, size=n, alpha=alpha, bounds=bounds)
    more = bounds.B + penalties.kappa1 + penalties.kappa2 + penalties.kappa_inf
    w = bounds.A * math.sqrt((bounds.G**2 + d * sigma[0] ** 2) / steps)
    private = math.sqrt(((1 - alpha) ** 4 * more**2 / n**3 + n * sigma[1] ** 2) / steps)
    public = alpha**2 * (bounds.B + more) / (m**1.5 * math.sqrt(steps))
    return float(w + (moved[1] + 1) / 2 * private + (moved[0] + 1) / 2 * public)


def enough_steps(
    *, epsilon: float, delta: float, m: int, n: int, d: int, penalties: Penalties, bounds: Bounds
) -> int:
    """Theorem 2: the T from which on more steps gain nothing, where noise outweighs what descent leaves."""
    _check.positive(epsilon=epsilon)
    log = math.log(2 / _check.probability(delta=delta))
    more = bounds.B + penalties.kappa1 + penalties.kappa2 + penalties.kappa_inf
    left = (1 - penalties.alpha) ** 2
    ratio = (more * epsilon / bounds.B) ** 2 / log
    candidates = [1.0, ratio, ratio * (n / m) ** 3]
    if left:
        candidates.append((n * epsilon) ** 2 / (d * left * log))
    return math.ceil(max(candidates))


def gradient_mapping(
    *,
    epsilon: float,
    delta: float,
    m: int,
    n: int,
    d: int,
    penalties: Penalties,
    beta: float,
    G: float,
    B: float,
) -> tuple[int, float]:
    """Theorem 4: T, and the bound on the expected squared norm of the gradient mapping at that T.

    The proof has ``8 β̄ M/T + 10 (d σ₁² + n σ₂²)``, whose noise grows with T; T is where it is least.

    >>> settings = dict(delta=0.01, m=9999, n=5000, d=50, beta=0.25, G=1, B=2, penalties=Penalties(alpha=0.1))
    >>> [gradient_mapping(epsilon=e, **settings)[0] for e in (1, 10)]
    [85, 853]
    """
    if penalties.alpha >= 1:
        raise InputError("Expected alpha below 1: nothing of the private rows is descended on otherwise.")
    left, log = 1 - penalties.alpha, math.log(2 / _check.probability(delta=delta))
    shares = penalties.alpha / math.sqrt(m) + left / math.sqrt(n)
    largest = max(penalties.alpha / m, left / n) + math.log(m + n) / penalties.sharpness
    most = 2 * B + penalties.kappa1 + penalties.kappa2 * shares + penalties.kappa_inf * largest
    noise = 40 * log / _check.positive(epsilon=epsilon) ** 2
    noise *= 4 * left**2 * G**2 * d / n**2 + left**4 * B**2 / n**3
    steps = max(1, round(math.sqrt(8 * beta * most / noise)))
    return steps, 8 * beta * most / steps + noise * steps


def target_loss(
    losses: npt.ArrayLike,
    q: npt.ArrayLike,
    p: npt.ArrayLike,
    *,
    m: int,
    discrepancy: float,
    bounds: Bounds,
    confidence: float = 0.05,
) -> float:
    """Theorem 5: with probability ``1 - confidence`` the target's expected loss is at most this.

    The weighted Rademacher complexity of squared losses of linear predictors is at most ``2(Ar + 1) A r
    |q|₂`` (Talagrand's contraction). ``discrepancy`` is that of the distributions; with an estimate in its
    place the number is one up to the estimate's error.

    Parameters
    ----------
    losses, q, p : arrays of shape (m + n,)
        Losses, weights and reference weights, public rows first; ``|q - p|₁ < 1``.
    """
    each, weights = np.asarray(losses, dtype=np.float64), np.asarray(q, dtype=np.float64)
    apart = float(np.abs(weights - np.asarray(p)).sum())
    if apart >= 1:
        raise InputError(f"Expected q within distance 1 of p, got {apart:g}.")
    norm = float(np.linalg.norm(weights))
    complexity = 2 * (bounds.A * bounds.r + 1) * bounds.A * bounds.r * norm
    doubling = math.sqrt(math.log(max(1.0, math.log2(2 / (1 - apart)))))
    spread = doubling + math.sqrt(math.log(2 / _check.probability(confidence=confidence)) / 2)
    weighted = float(weights @ each) + float(weights[:m].sum()) * discrepancy
    return weighted + 2 * complexity + 6 * bounds.B * apart + bounds.B * (norm + 2 * apart) * spread


__all__ = ["enough_steps", "excess_objective", "gradient_mapping", "target_loss"]
