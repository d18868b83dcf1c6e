"""PNCnvxAdap with the noise and the step size that the paper prints (Algorithm 2): for reproduction only.

**Not private as claimed**, for the same reasons as Algorithm 1 (`privada_lab.papers.reweighting`): (ε, δ)
holds up to ε = 7.9 (δ = 0.01) only, and all weights of private rows are released. It runs only with
``insecure_seed=`` and its result is stamped.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.methods.reweighting.questions import problem
from privada.methods.reweighting.questions.problem import Penalties
from privada.privacy.bounds import Ball
from privada_lab import objectives
from privada_lab.papers.reweighting import PaperModel, paper_gaussian, paper_noise


def smoothness(penalties: Penalties, *, m: int, n: int, A: float, r: float = 1.0) -> float:
    """β̄ of Lemma 3 for the logistic loss: ``β + β' + G(α²/m^1.5 + (1-α)²/n^1.5)``, by the proof's bounds.

    The loss of rows in a ball of radius r has β = r²/4 and G = r. β' is equation (20), with the losses' bound
    B = log(1 + e^{Ar}).

    >>> round(smoothness(Penalties(alpha=0.5), m=1000, n=1000, A=5.0), 5)
    0.25002
    """
    B, parts = math.log1p(math.exp(min(A * r, 700.0))), 0.0
    for share, rows, largest in ((penalties.alpha, m, 2 * B), (1 - penalties.alpha, n, B)):
        if not rows:
            continue
        bent = abs(largest - penalties.kappa1) + penalties.kappa1 + penalties.kappa_inf
        parts += penalties.kappa2 * share**3 / rows**2 + 2 * share**3 * bent / rows**2.5
        parts += penalties.kappa_inf * penalties.sharpness * share**4 * (rows**-3.0 + rows**-3.5)
        parts += r * share**2 / rows**1.5
    if m and n:
        mixed = 2 * penalties.kappa_inf * penalties.sharpness * penalties.alpha**2
        parts += mixed * (1 - penalties.alpha) ** 2 / (m * n) ** 1.5
    return r**2 / 4 + parts


def paper_pncnvxadap(
    Xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    Xt: npt.ArrayLike,
    yt: npt.ArrayLike,
    *,
    epsilon: float,
    delta: float,
    penalties: Penalties,
    A: float,
    r: float = 1.0,
    steps: int = 100,
    insecure_seed: int | None = None,
) -> PaperModel:
    """Algorithm 2 as printed, for logistic loss and labels 0 and 1.

    One step size 1/β̄ for w and all u, and the iterate of a uniform step is returned.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> x = np.eye(3)
    >>> paper_pncnvxadap(x, [1, 0, 0], x, [1, 0, 0], epsilon=1, delta=0.01, insecure_seed=0, steps=5,
    ...                  penalties=Penalties(alpha=0.5), A=2.0)
    <PaperModel of 3 features [not private as claimed; rehearsal: not private]>
    """
    noise = paper_noise(insecure_seed, "paper_pncnvxadap")
    S, a, T, b = objectives.check_rows(Xs, ys, Xt, yt)
    ball, m, n = Ball(radius=r), len(S), len(T)
    X, signs = np.vstack([ball.clip(S), ball.clip(T)]), 2 * np.r_[a, b] - 1
    left, largest = (1 - penalties.alpha) / n, math.log1p(math.exp(min(A * r, 700.0)))
    rate = 2 * math.sqrt(_check.count(steps=steps) * math.log(2 / _check.probability(delta=delta)))
    rate /= _check.positive(epsilon=epsilon)
    sigma_w, sigma_u = rate * 2 * left * r, rate * left**2 * largest
    step = 1 / smoothness(penalties, m=m, n=n, A=A, r=r)
    p = penalties.reference(m, n)
    low, live = problem.lowest(p), p > 0
    extra = np.r_[np.full(m, penalties.discrepancy), np.zeros(n)]
    w, u, seen = np.zeros(X.shape[1]), low.copy(), []
    last = min(steps - 1, int(float(noise.uniform((1,))[0]) * steps))
    for _ in range(last + 1):  # what comes after the released iterate is not seen
        scores, q = signs * (X @ w), np.where(live, 1 / u, 0.0)
        push = -signs * 0.5 * (1 - np.tanh(scores / 2))
        private = X[m:].T @ (q * push)[m:] + paper_gaussian(noise, sigma_w, w.shape)
        seen.append(private)
        slope = np.zeros(m + n)
        losses = np.logaddexp(0.0, -scores) + extra
        slope[live] = objectives.gradient_j(losses[live], u[live], p[live], penalties)
        slope[m:] += paper_gaussian(noise, sigma_u, (n,))
        w = w - step * (X[:m].T @ (q * push)[:m] + private)
        w = w * min(1.0, A / max(float(np.linalg.norm(w)), 1e-300))
        u = np.maximum(low, u - step * slope)
    return PaperModel(coef=w, u=u, gradients=np.array(seen), discrepancy=penalties.discrepancy)


__all__ = ["paper_pncnvxadap", "smoothness"]
