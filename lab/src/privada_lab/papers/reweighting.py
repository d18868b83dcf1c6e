"""PCnvxAdap and the discrepancy with the noise that the paper prints: for reproduction and audit only.

Both are **not private as claimed** (privacy.md, section 4 (b)):

* `paper_pcnvxadap`: ``σ = 2 s √(T log(2/δ))/ε`` for both gradients amounts to ``μ = ε/√(2 log(2/δ))`` for
  every T; (ε, δ) holds only up to ε = 7.9 (δ = 0.01) or 9.4 (1e-5). At (15, 0.01) the true δ is 0.126.
* `paper_discrepancy`: Lap(B/n) on a value of sensitivity B/n is 1-private, whatever ε is.

They run only with ``insecure_seed=``, draw continuous noise in idealised arithmetic, and their results are
stamped. Nothing here can be charged to a ledger.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.reweighting.questions import problem
from privada.methods.reweighting.questions.problem import Bounds, Penalties
from privada.methods.reweighting.questions.supremum import labelled
from privada.privacy.bounds import Ball
from privada.privacy.noise import Noise, Rehearsal
from privada_lab import objectives


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperModel:
    """What the printed algorithm returns.

    Attributes
    ----------
    coef, u : arrays
        Averages of w and of all u, public rows first.
    gradients : array of shape (T, d)
        The noisy gradients of w's private part, which an auditor looks at.
    discrepancy : float
    """

    coef: FloatArray
    u: FloatArray
    gradients: FloatArray
    discrepancy: float
    stamps: ClassVar[tuple[str, ...]] = ("not private as claimed", "rehearsal: not private")

    def __repr__(self) -> str:
        return f"<PaperModel of {len(self.coef)} features [{'; '.join(self.stamps)}]>"


def printed_mu(epsilon: float, delta: float) -> float:
    """μ that the printed noise amounts to, whatever T is.

    >>> from privada.privacy.accounting.curves import gaussian_delta
    >>> round(gaussian_delta(15, printed_mu(15, 0.01)), 4)
    0.1264
    """
    return _check.positive(epsilon=epsilon) / math.sqrt(2 * math.log(2 / _check.probability(delta=delta)))


def printed_scales(
    *, epsilon: float, delta: float, steps: int, size: int, alpha: float, bounds: Bounds
) -> tuple[float, float]:
    """Lines 2 and 3: ``σ = 2 s √(T log(2/δ))/ε`` for w, of ``s = 2G(1-α)/n``, and for u, of ``B((1-α)/n)²``.

    >>> first, second = printed_scales(epsilon=1, delta=0.01, steps=9, size=2, alpha=0.5, bounds=Bounds(A=1))
    >>> round(math.sqrt(9 * ((2 / first) ** 2 + (0.25 / second) ** 2)), 9) == round(printed_mu(1, 0.01), 9)
    True
    """
    rate = 2 * math.sqrt(_check.count(steps=steps) * math.log(2 / _check.probability(delta=delta)))
    rate, left = rate / _check.positive(epsilon=epsilon), (1 - alpha) / size
    return rate * 2 * left * bounds.G, rate * left**2 * bounds.B


def paper_discrepancy(
    Xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    Xt: npt.ArrayLike,
    yt: npt.ArrayLike,
    *,
    bounds: Bounds,
    insecure_seed: int | None = None,
) -> float:
    """The discrepancy plus Lap(B/n), projected to [0, B]: printed for every epsilon alike."""
    noise = paper_noise(insecure_seed, "paper_discrepancy")
    S, a, T, b = _clipped(Xs, ys, Xt, yt, bounds)
    exact = labelled(S, a, T, b, radius=bounds.A).value
    centred = float(noise.uniform((1,))[0]) - 0.5
    drawn = -bounds.B / len(T) * math.copysign(math.log1p(-2 * abs(centred)), centred)
    return float(np.clip(exact + drawn, 0, bounds.B))


def paper_pcnvxadap(
    Xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    Xt: npt.ArrayLike,
    yt: npt.ArrayLike,
    *,
    epsilon: float,
    delta: float,
    penalties: Penalties,
    bounds: Bounds,
    steps: int = 100,
    insecure_seed: int | None = None,
) -> PaperModel:
    """Algorithm 1 as printed, lines 1 to 13.

    With α = 1 (Figure 3) no private row counts and nothing is noised: of the target only the discrepancy is
    used.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> x = np.eye(3)
    >>> paper_pcnvxadap(x, [1, 0, 0], x, [1, 0, 0], epsilon=1, delta=0.01, insecure_seed=0, steps=5,
    ...                 penalties=Penalties(alpha=0.5), bounds=Bounds(A=1.0))
    <PaperModel of 3 features [not private as claimed; rehearsal: not private]>
    """
    noise = paper_noise(insecure_seed, "paper_pcnvxadap")
    S, a, T, b = _clipped(Xs, ys, Xt, yt, bounds)
    m, n, p = len(S), len(T), penalties.reference(len(S), len(T))
    sigma = printed_scales(
        epsilon=epsilon, delta=delta, steps=steps, size=n, alpha=penalties.alpha, bounds=bounds
    )
    size = _sizes(penalties, bounds, m, n, S.shape[1], steps, sigma)
    low = problem.lowest(p)
    w, u = np.zeros(S.shape[1]), low.copy()
    extra = np.r_[np.full(m, penalties.discrepancy), np.zeros(n)]
    X, y = np.vstack([S, T]), np.r_[a, b]
    mean_w, mean_u, seen = np.zeros_like(w), np.zeros_like(u), []
    for _ in range(steps):
        mean_w, mean_u = mean_w + w / steps, mean_u + u / steps
        residual = X @ w - y
        private = 2 * T.T @ (residual[m:] / u[m:]) + paper_gaussian(noise, sigma[0], w.shape)
        seen.append(private)
        slope_u = objectives.gradient_f(residual**2 + extra, u, p, penalties)
        slope_u[m:] += paper_gaussian(noise, sigma[1], (n,))
        slope = 2 * S.T @ (residual[:m] / u[:m]) + private
        w = w - size[0] * slope
        w = w * min(1.0, bounds.A / max(float(np.linalg.norm(w)), 1e-300))
        u = np.maximum(low, u - np.r_[np.full(m, size[1]), np.full(n, size[2])] * slope_u)
    return PaperModel(coef=mean_w, u=mean_u, gradients=np.array(seen), discrepancy=penalties.discrepancy)


def _sizes(
    penalties: Penalties, bounds: Bounds, m: int, n: int, d: int, T: int, sigma: tuple[float, float]
) -> tuple[float, float, float]:
    """Line 4; private u do not move where α = 1."""
    more = bounds.B + penalties.kappa1 + penalties.kappa2 + penalties.kappa_inf
    left = (1 - penalties.alpha) / n
    w = bounds.A / math.sqrt(T * (bounds.G**2 + d * sigma[0] ** 2))
    public = m**1.5 / (math.sqrt(T) * penalties.alpha**2 * (bounds.B + more))
    spread = (left**2 * more) ** 2 + sigma[1] ** 2
    return w, public, 1 / math.sqrt(T * n * spread) if spread else 0.0


def _clipped(
    Xs: npt.ArrayLike, ys: npt.ArrayLike, Xt: npt.ArrayLike, yt: npt.ArrayLike, bounds: Bounds
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    S, a, T, b = objectives.check_rows(Xs, ys, Xt, yt)
    ball = Ball(radius=bounds.r)
    return ball.clip(S), np.clip(a, -1, 1), ball.clip(T), np.clip(b, -1, 1)


def paper_noise(insecure_seed: int | None, name: str) -> Noise:
    """Seeded noise, or an `InputError`: printed mechanisms run with nothing else."""
    if insecure_seed is None:
        raise InputError(
            f"{name} is not private as claimed: it runs only with insecure_seed=, on data to be shown."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)  # every result says it
        return Rehearsal(insecure_seed)


def paper_gaussian(noise: Noise, sigma: float, shape: tuple[int, ...]) -> FloatArray:
    """Continuous Gaussian noise by its quantiles: idealised arithmetic."""
    from scipy.special import ndtri

    return np.asarray(sigma * ndtri(noise.uniform(shape)))


__all__ = [
    "PaperModel",
    "paper_discrepancy",
    "paper_gaussian",
    "paper_noise",
    "paper_pcnvxadap",
    "printed_mu",
    "printed_scales",
]
