"""CnvxAdap and NCnvxAdap: the paper's two problems solved without noise, by whoever may see all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.reweighting.questions import problem
from privada.methods.reweighting.questions.problem import Penalties
from privada.methods.reweighting.questions.supremum import labelled, least_on_ball
from privada_lab import objectives

_INNER = 60


@dataclass(frozen=True, eq=False)
class Adapted:
    """A predictor and the weights of all rows: not private.

    Attributes
    ----------
    coef : array of shape (d,)
    u : array of shape (m + n,)
        Inverse weights, public rows first.
    objective : float
    gap : float
        What the last round gained, relative to the objective (convex), or the norm of the gradient
        mapping (non-convex).
    """

    coef: FloatArray
    u: FloatArray
    objective: float
    gap: float


def cnvx_adap(
    Xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    Xt: npt.ArrayLike,
    yt: npt.ArrayLike,
    *,
    radius: float,
    penalties: Penalties | None = None,
    alpha: float = 0.5,
    public: npt.ArrayLike | None = None,
    tolerance: float = 1e-10,
    rounds: int = 2000,
) -> Adapted:
    """Minimise F over ``|w| <= radius`` and u, jointly convex, by exact alternating minimisation.

    Without ``penalties`` the discrepancy is computed from the rows and κ₁ is 1. F is convex, its coupling
    smooth and its constraints separate, so alternating exact steps end at the minimum. ``public`` are
    reference weights of the public rows other than the paper's uniform ones; they are scaled to sum α.
    """
    S, a, T, b = objectives.check_rows(Xs, ys, Xt, yt)
    _check.positive(radius=radius)
    if penalties is None:
        penalties = Penalties(alpha=alpha, discrepancy=labelled(S, a, T, b, radius=radius).value)
    X, y, m = np.vstack([S, T]), np.r_[a, b], len(S)
    p = _reference(penalties, m, len(T), public)
    extra = np.r_[np.full(m, penalties.discrepancy), np.zeros(len(T))]
    X, y, extra, live = X[p > 0], y[p > 0], extra[p > 0], p > 0
    p, u, before = p[live], 1 / p[live], np.inf
    for _ in range(rounds):
        w = _weighted_least_squares(X, y, 1 / u, radius)
        losses = (X @ w - y) ** 2 + extra
        u = _best_weights(losses, p, penalties)
        value = objectives.objective_f(losses, u, p, penalties)
        if before - value <= tolerance * max(abs(value), 1e-12):
            break
        before = value
    return Adapted(w, _spread(u, live), value, float(max(0.0, before - value) / max(abs(value), 1e-12)))


def _reference(penalties: Penalties, m: int, n: int, public: npt.ArrayLike | None) -> FloatArray:
    """Reference weights of all rows; those of public rows may be given."""
    p = penalties.reference(m, n)
    if public is None:
        return p
    given = np.asarray(public, dtype=np.float64)
    if given.shape != (m,) or not np.isfinite(given).all() or given.min() < 0 or not given.any():
        raise InputError("Expected public to be one weight, 0 or more, for each public row.")
    return np.asarray(np.r_[given * (p[:m].sum() / given.sum()), p[m:]])


def _spread(u: FloatArray, live: npt.NDArray[np.bool_]) -> FloatArray:
    """Inverse weights of all rows; rows that do not count have an infinite one."""
    whole = np.full(len(live), np.inf)
    whole[live] = u
    return whole


def _weighted_least_squares(X: FloatArray, y: FloatArray, q: FloatArray, radius: float) -> FloatArray:
    weighted = X * q[:, None]
    return least_on_ball(weighted.T @ X, weighted.T @ y, radius).point


def _best_weights(losses: FloatArray, p: FloatArray, penalties: Penalties) -> FloatArray:
    """The u that minimises F for given losses: closed form, or two nested one-dimensional problems."""
    if not penalties.kappa2 and not penalties.kappa_inf:
        return objectives.best_u(losses, p, penalties.kappa1)

    def capped(cap: float) -> FloatArray:
        return _with_norm(losses, p, penalties, np.minimum(p, cap))

    if not penalties.kappa_inf:
        return 1 / capped(float(p.max()))
    from scipy.optimize import minimize_scalar

    def cost(cap: float) -> float:
        return objectives.objective_f(losses, 1 / capped(cap), p, penalties)

    top = float(p.max())
    found = minimize_scalar(cost, bounds=(top * 1e-6, top), method="bounded", options={"xatol": top * 1e-10})
    return 1 / capped(min((float(found.x), top), key=cost))


def _with_norm(losses: FloatArray, p: FloatArray, penalties: Penalties, most: FloatArray) -> FloatArray:
    """Weights q <= most that minimise ``q·l + κ₁Σp²/q + κ₂|q|``, by ``|q| = min_s (|q|²/s + s)/2``."""
    q = np.minimum(most, 1 / objectives.best_u(losses, p, penalties.kappa1))
    for _ in range(_INNER):
        curvature = penalties.kappa2 / max(float(np.linalg.norm(q)), 1e-300)
        new = np.minimum(most, _cubic(losses, penalties.kappa1 * p**2, curvature, q))
        if np.allclose(new, q, rtol=1e-13, atol=0):
            return new
        q = new
    return q


def _cubic(losses: FloatArray, k: FloatArray, curvature: float, start: FloatArray) -> FloatArray:
    """The root of ``l + c q - k/q² = 0``, by Newton's method on the increasing function of q."""
    low, high = np.zeros_like(start), np.sqrt(k / np.maximum(losses, 1e-300))
    high = np.minimum(high, np.cbrt(k / max(curvature, 1e-300)))
    for _ in range(100):
        middle = (low + high) / 2
        positive = losses * middle**2 + curvature * middle**3 - k > 0
        low, high = np.where(positive, low, middle), np.where(positive, middle, high)
    return np.asarray((low + high) / 2)


def ncnvx_adap(
    loss: Callable[[FloatArray], tuple[FloatArray, Callable[[FloatArray], FloatArray]]],
    *,
    m: int,
    n: int,
    start: FloatArray,
    radius: float,
    penalties: Penalties,
    step: float = 0.5,
    steps: int = 500,
    record: list[float] | None = None,
) -> Adapted:
    """Projected gradient on J, whose loss need not be convex.

    Parameters
    ----------
    loss : callable
        ``w -> (losses of all m + n rows, pull)`` where ``pull(q)`` is ``Σ qᵢ ∇lᵢ``.
    record : list, optional
        Filled with the norm of the gradient mapping in w at each step (Theorem 4's measure).
    """
    p = penalties.reference(m, n)
    live, extra = p > 0, np.r_[np.full(m, penalties.discrepancy), np.zeros(n)]
    w, low = np.array(start, dtype=np.float64), problem.lowest(p)
    u, scale = low.copy(), np.where(live, low, 0.0) ** 3
    for _ in range(steps):
        losses, pull = loss(w)
        q = np.where(live, 1 / u, 0.0)
        new = _into_ball(w - step * pull(q), radius)
        if record is not None:
            record.append(float(np.linalg.norm(w - new)) / step)
        slope = objectives.gradient_j((losses + extra)[live], u[live], p[live], penalties)
        u = u.copy()
        u[live] = np.maximum(low[live], u[live] - step * scale[live] * slope)
        moved, w = float(np.linalg.norm(w - new)) / step, new
    value = objectives.objective_j((loss(w)[0] + extra)[live], u[live], p[live], penalties)
    return Adapted(w, u, value, moved)


def _into_ball(w: FloatArray, radius: float) -> FloatArray:
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


__all__ = ["Adapted", "cnvx_adap", "ncnvx_adap"]
