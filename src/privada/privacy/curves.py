"""The formulas between ε, δ, ρ and μ (PRIVACY, section 0).

Everything here is a function of public numbers. The Gaussian curve is exact
(Balle and Wang 2018), pure-to-zCDP is exact (Harrison and Manurangsi 2025),
zCDP-to-approximate is the bound of Canonne, Kamath and Steinke 2020.

>>> f"{gaussian_sigma(epsilon=1, delta=1e-5):.4f}"
'3.7306'
>>> f"{zcdp_rho(epsilon=1, delta=1e-5):.5f}"
'0.03056'
"""

from __future__ import annotations

import math
from collections.abc import Callable

from privada import _check
from privada.exceptions import InputError


def pure_delta(epsilon: float, pure: float) -> float:
    """Exact δ(ε) of the worst mechanism that is ``pure``-differentially private."""
    if epsilon >= pure:
        return 0.0
    return -math.expm1(epsilon - pure) / (1 + math.exp(-pure))


def pure_to_zcdp(epsilon: float) -> float:
    """Smallest ρ that pure ε implies: ``ε tanh(ε/2)``."""
    return epsilon * math.tanh(epsilon / 2)


def response(epsilon: float) -> float:
    """``2 / (1 + e^ε)``: how often binary randomised response at ε answers by a fair coin.

    Beyond ε = 700, where floats end, it is 0: a loss without bound, never too small a one.
    """
    return 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon)) if epsilon <= 700 else 0.0


def laplace_to_zcdp(epsilon: float) -> float:
    """Exact ρ of the Laplace mechanism with sensitivity over scale ``epsilon``: ``ε + e^-ε - 1``."""
    return epsilon + math.expm1(-epsilon)


def bounded_range_to_zcdp(eta: float) -> float:
    """Smallest known ρ of a mechanism whose privacy loss has range η (exponential mechanism): ``η²/8``."""
    return eta**2 / 8


def pure_to_gaussian(epsilon: float) -> float:
    """Smallest μ for which pure ε implies μ-Gaussian differential privacy.

    The trade-off curve of pure ε is two chords that meet at
    ``a = 1/(1+e^ε)``; the Gaussian curve that passes through the same point is
    convex with the same ends, so it lies below both chords.
    """
    from scipy.special import ndtri

    return float(-2 * ndtri(response(epsilon) / 2))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Exact δ(ε) of Gaussian noise at μ = sensitivity / σ, accurate in both tails."""
    return math.exp(min(0.0, _gaussian_log_delta(epsilon, mu)))


def _gaussian_log_delta(epsilon: float, mu: float) -> float:
    from scipy.special import log_ndtr

    upper = float(log_ndtr(mu / 2 - epsilon / mu))
    lower = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return upper + math.log(-math.expm1(lower - upper)) if lower < upper else -math.inf


def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Largest μ = sensitivity / σ that is (ε, δ)-private."""
    _check.positive(epsilon=epsilon)
    _check.probability(delta=delta)
    target = math.log(delta)
    return _largest(lambda mu: _gaussian_log_delta(epsilon, mu) <= target)


def gaussian_sigma(*, epsilon: float, delta: float) -> float:
    """Smallest σ per unit L2 sensitivity that is (ε, δ)-private."""
    return 1 / gaussian_mu(epsilon=epsilon, delta=delta)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest ε at which Gaussian noise at μ is (ε, δ)-private."""
    target = math.log(_check.probability(delta=delta))
    if _gaussian_log_delta(0.0, mu) <= target:
        return 0.0
    return _smallest(lambda epsilon: _gaussian_log_delta(epsilon, mu) <= target)


def renyi_delta(epsilon: float, order: float, divergence: float) -> float:
    """δ(ε) of a mechanism whose Rényi divergence at ``order`` is at most ``divergence``.

    Canonne, Kamath and Steinke 2020, proposition 12.
    """
    log_delta = (order - 1) * (divergence - epsilon) + _order_term(order)
    return math.exp(min(0.0, log_delta))


def renyi_epsilon(delta: float, order: float, divergence: float) -> float:
    """Smallest ε that `renyi_delta` gives at ``delta``; no divergence means ε = 0."""
    if divergence <= 0:
        return 0.0
    return max(0.0, divergence + (_order_term(order) - math.log(delta)) / (order - 1))


def renyi_capacity(*, epsilon: float, delta: float, order: float) -> float:
    """Largest Rényi divergence at ``order`` that implies (ε, δ)."""
    return epsilon + (math.log(delta) - _order_term(order)) / (order - 1)


def _order_term(order: float) -> float:
    return (order - 1) * math.log1p(-1 / order) - math.log(order)


def best_order(*, epsilon: float, delta: float) -> float:
    """The order at which a Gaussian may be largest and still imply (ε, δ)."""
    from scipy.optimize import minimize_scalar

    _check.positive(epsilon=epsilon)
    _check.probability(delta=delta)

    def loss(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return -renyi_capacity(epsilon=epsilon, delta=delta, order=order) / order

    ratio = 2 * math.log(1 / delta) / epsilon
    if not ratio < 1e300:
        raise InputError(f"Expected an epsilon of moderate size beside delta = {delta:g}, got {epsilon:g}.")
    middle = math.log(max(1e-3, ratio))
    found = minimize_scalar(
        loss, bounds=(middle - 12, middle + 6), method="bounded", options={"xatol": 1e-10}
    )
    return 1 + math.exp(float(found.x))


def zcdp_delta(epsilon: float, rho: float) -> float:
    """δ(ε) of ρ-zCDP: the best order of `renyi_delta` at divergence ρ·order."""
    from scipy.optimize import minimize_scalar

    def log_delta(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return (order - 1) * (rho * order - epsilon) + _order_term(order)

    middle = math.log(max(1e-6, (epsilon - rho) / (2 * rho), 1 / (1 + rho)))
    found = minimize_scalar(
        log_delta, bounds=(middle - 12, middle + 6), method="bounded", options={"xatol": 1e-10}
    )
    return math.exp(min(0.0, float(found.fun)))


def zcdp_epsilon(delta: float, rho: float) -> float:
    """Smallest ε for which ρ-zCDP implies (ε, δ) by `zcdp_delta`."""
    _check.probability(delta=delta)
    return _smallest(lambda epsilon: zcdp_delta(epsilon, rho) <= delta)


def zcdp_rho(*, epsilon: float, delta: float) -> float:
    """Largest ρ for which ρ-zCDP implies (ε, δ) by `zcdp_delta`."""
    order = best_order(epsilon=epsilon, delta=delta)
    return renyi_capacity(epsilon=epsilon, delta=delta, order=order) / order


def _largest(holds: Callable[[float], bool]) -> float:
    """Largest x > 0 for which ``holds``, given that it holds below and fails above; rounded down."""
    low, high = 1.0, 1.0
    while not holds(low):
        low /= 2
    while holds(high):
        high *= 2
    return _bisect(holds, low, high)


def _smallest(holds: Callable[[float], bool]) -> float:
    """Smallest x > 0 for which ``holds``, given that it fails below and holds above; rounded up."""
    low, high = 1.0, 1.0
    while not holds(high):
        high *= 2
    while holds(low) and low > 1e-12:
        low /= 2
    return _bisect(holds, high, low)


def _bisect(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Close in on the edge from ``inside``; the value returned always holds."""
    for _ in range(200):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


__all__ = [
    "best_order",
    "bounded_range_to_zcdp",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_sigma",
    "laplace_to_zcdp",
    "pure_delta",
    "pure_to_gaussian",
    "pure_to_zcdp",
    "renyi_capacity",
    "renyi_delta",
    "renyi_epsilon",
    "response",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]
