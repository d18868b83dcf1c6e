"""The least value of a quadratic on a ball, exactly: eigenvalues and the secular equation.

``min w'Pw - 2b'w`` over ``|w| <= A`` is solved by ``w = (P + sI)⁻¹ b`` for the one ``s >= max(0, -λ₁)``
at which ``|w| = A`` or ``s = 0``, convex or not (Moré and Sorensen 1983). In the *hard case* b has no part in
the space of the least eigenvalue and ``|w| < A`` at ``s = -λ₁``: then any step along that space to the sphere
is optimal. Every solution carries its duality gap ``w'Pw - 2b'w + Σ gᵢ²/(λᵢ + s) + sA²``, so whoever needs
an exact supremum knows how far from it this is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray

_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a quadratic is least on a ball, its value there, and a bound on what is missing."""

    point: FloatArray
    value: float
    gap: float


def least_on_ball(P: FloatArray, b: FloatArray, radius: float) -> Minimum:
    """Minimise ``w'Pw - 2b'w`` over the ball, P symmetric and of any signs.

    >>> found = least_on_ball(np.diag([-1.0, 2.0]), np.array([0.0, 2.0]), 2.0)  # the hard case
    >>> round(found.value, 6), bool(found.gap < 1e-9)
    (-5.333333, True)
    """
    eigen, V = np.linalg.eigh((P + P.T) / 2)
    return least_of_spectrum(eigen, V, V.T @ b, radius)


def least_of_spectrum(eigen: FloatArray, V: FloatArray, g: FloatArray, radius: float) -> Minimum:
    """The same from rising eigenvalues, eigenvectors, and b in their coordinates."""
    least = max(0.0, -float(eigen[0]))
    base = eigen + least  # not negative, and exactly 0 first where the shift begins there
    more = _multiplier(base, g, radius)
    shift, spread = least + more, base + more
    floor = np.finfo(float).tiny
    w = np.where(spread > floor, g / np.maximum(spread, floor), 0.0)
    if shift > 0:
        w = _to_sphere(w, g, radius)
    length = float(np.linalg.norm(w))
    w = w * (radius / length) if length > radius else w
    value = float(eigen @ w**2 - 2 * g @ w)
    safe = np.where(spread > floor, g**2 / np.maximum(spread, floor), np.where(g == 0, 0.0, np.inf))
    bound = -float(safe.sum()) - shift * radius**2
    scale = float(np.abs(eigen).max() * radius**2 + 2 * np.linalg.norm(g) * radius)
    return Minimum(V @ w, value, max(0.0, value - bound) + 1e-15 * len(g) * scale)


def _multiplier(base: FloatArray, g: FloatArray, radius: float) -> float:
    """The t >= 0 at which ``g/(base + t)`` has length ``radius``, or 0 if it is not longer there.

    Sought as a distance from the least shift, so that it does not drown where that is large: at ``t = |g|/A``
    the step is short enough whatever the base is.
    """

    def too_long(t: float) -> bool:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.where(g == 0, 0.0, g / (base + t))
        return not float(np.linalg.norm(step)) <= radius

    if not too_long(0.0):
        return 0.0
    low, high = 0.0, float(np.linalg.norm(g)) / radius + 1e-300
    while too_long(high):
        high *= 2
    t = high
    for _ in range(_ROUNDS):
        low, high = (t, high) if too_long(t) else (low, t)
        if high - low <= 4e-16 * high:
            break
        t = _newton(base, g, radius, t)
        if not low < t < high:
            t = (low + high) / 2
            if not low < t < high:
                break
    return high


def _newton(base: FloatArray, g: FloatArray, radius: float, t: float) -> float:
    """A Newton step on ``1/|w(t)| - 1/A``, which is nearly linear in t."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = np.where(g == 0, 0.0, g / (base + t))
        size = float(np.linalg.norm(step))
        slope = float(np.sum(np.where(g == 0, 0.0, step**2 / (base + t))))
        return t + (size - radius) / radius * size**2 / slope if slope > 0 else np.inf


def _to_sphere(w: FloatArray, g: FloatArray, radius: float) -> FloatArray:
    """Fill a step that is too short along the least eigenvector (the hard case)."""
    short = radius**2 - float(w @ w)
    if short <= 0:
        return w
    filled = w.copy()
    sign = 1.0 if g[0] >= 0 else -1.0
    filled[0] = sign * np.sqrt(w[0] ** 2 + short)
    return filled


__all__ = ["Minimum", "least_of_spectrum", "least_on_ball"]
