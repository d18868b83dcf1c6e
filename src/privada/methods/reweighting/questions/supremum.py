"""The discrepancy of two samples, exact for squared loss and linear predictors.

``d = sup |L_T(h) - L_S(h)|`` over a set of hypotheses. For ``h(x) = w·x``, ``|w - w₀| <= A``, the
difference of the two empirical squared losses is a quadratic in w, of any signs; its largest absolute value
on a ball is two trust-region problems. The paper's DCA reaches the same value iteratively, and a stationary
point of it is not enough: the sensitivity B/n holds for the exact supremum only (privacy.md, section 4 (b)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.reweighting.questions.trust_region import least_of_spectrum


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
    value, found = max(ends, key=lambda end: end[0])
    return Supremum(max(0.0, value), found.point, max(low.gap, high.gap))


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
    found = of_moments(moments(T, b) - moments(S, a), radius)
    return Supremum(found.value, found.hypothesis + w, found.tolerance)


def unlabelled(Xs: npt.ArrayLike, Xt: npt.ArrayLike, *, radius: float) -> Supremum:
    """``sup |E_T((w-w')·x)² - E_S((w-w')·x)²|`` over two hypotheses of norm at most ``radius``."""
    S, T = _check.matrix(Xs=Xs), _check.matrix(Xt=Xt)
    return of_second_moments(T.T @ T / len(T) - S.T @ S / len(S), _check.positive(radius=radius))


def of_second_moments(difference: FloatArray, radius: float) -> Supremum:
    """Four times the squared radius times the largest absolute eigenvalue."""
    eigen, V = np.linalg.eigh((difference + difference.T) / 2)
    at = int(np.abs(eigen).argmax())
    value = 4 * radius**2 * float(abs(eigen[at]))
    return Supremum(value, 2 * radius * V[:, at], 1e-13 * len(eigen) * max(value, 1e-300))


__all__ = ["Supremum", "labelled", "moments", "of_moments", "of_second_moments", "unlabelled"]
