"""The formulas between ε, δ, ρ and μ (privacy.md, section 0).

Every function here takes public numbers only. The Gaussian curve is exact (Balle and Wang 2018),
pure-to-zCDP is exact (Harrison and Manurangsi 2025), and zCDP-to-approximate is the bound of Canonne,
Kamath and Steinke 2020.

>>> f"{gaussian_sigma(epsilon=1, delta=1e-5):.4f}"
'3.7306'
>>> f"{zcdp_rho(epsilon=1, delta=1e-5):.5f}"
'0.03056'
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError

SMALL_MU = 1e-3  # below, probabilities of Gaussian noise are subtracted by their integral


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

    It is 0 above ε = 700, where floats overflow: the loss is then infinite, never too small.
    """
    return 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon)) if epsilon <= 700 else 0.0


def laplace_to_zcdp(epsilon: float) -> float:
    """Exact ρ of the Laplace mechanism with sensitivity over scale ``epsilon``: ``ε + e^-ε - 1``."""
    return epsilon + math.expm1(-epsilon)


def bounded_range_to_zcdp(eta: float) -> float:
    """Smallest known ρ of a mechanism whose privacy loss has range η (exponential mechanism): ``η²/8``."""
    return eta**2 / 8


def pure_to_gaussian(epsilon: float) -> float:
    """Smallest μ for which pure ε implies μ-Gaussian differential privacy."""
    from scipy.special import ndtri

    # The trade-off curve of pure ε is two chords that meet at a = 1/(1+e^ε). The Gaussian curve through the
    # same point is convex with the same ends, so it lies below both chords.
    return float(-2 * ndtri(response(epsilon) / 2))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Exact δ(ε) of Gaussian noise at μ = sensitivity / σ, accurate in both tails."""
    return math.exp(min(0.0, _gaussian_log_delta(epsilon, mu)))


def _gaussian_log_delta(epsilon: float, mu: float) -> float:
    return float(gaussian_log_deltas(np.array([epsilon]), mu)[0])


def gaussian_log_deltas(epsilons: FloatArray, mu: float) -> FloatArray:
    """``log δ(ε)`` of Gaussian noise at μ, at many ε >= 0.

    Below μ = 1e-3 the difference of the two probabilities cancels: at ε = 1e-9 and δ = 1e-12 it was off by
    1e-5, at smaller budgets by more. There the positive integral ``∫₀^μ φ(s/2 - ε/s) ds`` is used instead
    (the derivative of δ with respect to μ is ``φ(μ/2 - ε/μ)``).
    """
    from scipy.special import erfcx, log_ndtr

    if mu < SMALL_MU:
        # log(e^(ε/2) ∫₀^μ φ(ε/s) e^(-s²/8) ds), the last factor to second order: off by at most μ⁴/128.
        # With a = ε/μ and I₀ = μ (φ(a) - a Φ(-a)) the two integrals are I₀ and
        # ∫ s² φ(ε/s) ds = (μ³ φ(a) - ε² I₀)/3.
        a = epsilons / mu
        log_phi = -(a**2) / 2 - math.log(math.sqrt(2 * math.pi))
        # The gap I₀ / (μ φ(a)) = 1 - a Φ(-a)/φ(a), by its series where the difference cancels.
        near, inverse = np.minimum(a, 60.0), 1 / np.maximum(a, 60.0) ** 2
        series = inverse * (1 - inverse * (3 - inverse * (15 - inverse * 105)))
        gap = np.where(a < 60, 1 - near * math.sqrt(math.pi / 2) * erfcx(near / math.sqrt(2)), series)
        second = mu**2 / 24 * (1 - a**2 * gap) / gap
        return np.asarray(
            epsilons / 2 + math.log(mu) + log_phi + np.log(gap) + np.log1p(mu**4 / 128 - second)
        )

    upper = log_ndtr(mu / 2 - epsilons / mu)
    lower = epsilons + log_ndtr(-mu / 2 - epsilons / mu)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(np.isneginf(upper), 0.0, np.minimum(lower - upper, 0.0))
        return np.asarray(upper + np.log(-np.expm1(gap)))


def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Largest μ = sensitivity / σ that is (ε, δ)-private."""
    _check.positive(epsilon=epsilon)
    _check.probability(delta=delta)
    target = math.log(delta)

    def holds(mu: float) -> bool:
        return _gaussian_log_delta(epsilon, mu) <= target

    low, high = 1.0, 1.0
    while not holds(low):
        low /= 2
    while holds(high):
        high *= 2
    return _bisect(holds, low, high)


def gaussian_sigma(*, epsilon: float, delta: float) -> float:
    """Smallest σ per unit L2 sensitivity that is (ε, δ)-private."""
    return 1 / gaussian_mu(epsilon=epsilon, delta=delta)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest ε at which Gaussian noise at μ is (ε, δ)-private."""
    target = math.log(_check.probability(delta=delta))
    if _gaussian_log_delta(0.0, mu) <= target:
        return 0.0
    return find_smallest(lambda epsilon: _gaussian_log_delta(epsilon, mu) <= target)


def renyi_delta(epsilon: float, order: float, divergence: float) -> float:
    """δ(ε) of a mechanism whose Rényi divergence at ``order`` is at most ``divergence``.

    Canonne, Kamath and Steinke 2020, proposition 12.
    """
    return math.exp(min(0.0, (order - 1) * (divergence - epsilon) + _order_term(order)))


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
    """The order at which Gaussian noise may have the largest μ and still imply (ε, δ)."""
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
    bounds = (middle - 12, middle + 6)
    return 1 + math.exp(
        float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x)
    )


def zcdp_delta(epsilon: float, rho: float, xi: float = 0.0) -> float:
    """δ(ε) of (ξ, ρ)-zCDP: the best order of `renyi_delta` at divergence ξ + ρ·order."""
    return float(zcdp_deltas(np.array([epsilon]), rho, xi)[0])


def zcdp_deltas(epsilons: FloatArray, rho: float, xi: float = 0.0) -> FloatArray:
    """`zcdp_delta` at many ε. Every order bounds δ, so an order that is only nearly the best is safe."""
    # ξ is added to every divergence, so it is subtracted from ε.
    excess_epsilons = np.asarray(epsilons, dtype=np.float64) - xi
    if rho == 0:  # the divergence is ξ at every order, hence the loss is never larger
        return np.where(excess_epsilons >= 0, 0.0, 1.0)
    # Bisect for the best order: the slope (2α - 1) ρ + log(1 - 1/α) - ε grows with α.
    low = np.full_like(excess_epsilons, -40.0)
    high = np.log(np.maximum(excess_epsilons, 0.0) / (2 * rho) + 2 + 1 / rho)
    for _ in range(60):
        middle = (low + high) / 2
        excess = np.exp(middle)
        falls = (1 + 2 * excess) * rho + middle - np.log1p(excess) < excess_epsilons
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    excess = np.exp(high)
    log_rest = np.log1p(excess)
    log_deltas = excess * (rho * (1 + excess) - excess_epsilons + high - log_rest) - log_rest
    return np.asarray(np.exp(np.minimum(0.0, log_deltas)))


def zcdp_epsilon(delta: float, rho: float) -> float:
    """Smallest ε for which ρ-zCDP implies (ε, δ) by `zcdp_delta`."""
    _check.probability(delta=delta)
    return find_smallest(lambda epsilon: zcdp_delta(epsilon, rho) <= delta)


def zcdp_rho(*, epsilon: float, delta: float) -> float:
    """Largest ρ for which ρ-zCDP implies (ε, δ) by `zcdp_delta`."""
    order = best_order(epsilon=epsilon, delta=delta)
    return renyi_capacity(epsilon=epsilon, delta=delta, order=order) / order


def find_smallest(holds: Callable[[float], bool]) -> float:
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
    "gaussian_log_deltas",
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
    "zcdp_deltas",
    "zcdp_epsilon",
    "zcdp_rho",
]
