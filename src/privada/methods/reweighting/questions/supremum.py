"""The discrepancy of two samples, exact for squared loss and linear predictors.

``d = sup |L_T(h) - L_S(h)|`` over a set of hypotheses. For ``h(x) = w·x``, ``|w - w₀| <= A``, the
difference of the two empirical squared losses is a quadratic in w, of any signs; its largest absolute value
on a ball is two trust-region problems. The paper's DCA reaches the same value iteratively, and a stationary
point of it is not enough: the sensitivity B/n holds for the exact supremum only (privacy.md, section 4 (b)).

**A quadratic on a ball.** ``min w'Pw - 2b'w`` over ``|w| <= A`` is solved by ``w = (P + sI)⁻¹ b`` for the one
``s >= max(0, -λ₁)`` at which ``|w| = A`` or ``s = 0``, convex or not (Moré and Sorensen 1983). In the *hard
case* b has no part in the space of the least eigenvalue and ``|w| < A`` at ``s = -λ₁``: then any step along
that space to the sphere is optimal. Every solution carries its duality gap ``w'Pw - 2b'w + Σ gᵢ²/(λᵢ + s) +
sA²``, so whoever needs an exact supremum knows how far from it this is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Supremum:
    """A supremum, the hypothesis that (nearly) attains it, and how much may be missing."""

    value: float
    hypothesis: FloatArray
    tolerance: float


def moments(X: FloatArray, y: FloatArray) -> FloatArray:
    """Second moments of (x, y): all that a squared loss of a linear predictor depends on."""
    joint = np.column_stack([X, y])
    return np.asarray(joint.T @ joint / max(len(joint), 1))


def of_moments(difference: FloatArray, radius: float) -> Supremum:
    """The largest ``|w'Pw - 2b'w + c|`` on the ball, from a difference of second moments."""
    P, b, c = difference[:-1, :-1], difference[:-1, -1], float(difference[-1, -1])
    eigen, V = np.linalg.eigh((P + P.T) / 2)
    g = V.T @ b
    low = least_of_spectrum(eigen, V, g, radius)
    high = least_of_spectrum(-eigen[::-1], V[:, ::-1], -g[::-1], radius)
    ends = ((-(low.value + c), low), (-high.value + c, high))
    value, end = max(ends, key=lambda pair: pair[0])
    return Supremum(max(0.0, value), end.point, max(low.gap, high.gap))


def labelled(
    Xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    Xt: npt.ArrayLike,
    yt: npt.ArrayLike,
    *,
    radius: float,
    center: npt.ArrayLike | None = None,
) -> Supremum:
    """Equation (2) over ``|w - center| <= radius``; with a centre, the *local* discrepancy.

    Around the private empirical minimiser it is the paper's local discrepancy, for those who may see the
    private rows; a centre that depends on them has no B/n sensitivity, so the question takes public ones
    only.

    >>> x, zero = np.array([[1.0], [-1.0]]), np.zeros(2)
    >>> round(labelled(x, zero, 2 * x, zero, radius=1.0).value, 6)      # sup |4w² - w²|
    3.0
    """
    S, T = _check.matrix(Xs=Xs), _check.matrix(Xt=Xt)
    _check.positive(radius=radius)
    if S.shape[1] != T.shape[1]:
        raise InputError(f"Expected samples of one width, got {S.shape[1]} and {T.shape[1]}.")
    w = np.zeros(S.shape[1]) if center is None else np.asarray(center, dtype=np.float64)
    a, b = np.asarray(ys, dtype=np.float64) - S @ w, np.asarray(yt, dtype=np.float64) - T @ w
    supremum = of_moments(moments(T, b) - moments(S, a), radius)
    return Supremum(supremum.value, supremum.hypothesis + w, supremum.tolerance)


def of_second_moments(difference: FloatArray, radius: float) -> Supremum:
    """``sup |E_T((w-w')·x)² - E_S((w-w')·x)²|`` over two hypotheses of norm at most ``radius``.

    It is four times the squared radius times the largest absolute eigenvalue.
    """
    eigen, V = np.linalg.eigh((difference + difference.T) / 2)
    at = int(np.abs(eigen).argmax())
    value = 4 * radius**2 * float(abs(eigen[at]))
    return Supremum(value, 2 * radius * V[:, at], 1e-13 * len(eigen) * max(value, 1e-300))


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
    short = radius**2 - float(w @ w)
    if shift > 0 and short > 0:  # the hard case: fill the step along the least eigenvector
        w[0] = (1.0 if g[0] >= 0 else -1.0) * np.sqrt(w[0] ** 2 + short)
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
        # a Newton step on 1/|w(t)| - 1/A, which is nearly linear in t
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.where(g == 0, 0.0, g / (base + t))
            size = float(np.linalg.norm(step))
            slope = float(np.sum(np.where(g == 0, 0.0, step**2 / (base + t))))
            t = t + (size - radius) / radius * size**2 / slope if slope > 0 else np.inf
        if not low < t < high:
            t = (low + high) / 2
            if not low < t < high:
                break
    return high


__all__ = [
    "Minimum",
    "Supremum",
    "labelled",
    "least_of_spectrum",
    "least_on_ball",
    "moments",
    "of_moments",
    "of_second_moments",
]
