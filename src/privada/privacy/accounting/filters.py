"""Privacy filters: when a ledger must refuse, although the questions are chosen adaptively.

A filter is fixed when a budget is opened. Every charge costs a whole number of `GRAIN`, costs add up, and a
charge that would exceed the capacity is refused. For each of the four filters it is a theorem that this
bounds *fully adaptive* composition, in which the learner chooses each question, and its price, after seeing
all earlier answers:

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
answers look good. `Filter.guarantee` states only what holds at *every* moment that a learner may choose: the
running sum where that is a theorem too (pure, and Rényi at one order), the whole budget where it is not
(zCDP and Gaussian: stating the ε of the running sum was wrong by a factor of 12 in δ). The proofs are in
``docs/explanation/accounting.md``.

The Rényi filter takes any event and is the default for (ε, δ). The Gaussian filter is exact for Gaussian
noise (a question of (1, 1e-5) uses up a budget of (1, 1e-5)) and charges more for a pure event than the
Rényi filter does.

An `Allowance` is a second filter, for the questions of one learner. A `Vintage` divides the rows of a data
set by a date, so that each period has a budget of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from typing import Any, ClassVar, Self

from privada import _check
from privada.exceptions import (
    BudgetError,
    InputError,
    LedgerError,
    PolicyError,
    PrivadaError,
    RelationError,
)
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.accountant import Price
from privada.privacy.asker import check_line
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP

GRAIN = 1e-15
_FEW_GRAINS = 1_000_000  # grains under which a rounding error would be more than one in a million
_LARGEST_CAPACITY = 9000.0  # capacity in units of GRAIN must fit a signed 64-bit column
LONGEST_VINTAGE_NAME = 90  # characters; the names of data set and vintage together name a budget


@dataclass(frozen=True)
class Filter(ABC):
    """The rule by which one budget is spent.

    Costs are rounded to the nearest `GRAIN`, so that ten charges of 0.1 use up exactly 1. The error of a
    million charges is at most 5e-10.
    """

    budget: Guarantee
    name: ClassVar[str]
    takes: ClassVar[type[Guarantee]]
    running: ClassVar[bool]  # whether the sum so far is a guarantee whenever a learner stops

    def __post_init__(self) -> None:
        if not isinstance(self.budget, self.takes):
            raise InputError(f"A {self.name} filter keeps a {self.takes.kind} budget, got {self.budget}.")
        try:
            capacity = self._capacity()
        except PrivadaError:
            raise
        except (ArithmeticError, ValueError):
            raise BudgetError(
                f"A budget of {self.budget} is too extreme for a {self.name} filter to count."
            ) from None
        if not capacity > GRAIN:
            raise BudgetError(f"A budget of {self.budget} leaves nothing to spend on a {self.name} filter.")
        if capacity > _LARGEST_CAPACITY:
            raise BudgetError(f"A budget of {self.budget} is more than a {self.name} filter counts.")

    @abstractmethod
    def _capacity(self) -> float:
        """The budget in the unit that this filter adds up."""

    @abstractmethod
    def _loss(self, price: Price) -> float:
        """The loss that one application of the price adds."""

    def _spent(self, loss: float) -> Guarantee:  # noqa: ARG002
        """The guarantee that holds if a learner stops at a total loss > 0."""
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
        """Grains that a price took when it was recorded, without the checks of new charges.

        Ledgers of 0.1.0 builds may hold secret samples priced at attribute level, which cost too little.
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
        # To the nearest grain, at least one; rounded up where rounding down could matter.
        grains = loss / GRAIN
        return price.times * max(1, math.ceil(grains) if grains < _FEW_GRAINS else round(grains))

    def guarantee(self, grains: int) -> Guarantee | None:
        """The guarantee that holds if a learner stops with ``grains`` spent, or None for nothing.

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
        order = {"order": form["order"]} if "order" in form else {}
        return kind(Guarantee.from_dict(form["budget"]), **order)


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
        return price.pure_epsilon

    def _spent(self, loss: float) -> Guarantee:
        return replace(self.budget, epsilon=loss)


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
        return min(accountant.zcdp(price.event), _convert_pure(curves.pure_to_zcdp, price))


@dataclass(frozen=True)
class RenyiFilter(Filter):
    """Rényi divergences at one order add up. Feldman and Zrnic 2021.

    The budget alone fixes the order, before any question is asked: it is the one at which Gaussian noise
    that uses up the budget may have the largest μ. A filter that is read back keeps its order. At one order
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
        return replace(self.budget, epsilon=max(epsilon, GRAIN))

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
        return min(accountant.gaussian_mu(price.event), _convert_pure(curves.pure_to_gaussian, price)) ** 2


def _convert_pure(convert: Callable[[float], float], price: Price) -> float:
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
    """Names of the filters under which an unspent budget pays for all prices.

    >>> import dp_accounting
    >>> from privada.privacy import ApproxDP
    >>> whole = ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")
    >>> sigma = curves.gaussian_sigma(epsilon=1, delta=1e-5) * (1 + 1e-9)
    >>> accountings(whole, [Price(event=dp_accounting.GaussianDpEvent(sigma), guarantee=whole)])
    ('gaussian',)
    """
    prices = tuple(prices)

    def pays(kind: type[Filter]) -> bool:
        try:
            budget_filter = kind(budget)
            return sum(budget_filter.cost(price) for price in prices) <= budget_filter.capacity
        except BudgetError:
            return False

    kinds = (kind for kind in _FILTERS.values() if issubclass(kind.takes, type(budget)))
    return tuple(kind.name for kind in kinds if pays(kind))


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What one learner may spend of a data set's budget, and until when.

    An allowance is a second filter, over the questions of one learner only. It counts the same events as the
    budget does, and a question is charged only if both filters can pay for it. So all learners together keep
    the budget, however they share what they know; and the answers to one learner keep its allowance if its
    questions do not depend on the answers to others (accounting.md, "One learner's part"). Allowances may add
    up to more than the budget: then the first to ask are answered.

    The questions of the learner's name and those of its key both count, so that neither a new key nor a new
    name starts the count again. A release that another learner paid for counts for whoever receives it.

    ``learner`` and ``key`` are the learner's name and public key as the owner knows them. Without a
    ``filter`` the learner may spend the whole budget. ``expires`` is the last day (UTC) on which it may ask.

    >>> from privada.privacy import PureDP
    >>> allowance = Allowance.of("alice", "ab" * 32, PureDP(epsilon=0.5, relation="add/remove"))
    >>> print(allowance.filter.budget)
    ε = 0.5 (pure), add/remove one row
    """

    learner: str
    key: str
    filter: Filter | None = None
    expires: date | None = None

    @classmethod
    def of(
        cls,
        learner: str,
        key: str,
        most: Guarantee | None = None,
        *,
        accounting: str | None = None,
        expires: date | None = None,
    ) -> Self:
        """Make the terms under which a learner may spend at most ``most``, counted like the budget."""
        learner_filter = None if most is None else open_filter(most, accounting=accounting)
        return cls(learner=learner, key=key, filter=learner_filter, expires=expires)

    def check_term(self, moment: str) -> None:
        """Raise `PolicyError` if the learner's term is over at a moment of the ledger's clock."""
        if self.expires is not None and moment[:10] > self.expires.isoformat():
            raise PolicyError(
                f"The learner {self.learner!r} may not ask any more: its last day was {self.expires}. "
                "Nothing was charged."
            )


def check_part(part: Guarantee, budget: Guarantee) -> Guarantee:
    """Return an allowance that is stated in the terms of a budget and no larger, else raise `InputError`.

    >>> from privada.privacy import ZCDP, PureDP
    >>> check_part(ZCDP(rho=1, relation="add/remove"), PureDP(epsilon=2, relation="add/remove"))
    Traceback (most recent call last):
        ...
    privada.exceptions.InputError: The allowance is ρ = 1 (zCDP), add/remove one row; the budget is \
ε = 2 (pure), add/remove one row: state it in the same terms.
    """
    if (type(part), part.relation, part.unit) != (type(budget), budget.relation, budget.unit):
        raise InputError(f"The allowance is {part}; the budget is {budget}: state it in the same terms.")
    if not part <= budget:
        raise InputError(f"The allowance is {part}, which is more than the budget: {budget}.")
    return part


@dataclass(frozen=True, kw_only=True)
class Vintage:
    """The rows of a data set whose date is in a half-open period.

    A budget is never renewed. But nobody has asked about the rows of a new period, so they get a budget of
    their own.

    Parameters
    ----------
    of : str
        The data set, all vintages of which are kept apart.
    name : str
        The vintage's own name, such as a year.
    column : str
        The column of dates; it is the same for all vintages of a data set.
    since, until : date or str
        The first day, and the day after the last.

    Privacy
    -------
    Which vintage a row belongs to depends on that row alone, so adding or removing a row changes one vintage.
    Everything that is ever asked about a row is charged to that vintage's budget. A person may have rows in
    several vintages; their losses add up (`add_up`). Proof: accounting.md, "Vintages".

    >>> year = Vintage(of="patients", name="2026", column="admitted", since="2026-01-01", until="2027-01-01")
    >>> print(year)
    rows of 'patients' whose 'admitted' is from 2026-01-01 and before 2027-01-01
    >>> year.dataset
    'patients-2026'
    """

    of: str
    name: str
    column: str
    since: date | str
    until: date | str

    def __post_init__(self) -> None:
        for key in ("of", "name", "column"):
            check_line(**{key: getattr(self, key)}, longest=LONGEST_VINTAGE_NAME)
        for key in ("since", "until"):
            object.__setattr__(self, key, _read_day(**{key: getattr(self, key)}))
        if not self._days[0] < self._days[1]:
            raise InputError(f"Expected since before until, got {self.since} and {self.until}.")

    def __str__(self) -> str:
        return f"rows of {self.of!r} whose {self.column!r} is {self.period}"

    @property
    def dataset(self) -> str:
        """The name of its budget."""
        return f"{self.of}-{self.name}"

    @property
    def period(self) -> str:
        """The period in words."""
        return f"from {self.since} and before {self.until}"

    @property
    def _days(self) -> tuple[date, date]:
        assert isinstance(self.since, date)
        assert isinstance(self.until, date)
        return self.since, self.until

    def overlaps(self, other: Vintage) -> bool:
        """Whether a date is in both periods."""
        (since, until), (others_since, others_until) = self._days, other._days
        return since < others_until and others_since < until

    def to_dict(self) -> dict[str, str]:
        """Plain form."""
        return {name: str(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read the plain form back."""
        return cls(**form)


def check_apart(
    dataset: str, vintage: Vintage | None, others: Iterable[tuple[str, Vintage | None]], *, same: Any
) -> None:
    """Raise `LedgerError` if a budget would be a second one for rows that have one.

    ``same`` says whether two names of data sets are the same.
    """
    for name, other in others:
        # Two budgets for all rows and for some, or for overlapping periods, would both be spent on one row.
        if vintage is not None and same(name, vintage.of):
            raise LedgerError(
                f"{name!r} has a budget for all of its rows; a vintage of it would be a second one for some."
            )
        if other is not None and same(dataset, other.of):
            raise LedgerError(
                f"{other.of!r} has vintages, such as {name!r}; a budget for all of its rows would be a "
                "second one for theirs."
            )
        if vintage is None or other is None or not same(vintage.of, other.of):
            continue
        if vintage.column != other.column:
            raise LedgerError(
                f"Vintages of {vintage.of!r} are divided by {other.column!r}; by {vintage.column!r}, a row "
                "could be in two of them."
            )
        if vintage.overlaps(other):
            raise LedgerError(
                f"The vintage {name!r} has the rows {other.period}; one {vintage.period} would be a second "
                "budget for some of them."
            )


def add_up(budgets: Sequence[Guarantee]) -> Guarantee | None:
    """The guarantee for a person with rows in several vintages, or None if their kinds differ.

    >>> first, second = (PureDP(epsilon=epsilon, relation="add/remove") for epsilon in (1, 2))
    >>> add_up([first, second]).epsilon >= 3
    True
    """
    first = budgets[0]
    if len({(type(budget), budget.relation, budget.unit) for budget in budgets}) > 1:
        return None
    if len(budgets) == 1:
        return first
    # Sums are rounded up, so that no last bit is left out.
    sums = {
        name: math.nextafter(math.fsum(getattr(budget, name) for budget in budgets), math.inf)
        for name in first.parameter_names()
    }
    return replace(first, **sums) if sums.get("delta", 0.0) < 1 else None  # type: ignore[arg-type]


def _read_day(**named: Any) -> date:
    ((name, value),) = named.items()
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        day = None
    if not isinstance(day, date) or isinstance(day, datetime):
        raise InputError(f"Expected {name} to be a day such as 2027-01-01, got {value!r:.40}.")
    return day


__all__ = [
    "GRAIN",
    "Allowance",
    "Filter",
    "GaussianFilter",
    "PureFilter",
    "RenyiFilter",
    "Vintage",
    "ZCDPFilter",
    "accountings",
    "add_up",
    "check_apart",
    "check_part",
    "open_filter",
]
