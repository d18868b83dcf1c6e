"""What a claim says at a few values of delta: points that an audit can try."""

from __future__ import annotations

from dataclasses import dataclass

from privada.exceptions import InputError
from privada.privacy.guarantee import ZCDP, Approximate, Guarantee, Pure
from privada.privacy.mechanism import Plan

DELTAS = (0.001, 0.01, 0.05, 0.2)


@dataclass(frozen=True, kw_only=True)
class Point:
    """The claim "(ε, δ)-private"; ``first`` marks the one that the guarantee itself names."""

    epsilon: float
    delta: float
    first: bool = False


def points(guarantee: Guarantee, plan: Plan | None = None) -> tuple[Point, ...]:
    """Points of a guarantee, and of the plan that is charged for it.

    A pure claim is tried at δ = 0, an approximate one at its δ, and zCDP at a
    few δ through its conversion. A plan of Gaussian noise alone has an exact
    profile, and is tried on it at the same δ.

    >>> from privada.privacy import Pure, ZCDP
    >>> points(Pure(epsilon=1, relation="add/remove"))
    (Point(epsilon=1.0, delta=0.0, first=True),)
    >>> [f"{p.epsilon:.3f} at {p.delta:g}" for p in points(ZCDP(rho=0.1, relation="add/remove"))]
    ['0.979 at 0.01', '1.356 at 0.001', '0.622 at 0.05', '0.148 at 0.2']
    """
    return _named(guarantee) + (() if plan is None else _charged(plan))


def _named(guarantee: Guarantee) -> tuple[Point, ...]:
    if isinstance(guarantee, Pure):
        return (Point(epsilon=guarantee.epsilon, delta=0.0, first=True),)
    if isinstance(guarantee, Approximate):
        return (Point(epsilon=guarantee.epsilon, delta=guarantee.delta, first=True),)
    if isinstance(guarantee, ZCDP):
        middle, *others = sorted(DELTAS, key=lambda delta: abs(delta - 0.01))
        named = Point(epsilon=guarantee.epsilon_at(middle), delta=middle, first=True)
        return (named, *(Point(epsilon=guarantee.epsilon_at(delta), delta=delta) for delta in others))
    raise InputError(f"A {type(guarantee).__name__} guarantee has no points to try.")


def _charged(plan: Plan) -> tuple[Point, ...]:
    from privada.privacy import accountant

    if not accountant.only_gaussian(plan.event):
        return ()
    return tuple(Point(epsilon=accountant.epsilon(plan.event, delta), delta=delta) for delta in DELTAS)


__all__ = ["DELTAS", "Point", "points"]
