"""Split a guarantee into parts that together cost no more than the whole.

What adds up depends on the guarantee and on the noise that will be drawn:

==================  ====================================  ==========================================
whole               parts, whatever is drawn              parts, if all noise is Gaussian
==================  ====================================  ==========================================
ε (pure)            ε adds up                             (none: Gaussian noise is never pure)
ρ (zCDP)            ρ adds up                             the same
(ε, δ)              ρ of the largest zCDP that implies    ρ = μ²/2, since μ² adds up; μ is the largest
                    it, since ρ adds up                   that Gaussian noise may have at (ε, δ)
==================  ====================================  ==========================================

Parts are exact: as real numbers, they never add up to more than the whole, because the rest is computed
from the parts in exact fractions and rounded down. Proof of the second row's first entry: zCDP composes
adaptively by adding ρ, and ρ-zCDP implies (ε, δ) at the sum. Of the last entry: Gaussian mechanisms compose
adaptively to one at the root of the summed μ² (the filter ``"gaussian"``).

>>> from privada.privacy import PureDP
>>> small, rest = split_budget(PureDP(epsilon=1, relation="add/remove"), 0.25)
>>> small.epsilon, rest.epsilon
(0.25, 0.75)
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from privada import _check
from privada.exceptions import InputError
from privada.privacy.accounting import curves
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP

MARGIN = 1 - 1e-9  # of ρ that stands for (ε, δ): more than a ledger's grains and sums of floats are off by


def split_budget(whole: Guarantee, *shares: float, gaussian: bool = False) -> tuple[Guarantee, ...]:
    """One part for each share, and what is left of the whole as the last part.

    Parameters
    ----------
    whole : Guarantee
    *shares : float
        Between 0 and 1; together less than 1.
    gaussian : bool, default=False
        Whether every part is spent on Gaussian noise alone, of which an (ε, δ) guarantee buys more.

    Returns
    -------
    tuple of Guarantee
        `PureDP` parts of a pure guarantee, otherwise `ZCDP`, under the same relation and unit.
    """
    if isinstance(whole, PureDP):
        return tuple(replace(whole, epsilon=part) for part in split_number(whole.epsilon, *shares))
    most = zcdp_within(whole, gaussian=gaussian)
    return tuple(replace(most, rho=part) for part in split_number(most.rho, *shares))


def zcdp_within(whole: Guarantee, *, gaussian: bool = False) -> ZCDP:
    """The largest zCDP that keeps a guarantee, whatever is drawn or for Gaussian noise alone."""
    if isinstance(whole, ZCDP):
        return whole
    if not isinstance(whole, ApproxDP):
        raise InputError(f"No zCDP keeps {whole}: it is pure.")
    rho = whole.gaussian_mu() ** 2 / 2 if gaussian else _rho_within(whole.epsilon, whole.delta)
    return ZCDP(rho=rho, relation=whole.relation, unit=whole.unit)


def _rho_within(epsilon: float, delta: float) -> float:
    """The largest ρ that implies (ε, δ), lowered as far as the two curves differ in their last digits."""
    rho, step = curves.zcdp_rho(epsilon=epsilon, delta=delta) * MARGIN, 1e-9
    while curves.zcdp_delta(epsilon, rho) > delta:
        rho *= 1 - step
        step *= 2
    return rho


def split_alike(whole: Guarantee, *shares: float) -> tuple[Guarantee, ...]:
    """Parts of the whole's own kind; those of (ε, δ) have its δ and are for Gaussian noise alone.

    >>> whole = ApproxDP(epsilon=1, delta=1e-6, relation="add/remove")
    >>> print(*split_alike(whole, 0.25), sep="; ")
    (ε = 0.475232, δ = 1e-06), add/remove one row; (ε = 0.856527, δ = 1e-06), add/remove one row
    """
    if not isinstance(whole, ApproxDP):
        return split_budget(whole, *shares)
    return tuple(replace(whole, epsilon=each) for each in _epsilons(whole, *shares))


def _epsilons(whole: ApproxDP, *shares: float) -> list[float]:
    """By μ²; the last ε is lowered until what its question would draw, with the others, is no more."""
    delta = whole.delta
    squares = split_number(whole.gaussian_mu() ** 2, *shares)
    found = [curves.gaussian_epsilon(delta, math.sqrt(square)) for square in squares]
    if not min(found) > 0:
        raise InputError(f"A share of {whole} is too small to be stated as (epsilon, delta).")
    spent = math.fsum(curves.gaussian_mu(epsilon=each, delta=delta) ** 2 for each in found[:-1])
    room, step = whole.gaussian_mu() ** 2 - spent, 1e-15
    while curves.gaussian_mu(epsilon=found[-1], delta=delta) ** 2 > room:
        found[-1] *= 1 - step
        step *= 2
    return found


def split_number(whole: float, *shares: float) -> tuple[float, ...]:
    """``share * whole`` for each share and the rest; as real numbers they add up to at most the whole.

    >>> split_number(1.0, 0.1, 0.2)
    (0.1, 0.2, 0.7)
    """
    _check.positive(whole=whole)
    parts = [_check.probability(share=share) * whole for share in shares]
    left = Fraction(whole) - sum(Fraction(part) for part in parts)
    rest = (1 - math.fsum(shares)) * whole
    if Fraction(rest) > left:
        rest = _float_below(left)
    if not rest > 0 or not min(parts, default=1.0) > 0:
        raise InputError(f"Expected shares that leave something of {whole:g}, got {shares}.")
    return *parts, rest


def _float_below(exact: Fraction) -> float:
    """The largest float that is not above."""
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


__all__ = ["split_alike", "split_budget", "split_number", "zcdp_within"]
