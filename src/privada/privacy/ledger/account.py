"""What a budget allows: prices become shares, quotes and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from privada._notebook import describe
from privada.exceptions import BudgetError
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.accountant import Price
from privada.privacy.accounting.filters import GRAIN, Filter, RenyiFilter, Vintage, accountings
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP


@dataclass(frozen=True, kw_only=True)
class AllowanceQuote:
    """What a question would take from a learner's allowance.

    Attributes
    ----------
    learner : str
        Whose allowance it is.
    most : Guarantee
        The allowance that is in force.
    share : float
        Fraction of the allowance that the question would take; 0 if the learner has its answer.
    remaining_share : float
        Fraction of the allowance that is left now.
    affordable : bool
        Whether the allowance pays.
    advice : str
        What to ask or change instead, if it does not.
    """

    learner: str
    asked: str
    most: Guarantee
    share: float
    remaining_share: float
    affordable: bool
    advice: str = ""

    def __str__(self) -> str:
        return (
            f"{_percent(self.share)} of the allowance of {self.learner!r}, "
            f"of which {_percent(self.remaining_share)} is left"
        )

    @property
    def refusal(self) -> str:
        """Why the allowance does not pay."""
        return (
            f"The allowance of {self.learner!r} does not allow it: {self.asked} would take "
            f"{_percent(self.share)} of it, of which {_percent(self.remaining_share)} is left."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "learner": self.learner,
            "allowance": self.most.to_dict(),
            "share": self.share,
            "left": self.remaining_share,
            "affordable": self.affordable,
        }


@dataclass(frozen=True, kw_only=True)
class Quote:
    """What a question would take from a budget; quoting charges nothing.

    Attributes
    ----------
    share : float
        Fraction of the whole budget.
    affordable : bool
        Whether a charge would be granted now, by the budget and by the asker's allowance.
    remaining_share : float
        Fraction of the budget that is left now.
    after : Guarantee or None
        What would hold after the charge, whenever the learner stops; None if it would be refused.
    running : bool
        Whether ``after`` is what is spent by then, rather than the whole budget.
    advice : str
        What to ask or change instead, if it would be refused.
    allowance : AllowanceQuote or None
        What it would take from the asker's allowance; None without an asker or an allowance.
    """

    dataset: str
    asked: str
    share: float
    affordable: bool
    remaining_share: float
    after: Guarantee | None
    running: bool = True
    advice: str = ""
    allowance: AllowanceQuote | None = None

    def __str__(self) -> str:
        part = "" if self.allowance is None else f", and {self.allowance}"
        return f"{self._words()}{part}: {self._verdict()}."

    def within(self, allowance: AllowanceQuote | None) -> Quote:
        """The quote for a learner whose allowance must pay, too; as it is if there is none."""
        if allowance is None or allowance.affordable:
            return replace(self, allowance=allowance)
        advice = " ".join(part for part in (self.advice, allowance.advice) if part)
        return replace(self, allowance=allowance, affordable=False, after=None, advice=advice)

    def _repr_html_(self) -> str:
        facts = [
            ("asked", self.asked),
            ("of the budget", _percent(self.share)),
            ("left now", _percent(self.remaining_share)),
            ("takes also", "" if self.allowance is None else str(self.allowance)),
            ("verdict", self._verdict()),
            ("instead", self.advice),
        ]
        return describe(f"Quote for {self.dataset}", [fact for fact in facts if fact[1]])

    def _verdict(self) -> str:
        if not self.affordable:
            return "refused"
        if self.running:
            return f"affordable, then spent: {self.after}"
        left = _percent(max(0.0, self.remaining_share - self.share))
        return f"affordable, then {left} is left; whenever the asker stops, this holds: {self.after}"

    def _words(self) -> str:
        return (
            f"{self.asked} would take {_percent(self.share)} of the budget of {self.dataset!r}, "
            f"of which {_percent(self.remaining_share)} is left"
        )

    def refusal(self) -> BudgetError:
        """The error of a charge that is not affordable."""
        why = f"The budget does not allow it: {self._words()}."
        if self.allowance is not None and not self.allowance.affordable:
            why = self.allowance.refusal
        said = (why, self.advice, "Nothing was charged.")
        return BudgetError(" ".join(part for part in said if part))


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """What is left of a budget.

    Attributes
    ----------
    share : float
        Fraction of the budget.
    largest : Guarantee or None
        The largest single question that still fits: one of Gaussian noise,
        except on a pure budget, where it is any pure question.
    learner : str, default=""
        Whose allowance it is; empty for the budget.
    """

    dataset: str
    share: float
    largest: Guarantee | None
    learner: str = ""

    def __str__(self) -> str:
        fits = "nothing more fits" if self.largest is None else f"one question of {self.largest} still fits"
        whole = f"allowance of {self.learner!r} in" if self.learner else "budget of"
        return f"{_percent(self.share)} of the {whole} {self.dataset!r} is left: {fits}."


@dataclass(frozen=True)
class Account:
    """The filter of one data set, with the capacity that was fixed when its budget was opened."""

    dataset: str
    filter: Filter
    capacity: int
    vintage: Vintage | None = None

    @classmethod
    def opened(cls, dataset: str, keeps: Filter, vintage: Vintage | None = None) -> Self:
        """The account of a new budget."""
        return cls(dataset, keeps, keeps.capacity, vintage)

    def to_dict(self) -> dict[str, Any]:
        """Plain form for line 0."""
        period = {} if self.vintage is None else {"vintage": self.vintage.to_dict()}
        return self.filter.to_dict() | {"capacity": self.capacity} | period

    @classmethod
    def from_dict(cls, dataset: str, form: Mapping[str, Any]) -> Self:
        """Read the plain form back."""
        vintage = Vintage.from_dict(form["vintage"]) if "vintage" in form else None
        return cls(dataset, Filter.from_dict(dict(form)), form["capacity"], vintage)

    def same_budget(self, keeps: Filter) -> bool:
        """Whether the account keeps the same budget in the same way."""
        return (self.filter.name, self.filter.budget) == (keeps.name, keeps.budget)

    def converted(self, price: Price) -> Price:
        """The price under the relation of the budget, or `RelationError`."""
        return price.under(self.filter.budget.relation)

    def cost(self, price: Price) -> int:
        """Whole grains that a price takes."""
        try:
            return self.filter.cost(price)
        except BudgetError as error:
            raise BudgetError(f"{error} Nothing was charged to {self.dataset!r}.") from None

    def quote(self, *prices: Price, cost: int, spent: int) -> Quote:
        """What prices, which cost so many grains together, take when ``spent`` grains are gone."""
        affordable = spent + cost <= self.capacity
        return Quote(
            dataset=self.dataset,
            asked=_asked(prices),
            share=cost / self.capacity,
            affordable=affordable,
            remaining_share=self.share_left(spent),
            after=self.filter.guarantee(spent + cost) if affordable else None,
            running=self.filter.running,
            advice="" if affordable else self.advice(prices, spent=spent),
        )

    def quote_for(self, learner: str, prices: Sequence[Price], *, used: int) -> AllowanceQuote:
        """What prices take from this account as a learner's allowance, of which ``used`` grains are gone."""
        cost = sum(self.cost(price) for price in prices)
        gone = min(used, self.capacity)  # one that was lowered may be overdrawn
        affordable = not prices or used + cost <= self.capacity
        larger = f"a larger allowance of {learner!r} from the owner"
        ways = [larger] if gone == self.capacity else [self._less(prices, gone), larger]
        return AllowanceQuote(
            learner=learner,
            asked=_asked(prices),
            most=self.filter.budget,
            share=cost / self.capacity,
            remaining_share=self.share_left(gone),
            affordable=affordable,
            advice="" if affordable else f"What would do: {'; '.join(ways)}.",
        )

    def advice(self, prices: Sequence[Price], *, spent: int) -> str:
        """What to do instead of a refused charge: another accounting, a larger budget, a smaller question."""
        ways = []
        if not spent:
            names = (name for name in accountings(self.filter.budget, prices) if name != self.filter.name)
            new = " or ".join([*(f'accounting = "{name}"' for name in names), "a larger budget"])
            ways.append(f"{new} in the owner's file, before its budget is opened")
        if spent < self.capacity:
            ways.append(self._less(prices, spent))
        return f"What would do: {'; '.join(ways)}." if ways else ""

    def _less(self, prices: Sequence[Price], spent: int) -> str:
        """How much less to ask for: the largest that fits, where questions of its kind add up to it."""
        alike = self.filter.name == "pure" or all(accountant.only_gaussian(each.event) for each in prices)
        largest = self.remaining(spent).largest if alike else None
        if largest is None:
            return "to ask for less"
        return f"to ask for at most {_rounded_down(largest)}, in all"

    def share_left(self, spent: int) -> float:
        """Fraction of the budget that is left."""
        return (self.capacity - spent) / self.capacity

    def remaining(self, spent: int) -> Remaining:
        """What is left when ``spent`` grains are gone."""
        left = self.capacity - spent
        largest = _LARGEST[self.filter.name](self.filter, left) if left else None
        return Remaining(dataset=self.dataset, share=self.share_left(spent), largest=largest)


def _asked(prices: Sequence[Price]) -> str:
    if len(prices) != 1:
        return "all questions together"
    (price,) = prices
    return f"{price.guarantee}" + (f", {price.times} times," if price.times > 1 else "")


def _rounded_down(guarantee: Guarantee) -> Guarantee:
    """At most the guarantee, in four digits of its ε or ρ."""
    name = "rho" if isinstance(guarantee, ZCDP) else "epsilon"
    value = getattr(guarantee, name)
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    rounded: Any = {name: float(f"{math.floor(value / step) * step:.4g}")}
    return replace(guarantee, **rounded)


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"


def _largest_pure(keeps: Filter, left: int) -> Guarantee | None:
    assert isinstance(keeps.budget, PureDP)
    epsilon = _down_to(left * GRAIN, lambda value: value, left)
    return None if epsilon is None else replace(keeps.budget, epsilon=epsilon)


def _largest_zcdp(keeps: Filter, left: int) -> Guarantee | None:
    assert isinstance(keeps.budget, ZCDP)
    rho = _down_to(left * GRAIN, lambda value: (1 / math.sqrt(1 / (2 * value))) ** 2 / 2, left)
    return None if rho is None else replace(keeps.budget, rho=rho)


def _largest_renyi(keeps: Filter, left: int) -> Guarantee | None:
    assert isinstance(keeps, RenyiFilter)
    return _largest_approximate(keeps.budget, left, per_square=keeps.order / 2)


def _largest_gaussian(keeps: Filter, left: int) -> Guarantee | None:
    assert isinstance(keeps.budget, ApproxDP)
    return _largest_approximate(keeps.budget, left, per_square=1.0)


def _largest_approximate(budget: ApproxDP, left: int, *, per_square: float) -> Guarantee | None:
    """Gaussian noise at μ costs ``per_square`` μ²; state the largest μ as (ε, δ) at the budget's δ."""
    mu = math.sqrt(left * GRAIN / per_square)
    top = min(curves.gaussian_epsilon(budget.delta, mu), budget.epsilon)
    epsilon = _down_to(
        top, lambda value: per_square * curves.gaussian_mu(epsilon=value, delta=budget.delta) ** 2, left
    )
    return None if epsilon is None else replace(budget, epsilon=epsilon)


def _down_to(value: float, loss: Callable[[float], float], left: int) -> float | None:
    """The largest number near ``value`` whose cost, rounded, fits; None if there is none."""
    step = 1e-15
    while value > 0 and round(loss(value) / GRAIN) > left:
        value *= 1 - step
        step *= 2
    return value if value > 0 else None


_LARGEST: dict[str, Callable[[Filter, int], Guarantee | None]] = {
    "pure": _largest_pure,
    "zcdp": _largest_zcdp,
    "renyi": _largest_renyi,
    "gaussian": _largest_gaussian,
}

__all__ = ["Account", "AllowanceQuote", "Quote", "Remaining"]
