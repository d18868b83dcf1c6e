"""What a claim says: points (ε, δ) that an audit can try, and the whole curve of a Gaussian claim.

A plan of Gaussian noise alone is μ-Gaussian private: for neighbours D and D' and every event E,
``Φ⁻¹(P(M(D) in E)) - Φ⁻¹(P(M(D') in E)) <= μ`` (Dong, Roth and Su 2022). A violation of that is a
violation of the plan, whatever the mechanism really is; so the curve can be tried without assuming
anything, where single points at a small δ would need far more trials.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.mechanism import Plan

DELTAS = (0.001, 0.01, 0.05, 0.2)
COARSE_PLD_STEP = 1e-3  # step of a privacy-loss distribution that is only to be tried


@dataclass(frozen=True, kw_only=True)
class Point:
    """The claim "(ε, δ)-private"; ``first`` marks the one that the guarantee itself names."""

    epsilon: float
    delta: float
    first: bool = False

    @property
    def claimed(self) -> float:
        """What a bound may not exceed."""
        return self.epsilon

    def bounds(self, lows: FloatArray, highs: FloatArray) -> FloatArray:
        """Lower bounds on ε at δ, from bounds on the two probabilities of events."""
        return np.log(np.maximum(lows - self.delta, 1e-300) / highs)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The claim "μ-Gaussian private": all points of a Gaussian profile at once."""

    mu: float

    @property
    def claimed(self) -> float:
        """What a bound may not exceed."""
        return self.mu

    def bounds(self, lows: FloatArray, highs: FloatArray) -> FloatArray:
        """Lower bounds on μ, from bounds on the two probabilities of events."""
        from scipy.special import ndtri

        return ndtri(np.maximum(lows, 1e-300)) - ndtri(np.minimum(highs, 1 - 1e-16))


Claim = Point | Curve


def claims(guarantee: Guarantee, plan: Plan | None = None) -> tuple[Claim, ...]:
    """The points of a guarantee and its plan, and the plan's curve if its noise is Gaussian."""
    from privada.privacy.accounting import accountant

    found: tuple[Claim, ...] = points(guarantee, plan)
    if plan is not None and accountant.only_gaussian(plan.event):
        return (*found, Curve(mu=accountant.gaussian_mu(plan.event)))
    return found


def points(guarantee: Guarantee, plan: Plan | None = None) -> tuple[Point, ...]:
    """Points of a guarantee, and of the plan that is charged for it.

    A pure claim is tried at δ = 0, an approximate one at its δ, and zCDP at a
    few δ through its conversion. A plan of Gaussian noise alone has an exact
    profile, and is tried on it at the same δ; any other plan on the profile of its
    privacy-loss distribution, and at its pure epsilon if it has one.

    >>> from privada.privacy import PureDP, ZCDP
    >>> points(PureDP(epsilon=1, relation="add/remove"))
    (Point(epsilon=1.0, delta=0.0, first=True),)
    >>> [f"{p.epsilon:.3f} at {p.delta:g}" for p in points(ZCDP(rho=0.1, relation="add/remove"))]
    ['0.979 at 0.01', '1.356 at 0.001', '0.622 at 0.05', '0.148 at 0.2']
    """
    return _named(guarantee) + (() if plan is None else _charged(guarantee, plan))


def _named(guarantee: Guarantee) -> tuple[Point, ...]:
    if isinstance(guarantee, PureDP):
        return (Point(epsilon=guarantee.epsilon, delta=0.0, first=True),)
    if isinstance(guarantee, ApproxDP):
        return (Point(epsilon=guarantee.epsilon, delta=guarantee.delta, first=True),)
    if isinstance(guarantee, ZCDP):
        middle, *others = sorted(DELTAS, key=lambda delta: abs(delta - 0.01))
        named = Point(epsilon=guarantee.epsilon_at(middle), delta=middle, first=True)
        return (named, *(Point(epsilon=guarantee.epsilon_at(delta), delta=delta) for delta in others))
    raise InputError(f"A {type(guarantee).__name__} guarantee has no points to try.")


def _charged(guarantee: Guarantee, plan: Plan) -> tuple[Point, ...]:
    from privada.privacy.accounting import accountant

    if accountant.only_gaussian(plan.event):
        return tuple(Point(epsilon=accountant.epsilon(plan.event, delta), delta=delta) for delta in DELTAS)
    if isinstance(guarantee, PureDP):
        return ()
    pure = () if plan.epsilon is None else (Point(epsilon=plan.epsilon, delta=0.0),)
    return (*pure, *_profile(plan))


def _profile(plan: Plan) -> tuple[Point, ...]:
    """Points of the privacy-loss distribution, for events that have one."""
    from privada.privacy.accounting import accountant

    kinds = {type(leaf).__name__ for _, leaf, _ in accountant.leaves(plan.event)}
    if "ZCDpEvent" in kinds:
        return ()
    try:
        spread = accountant.privacy_loss_distribution(plan.event, step=COARSE_PLD_STEP)
    except (InputError, ArithmeticError, ValueError):
        return ()
    found = ((float(spread.get_epsilon_for_delta(delta)), delta) for delta in DELTAS)
    return tuple(Point(epsilon=max(epsilon, 0.0), delta=delta) for epsilon, delta in found)


__all__ = ["DELTAS", "Claim", "Curve", "Point", "claims", "points"]
