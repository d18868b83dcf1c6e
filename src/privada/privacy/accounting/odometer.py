"""What several uses of the same rows cost together, whenever somebody stops: an odometer.

A filter has a budget and refuses what exceeds it. An odometer has none: it states what was spent so far, and
the statement must hold although each use, its price, and whether there is another one, are chosen after
seeing all earlier answers. For the uses of one unit, in the order in which they happened:

===================  =====================================================================================
uses                 stated
===================  =====================================================================================
one                  its own guarantee
all pure             ε = the sum of epsilons
any other            ε at δ: the epsilons of the pure uses before the first that is not, and for the others
                     the least over `ORDERS` of what the summed Rényi divergence implies at δ / K, K the
                     number of orders. δ is that of the first use that is not pure (`STATED_DELTA` if it was
                     asked for as ρ), doubled if it is the first of all: its own statement took the other δ
===================  =====================================================================================

Relations are joined first: if one use is under replace-one, all are converted to it. The proof is in
``docs/explanation/accounting.md``, "Rows that are used again".

>>> from privada.privacy import PureDP
>>> once = PureDP(epsilon=0.5, relation="add/remove")
>>> print(state_total([Use(guarantee=once, prices=())]))
ε = 0.5 (pure), add/remove one row
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from privada.exceptions import InputError, RelationError
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.price import Price
from privada.privacy.guarantee import ApproxDP, Guarantee, PureDP
from privada.privacy.relation import Relation

# Fixed before anything is used.
ORDERS = (1.5, 2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 25.0, 45.0, 100.0, 400.0, 2000.0)
STATED_DELTA = 1e-6  # where no use says a δ: a sum of ρ that may stop anywhere is not ρ-zCDP
MOST_DELTA = 1 - 1e-9
LEAST_EPSILON = 1e-15


@dataclass(frozen=True, kw_only=True)
class Use:
    """One use of some rows: what it promised by itself, and the prices that were charged for it."""

    guarantee: Guarantee
    prices: tuple[Price, ...]


def state_total(uses: Sequence[Use]) -> Guarantee:
    """The guarantee of all uses of one unit together, in the order in which they happened.

    Raises
    ------
    InputError
        There is no use.
    RelationError
        Uses protect different units, which are never converted.
    """
    if not uses:
        raise InputError("Expected at least one use.")
    relation = _weakest_relation(use.guarantee.relation for use in uses)
    if len({use.guarantee.unit for use in uses}) > 1:
        raise RelationError("Uses of rows and of persons have no common guarantee.")
    if len(uses) == 1:
        return uses[0].guarantee
    losses = [_Loss.of(use, relation) for use in uses]
    unit = uses[0].guarantee.unit
    pure = [loss.pure for loss in losses]
    if all(map(math.isfinite, pure)):
        return PureDP(epsilon=math.fsum(pure), relation=relation, unit=unit)
    first = next(place for place, epsilon in enumerate(pure) if not math.isfinite(epsilon))
    delta = _delta_of(uses[first].guarantee)
    epsilon = math.fsum(pure[:first]) + _least_epsilon(losses[first:], delta)
    stated = min(delta if first else 2 * delta, MOST_DELTA)
    return ApproxDP(epsilon=epsilon, delta=stated, relation=relation, unit=unit)


def weakest(guarantees: Sequence[Guarantee]) -> Guarantee:
    """One guarantee that follows from each of several, as small as their numbers allow."""
    for each in guarantees:
        if all(other.implies(each) for other in guarantees):
            return each
    relation = _weakest_relation(each.relation for each in guarantees)
    alike = [each.under(relation) for each in guarantees]
    delta = max((each.delta for each in alike if isinstance(each, ApproxDP)), default=STATED_DELTA)
    epsilon = max(_epsilon_at(each, delta) for each in alike)
    return ApproxDP(epsilon=epsilon, delta=delta, relation=relation, unit=alike[0].unit)


def add_statements(statements: Sequence[Guarantee]) -> Guarantee:
    """What several statements about one unit imply together, each of other answers, in whatever order.

    Epsilons and deltas add up, also where every answer is chosen after seeing those of all others
    (accounting.md, "Rows that are used again").
    """
    if len(statements) == 1:
        return statements[0]
    relation = _weakest_relation(each.relation for each in statements)
    if len({each.unit for each in statements}) > 1:
        raise RelationError("Statements about rows and about persons have no sum.")
    alike = [each.under(relation) for each in statements]
    about: dict[str, Any] = {"relation": relation, "unit": alike[0].unit}
    if all(isinstance(each, PureDP) for each in alike):
        return PureDP(epsilon=math.fsum(_epsilon_at(each, 0.0) for each in alike), **about)
    deltas = [0.0 if isinstance(each, PureDP) else _delta_of(each) for each in alike]
    epsilons = [_epsilon_at(each, delta) for each, delta in zip(alike, deltas, strict=True)]
    delta = min(math.fsum(deltas), MOST_DELTA)
    return ApproxDP(epsilon=math.fsum(epsilons), delta=delta, **about)


def _epsilon_at(guarantee: Guarantee, delta: float) -> float:
    if isinstance(guarantee, (ApproxDP, PureDP)):
        return guarantee.epsilon
    return curves.zcdp_epsilon(delta, guarantee.zcdp_constant())


def _delta_of(guarantee: Guarantee) -> float:
    return guarantee.delta if isinstance(guarantee, ApproxDP) else STATED_DELTA


def _least_epsilon(losses: Sequence[_Loss], delta: float) -> float:
    """The least ε over all orders, each at its part of δ."""
    part = delta / len(ORDERS)
    sums = (math.fsum(loss.renyi[place] for loss in losses) for place in range(len(ORDERS)))
    found = (curves.renyi_epsilon(part, order, total) for order, total in zip(ORDERS, sums, strict=True))
    return max(min(found), LEAST_EPSILON)


@dataclass(frozen=True)
class _Loss:
    """What one use loses: its pure epsilon, infinite if it has none, and its divergence at each order."""

    pure: float
    renyi: tuple[float, ...]

    @classmethod
    def of(cls, use: Use, relation: Relation) -> _Loss:
        prices = [price.under(relation) for price in use.prices]
        pure = math.fsum(price.times * _pure(price) for price in prices)
        return cls(pure, tuple(math.fsum(_renyi(price, order) for price in prices) for order in ORDERS))


def _pure(price: Price) -> float:
    return accountant.pure_epsilon(price.event) if price.epsilon is None else price.epsilon


def _renyi(price: Price, order: float) -> float:
    """A divergence is at most the pure epsilon."""
    return price.times * min(accountant.renyi(price.event, order), _pure(price))


def _weakest_relation(relations: Iterable[Relation]) -> Relation:
    """The relation to which all others can be converted."""
    found = set(relations)
    for relation in (Relation.ATTRIBUTE, Relation.REPLACE_ONE, Relation.ADD_REMOVE):
        if relation in found:
            return relation
    raise InputError("Expected at least one use.")


__all__ = ["ORDERS", "STATED_DELTA", "Use", "add_statements", "state_total", "weakest"]
