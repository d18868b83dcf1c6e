"""Privacy filters: when a ledger must refuse, although the questions are chosen adaptively.

A filter is fixed when a budget is opened. Every charge has a cost that is a
whole number of `GRAIN`, costs add up, and a charge that would pass the
capacity is refused. That this bounds *fully adaptive* composition (the learner
chooses each question, and its price, after seeing all earlier answers) is a
theorem for each of the four filters:

========  ========================  ===============================================================
filter    what adds up              theorem
========  ========================  ===============================================================
pure      ε                         Rogers, Roth, Ullman and Vadhan 2016, "Privacy odometers and
                                    filters": the pure filter
zcdp      ρ                         Feldman and Zrnic 2021, at every order at once
renyi     divergence at one order   Feldman and Zrnic 2021, "Individual privacy accounting via a
                                    Rényi filter": fully adaptive composition at a fixed order
gaussian  μ²                        Smith and Thakurta 2022, "Fully adaptive composition for
                                    Gaussian differential privacy"
========  ========================  ===============================================================

**What is spent.** The theorems are about the whole capacity. A learner may also stop earlier, when the
answers look good, and what it has spent by then is a matter of luck. `Filter.guarantee` states only what
holds at *every* moment that a learner may choose: the running sum where that is a theorem too (pure, and
Rényi at one order), the whole budget where it is not (zCDP and Gaussian: stating the running sum's own ε
was wrong by a factor of 12 in δ). The proofs are in ``docs/explanation/accounting.md``.

The Rényi filter takes any event and is the default for (ε, δ). The Gaussian
filter is exact for Gaussian noise (a question of (1, 1e-5) uses up a budget of
(1, 1e-5)) and charges a pure event more than the Rényi filter does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from privada import _check
from privada.exceptions import BudgetError, InputError, PrivadaError, RelationError
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.price import Price
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP

GRAIN = 1e-15
_FEW_GRAINS = 1_000_000  # grains under which a rounding error would be more than one in a million
_LARGEST_CAPACITY = 9000.0  # capacity in units of GRAIN must fit a signed 64-bit column


@dataclass(frozen=True)
class Filter(ABC):
    """The rule by which one budget is spent.

    Costs are rounded to the nearest `GRAIN`, so that ten charges of 0.1 use up
    exactly 1; a million charges are off by at most 5e-10.
    """

    budget: Guarantee
    name: ClassVar[str]
    takes: ClassVar[type[Guarantee]]
    running: ClassVar[bool]  # whether the sum so far is a guarantee whenever a learner stops

    def __post_init__(self) -> None:
        if not isinstance(self.budget, self.takes):
            raise InputError(f"A {self.name} filter keeps a {self.takes.kind} budget, got {self.budget}.")
        capacity = self._known_capacity()
        if not capacity > GRAIN:
            raise BudgetError(f"A budget of {self.budget} leaves nothing to spend on a {self.name} filter.")
        if capacity > _LARGEST_CAPACITY:
            raise BudgetError(f"A budget of {self.budget} is more than a {self.name} filter counts.")

    def _known_capacity(self) -> float:
        """The capacity, or a `BudgetError` where numbers as extreme as the budget's have none."""
        try:
            return self._capacity()
        except PrivadaError:
            raise
        except (ArithmeticError, ValueError):
            raise BudgetError(
                f"A budget of {self.budget} is too extreme for a {self.name} filter to count."
            ) from None

    @abstractmethod
    def _capacity(self) -> float:
        """The budget in what this filter adds up."""

    @abstractmethod
    def _loss(self, price: Price) -> float:
        """What one application of the price adds."""

    def _spent(self, loss: float) -> Guarantee:  # noqa: ARG002
        """What holds whenever a learner stops at a total loss > 0."""
        return self.budget

    @property
    def capacity(self) -> int:
        """The budget in whole grains."""
        return round(self._capacity() / GRAIN)

    def cost(self, price: Price) -> int:
        """Grains that a price takes; ``k`` times one price is exactly one price times ``k``."""
        accountant.check_relation(price.event, price.origin)
        return self.recorded_cost(price)

    def recorded_cost(self, price: Price) -> int:
        """Grains that a price took when it was recorded.

        Ledgers of 0.1.0 builds may hold secret samples priced at attribute level, which no longer can be
        charged: too little was taken for them.
        """
        if price.guarantee.unit != self.budget.unit:
            raise RelationError(
                f"The budget protects one {self.budget.unit}, the question one {price.guarantee.unit}."
            )
        loss = self._loss(price.under(self.budget.relation))
        if loss < 0:
            raise InputError(f"A price of {price.guarantee} cannot have a negative loss; check its event.")
        if not math.isfinite(loss):
            raise BudgetError(
                f"A {self.name} budget cannot pay for this question: it has no {self.name} bound."
            )
        if loss > _LARGEST_CAPACITY:
            raise BudgetError(f"The price of {price.guarantee} is beyond any budget.")
        return price.times * _grains(loss)

    def guarantee(self, grains: int) -> Guarantee | None:
        """What holds whenever a learner stops with ``grains`` spent, or None for nothing.

        >>> from privada.privacy import ZCDP, PureDP
        >>> for budget in (PureDP(epsilon=1, relation="add/remove"), ZCDP(rho=1, relation="add/remove")):
        ...     print(open_filter(budget).guarantee(10**14))
        ε = 0.1 (pure), add/remove one row
        ρ = 1 (zCDP), add/remove one row
        """
        return self._spent(grains * GRAIN) if grains > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain form for the ledger."""
        return {"filter": self.name, "budget": self.budget.to_dict()}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> Filter:
        """Read the plain form back; a recorded order is kept, not computed again."""
        kind = _FILTERS[_check.one_of(_FILTERS, accounting=form["filter"])]
        fixed = {"order": form["order"]} if "order" in form else {}
        return kind(Guarantee.from_dict(form["budget"]), **fixed)


@dataclass(frozen=True)
class PureFilter(Filter):
    """Epsilons add up, on every path. Rogers, Roth, Ullman and Vadhan 2016."""

    budget: PureDP
    name: ClassVar[str] = "pure"
    takes: ClassVar[type[Guarantee]] = PureDP
    running: ClassVar[bool] = True

    def _capacity(self) -> float:
        return self.budget.epsilon

    def _loss(self, price: Price) -> float:
        return accountant.pure_epsilon(price.event) if price.epsilon is None else price.epsilon

    def _spent(self, loss: float) -> Guarantee:
        return PureDP(epsilon=loss, relation=self.budget.relation, unit=self.budget.unit)


@dataclass(frozen=True)
class ZCDPFilter(Filter):
    """Rhos add up: the Rényi filter at every order at once. Feldman and Zrnic 2021."""

    budget: ZCDP
    name: ClassVar[str] = "zcdp"
    takes: ClassVar[type[Guarantee]] = ZCDP
    running: ClassVar[bool] = False

    def _capacity(self) -> float:
        return self.budget.rho

    def _loss(self, price: Price) -> float:
        return min(accountant.zcdp(price.event), _of_pure(curves.pure_to_zcdp, price))


@dataclass(frozen=True)
class RenyiFilter(Filter):
    """Rényi divergences at one order add up. Feldman and Zrnic 2021.

    The order is the one at which a Gaussian that uses up the budget may be
    largest; it is fixed by the budget alone, before any question is seen.
    A filter that is read back gets the order that was fixed then. At one order
    the running sum is a guarantee too, by the same supermartingale.
    """

    budget: ApproxDP
    order: float = math.nan
    name: ClassVar[str] = "renyi"
    takes: ClassVar[type[Guarantee]] = ApproxDP
    running: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.budget.kind == ApproxDP.kind and math.isnan(self.order):
            order = curves.best_order(epsilon=self.budget.epsilon, delta=self.budget.delta)
            object.__setattr__(self, "order", order)
        if self.order <= 1:
            raise InputError(f"Expected order > 1, got {self.order!r}.")
        super().__post_init__()

    def _capacity(self) -> float:
        return curves.renyi_capacity(epsilon=self.budget.epsilon, delta=self.budget.delta, order=self.order)

    def _loss(self, price: Price) -> float:
        return accountant.renyi(price.event, self.order)

    def _spent(self, loss: float) -> Guarantee:
        epsilon = curves.renyi_epsilon(self.budget.delta, self.order, loss)
        return ApproxDP(
            epsilon=max(epsilon, GRAIN),
            delta=self.budget.delta,
            relation=self.budget.relation,
            unit=self.budget.unit,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain form; it records the order, so that others can recompute."""
        return super().to_dict() | {"order": self.order}


@dataclass(frozen=True)
class GaussianFilter(Filter):
    """Squares of μ add up. Smith and Thakurta 2022, "Fully adaptive composition for GDP"."""

    budget: ApproxDP
    name: ClassVar[str] = "gaussian"
    takes: ClassVar[type[Guarantee]] = ApproxDP
    running: ClassVar[bool] = False

    def _capacity(self) -> float:
        return curves.gaussian_mu(epsilon=self.budget.epsilon, delta=self.budget.delta) ** 2

    def _loss(self, price: Price) -> float:
        return min(accountant.gaussian_mu(price.event), _of_pure(curves.pure_to_gaussian, price)) ** 2


def _grains(loss: float) -> int:
    """Whole grains of a loss, at least one: the nearest number, and rounded up where that could matter."""
    grains = loss / GRAIN
    return max(1, math.ceil(grains) if grains < _FEW_GRAINS else round(grains))


def _of_pure(convert: Callable[[float], float], price: Price) -> float:
    return math.inf if price.epsilon is None else convert(price.epsilon)


_FILTERS: dict[str, type[Filter]] = {
    kind.name: kind for kind in (PureFilter, ZCDPFilter, RenyiFilter, GaussianFilter)
}
_DEFAULT = {PureDP: "pure", ZCDP: "zcdp", ApproxDP: "renyi"}


def open_filter(budget: Guarantee, *, accounting: str | None = None) -> Filter:
    """Make the filter that keeps ``budget``.

    >>> from privada.privacy import ApproxDP
    >>> open_filter(ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")).name
    'renyi'
    """
    name = _DEFAULT[type(budget)] if accounting is None else accounting
    return _FILTERS[_check.one_of(_FILTERS, accounting=name)](budget)


def accountings(budget: Guarantee, prices: Iterable[Price]) -> tuple[str, ...]:
    """Names of the filters on which an unspent budget pays for all prices.

    >>> import dp_accounting
    >>> from privada.privacy import ApproxDP
    >>> whole = ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")
    >>> sigma = curves.gaussian_sigma(epsilon=1, delta=1e-5) * (1 + 1e-9)
    >>> accountings(whole, [Price(event=dp_accounting.GaussianDpEvent(sigma), guarantee=whole)])
    ('gaussian',)
    """
    asked = tuple(prices)
    kinds = (kind for kind in _FILTERS.values() if issubclass(kind.takes, type(budget)))
    return tuple(kind.name for kind in kinds if _pays(kind, budget, asked))


def _pays(kind: type[Filter], budget: Guarantee, prices: tuple[Price, ...]) -> bool:
    try:
        keeps = kind(budget)
        return sum(keeps.cost(price) for price in prices) <= keeps.capacity
    except BudgetError:
        return False


__all__ = [
    "GRAIN",
    "Filter",
    "GaussianFilter",
    "PureFilter",
    "RenyiFilter",
    "ZCDPFilter",
    "accountings",
    "open_filter",
]
