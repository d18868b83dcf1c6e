"""What a budget allows, and what a learner may take of it: prices become shares, quotes and refusals.

*Allowances.* What a learner has used is computed from the lines of the chain: the price of every answer that
the learner received, counted by the filter of its allowance (`Uses`). The allowance is that of the last line
that names the learner's name or key (`in_force`), so a change counts from the moment when its line is
written, for every process, and it counts everything from the beginning. Charges that were lost with their
lines (`privada.privacy.ledger.recovery`) count in every allowance, because nobody knows whose they were.

*Declarations.* What an owner's file declares becomes a line when it differs from what the file declared last
(`stands`): a file that is edited changes the allowance, and one that is only read again does not undo what a
person decided since. A file that declares for the first time does not raise what a person decided before, and
more than the file declares, which a person granted, is for the name and key that it was granted to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from privada._notebook import describe
from privada.exceptions import BudgetError, InputError, PrivadaError, TamperError
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.accountant import Price
from privada.privacy.accounting.filters import GRAIN, Allowance, Filter, RenyiFilter, Vintage, accountings
from privada.privacy.asker import Asker
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.ledger.chain import ALLOWANCE, BUDGET, CHARGE, COPY, RESTORE, Line, moment
from privada.privacy.ledger.storage import Transaction


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
        after = _percent(max(0.0, self.remaining_share - self.share))
        return f"affordable, then {after} is left; whenever the asker stops, this holds: {self.after}"

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
        return BudgetError(" ".join(part for part in (why, self.advice, "Nothing was charged.") if part))


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """What is left of a budget.

    Attributes
    ----------
    share : float
        Fraction of the budget.
    largest : Guarantee or None
        The largest single question that still fits: one of Gaussian noise, except on a pure budget, where it
        is any pure question.
    learner : str, default=""
        Whose allowance it is; empty for the budget.
    """

    dataset: str
    share: float
    largest: Guarantee | None
    learner: str = ""

    def __str__(self) -> str:
        fits = "nothing more fits" if self.largest is None else f"one question of {self.largest} still fits"
        total = f"allowance of {self.learner!r} in" if self.learner else "budget of"
        return f"{_percent(self.share)} of the {total} {self.dataset!r} is left: {fits}."


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
        """What prices, which cost so many grains together, take when ``spent`` grains were spent before."""
        affordable = spent + cost <= self.capacity
        return Quote(
            dataset=self.dataset,
            asked=_describe_prices(prices),
            share=cost / self.capacity,
            affordable=affordable,
            remaining_share=self.share_left(spent),
            after=self.filter.guarantee(spent + cost) if affordable else None,
            running=self.filter.running,
            advice="" if affordable else self.advice(prices, spent=spent),
        )

    def quote_for(self, learner: str, prices: Sequence[Price], *, used: int) -> AllowanceQuote:
        """What prices take from this account as a learner's allowance, of which ``used`` grains were used."""
        cost = sum(self.cost(price) for price in prices)
        spent = min(used, self.capacity)  # one that was lowered may be overdrawn
        affordable = not prices or used + cost <= self.capacity
        larger = f"a larger allowance of {learner!r} from the owner"
        ways = [larger] if spent == self.capacity else [self._advise_less(prices, spent), larger]
        return AllowanceQuote(
            learner=learner,
            asked=_describe_prices(prices),
            most=self.filter.budget,
            share=cost / self.capacity,
            remaining_share=self.share_left(spent),
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
            ways.append(self._advise_less(prices, spent))
        return f"What would do: {'; '.join(ways)}." if ways else ""

    def _advise_less(self, prices: Sequence[Price], spent: int) -> str:
        """How much less to ask for: the largest that fits, where questions of its kind add up to it."""
        alike = self.filter.name == "pure" or all(accountant.only_gaussian(price.event) for price in prices)
        largest = self.remaining(spent).largest if alike else None
        if largest is None:
            return "to ask for less"
        # Rounded down, in four digits of its ε or ρ.
        name = "rho" if isinstance(largest, ZCDP) else "epsilon"
        value = getattr(largest, name)
        step = 10.0 ** (math.floor(math.log10(value)) - 3)
        rounded: Any = {name: float(f"{math.floor(value / step) * step:.4g}")}
        return f"to ask for at most {replace(largest, **rounded)}, in all"

    def share_left(self, spent: int) -> float:
        """Fraction of the budget that is left."""
        return (self.capacity - spent) / self.capacity

    def remaining(self, spent: int) -> Remaining:
        """What is left when ``spent`` grains were spent."""
        grains = self.capacity - spent
        largest = _largest_question(self.filter, grains) if grains else None
        return Remaining(dataset=self.dataset, share=self.share_left(spent), largest=largest)


def read_account(line: Line) -> Account:
    """The account that line 0 opened."""
    if line.kind != BUDGET:
        raise TamperError(f"{line.where} does not open a budget.")
    try:
        return Account.from_dict(line.dataset, line.detail)
    except (InputError, KeyError, TypeError) as error:
        raise TamperError(f"{line.where} holds no budget that can be read: {error}.") from None


def _describe_prices(prices: Sequence[Price]) -> str:
    if len(prices) != 1:
        return "all questions together"
    (price,) = prices
    return f"{price.guarantee}" + (f", {price.times} times," if price.times > 1 else "")


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"


def _largest_question(keeps: Filter, grains: int) -> Guarantee | None:
    """The largest question that fits into so many grains: of Gaussian noise, or pure on a pure budget."""
    budget = keeps.budget
    if isinstance(budget, PureDP):
        epsilon = _lower_to_fit(grains * GRAIN, lambda value: value, grains)
        return None if epsilon is None else replace(budget, epsilon=epsilon)
    if isinstance(budget, ZCDP):
        rho = _lower_to_fit(grains * GRAIN, lambda value: (1 / math.sqrt(1 / (2 * value))) ** 2 / 2, grains)
        return None if rho is None else replace(budget, rho=rho)
    assert isinstance(budget, ApproxDP)
    # Gaussian noise at μ costs per_square μ²; the largest μ is stated as (ε, δ) at the budget's δ.
    per_square = keeps.order / 2 if isinstance(keeps, RenyiFilter) else 1.0
    mu = math.sqrt(grains * GRAIN / per_square)
    epsilon = _lower_to_fit(
        min(curves.gaussian_epsilon(budget.delta, mu), budget.epsilon),
        lambda value: per_square * curves.gaussian_mu(epsilon=value, delta=budget.delta) ** 2,
        grains,
    )
    return None if epsilon is None else replace(budget, epsilon=epsilon)


def _lower_to_fit(value: float, loss: Callable[[float], float], grains: int) -> float | None:
    """The largest number near ``value`` whose cost, rounded, fits; None if there is none."""
    step = 1e-15
    while value > 0 and round(loss(value) / GRAIN) > grains:
        value *= 1 - step
        step *= 2
    return value if value > 0 else None


class Uses:
    """Sums of allowances, continued from where they were last; lines are never changed or removed."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str, Filter], tuple[int, int]] = {}

    def count(self, tables: Transaction, dataset: str, allowance: Allowance) -> int:
        """What a learner has used, in grains of its allowance's filter; 0 if it has none."""
        if allowance.filter is None:
            return 0
        place = (dataset, allowance.learner, allowance.key, allowance.filter)
        position, used = after, _ = self._sums.get(place, (-1, 0))
        who = (allowance.learner, allowance.key)
        for line in tables.find(dataset, kinds=(CHARGE, COPY), learner=who, after=after):
            position, used = line.index, used + allowance.filter.recorded_cost(require_price(line))
        # Lines about no question are few, and there is an index to find them by.
        lost = list(tables.find(dataset, kinds=(RESTORE,), question="", after=after))
        if lost:
            first = tables.line(dataset, 0)
            assert first is not None  # it has a line after that
            budget = read_account(first).filter
            # losses of the budget's filter are the allowance's, too, unless they are at another Rényi order
            orders = [getattr(keeps, "order", None) for keeps in (budget, allowance.filter)]
            is_alike = budget.name == allowance.filter.name and orders[0] == orders[1]
            used += sum(
                line.cost if is_alike or not line.cost else allowance.filter.capacity for line in lost
            )
            position = max(position, lost[-1].index)
        self._sums[place] = (position, used)
        return used

    def quote(
        self, tables: Transaction, dataset: str, allowance: Allowance, prices: Sequence[Price]
    ) -> AllowanceQuote | None:
        """What prices would take from an allowance that is in force; None for the whole budget."""
        if allowance.filter is None:
            return None
        account = Account.opened(dataset, allowance.filter)
        return account.quote_for(allowance.learner, prices, used=self.count(tables, dataset, allowance))

    def check(self, tables: Transaction, head: Line, allowance: Allowance | None, price: Price) -> None:
        """Raise an error unless a learner's term and allowance cover one more answer after a line."""
        if allowance is None:
            return
        allowance = in_force(tables, head.dataset, allowance)
        allowance.check_term(moment(head))
        quote = self.quote(tables, head.dataset, allowance, [price])
        if quote is not None and not quote.affordable:
            raise BudgetError(f"{quote.refusal} Nothing was charged.")


def require_price(line: Line) -> Price:
    """What an answer cost whoever paid for it; `TamperError` if the line does not say so."""
    if (price := line.answer_price) is None:
        raise TamperError(f"{line.where} was edited: it holds no price.")
    return price


def check_asker(asker: Asker | None, allowance: Allowance | None) -> None:
    """Raise `InputError` if an allowance is not the asker's."""
    if allowance is not None and (asker is None or asker.key != allowance.key):
        raise InputError(f"The allowance is that of {allowance.learner!r}, who does not ask.")


def has_answer(lines: Sequence[Line], allowance: Allowance) -> bool:
    """Whether a learner paid for an answer, or got a copy of it; these are the lines of the question."""
    askers = (line.asker for line in lines if line.kind in (CHARGE, COPY) and line.asker is not None)
    return any(asker.key == allowance.key or asker.learner == allowance.learner for asker in askers)


def in_force(tables: Transaction, dataset: str, allowance: Allowance) -> Allowance:
    """A learner's terms with the allowance of the last line about it; as they are if there is none."""
    lines = find_grants(tables, dataset, allowance)
    if not lines:
        return allowance
    part, accounting = read_grant(lines[-1]), lines[-1].detail.get("accounting") or None
    return replace(
        allowance,
        filter=Allowance.of(allowance.learner, allowance.key, part, accounting=accounting).filter,
    )


def find_grants(tables: Transaction, dataset: str, allowance: Allowance) -> list[Line]:
    """The lines that changed the allowance of a learner of this name or this key, in order."""
    return list(tables.find(dataset, kinds=(ALLOWANCE,), learner=(allowance.learner, allowance.key)))


def read_grant(line: Line) -> Guarantee | None:
    """The allowance that a line grants, None for the whole budget."""
    try:
        plain = line.detail["new"]
        return None if plain is None else Guarantee.from_dict(dict(plain))
    except (PrivadaError, KeyError, TypeError, ValueError):
        raise TamperError(f"{line.where} was edited: it holds no allowance.") from None


def describe_grant(grants: Sequence[Line], allowance: Allowance, *, declared: bool = False) -> dict[str, Any]:
    """The fields of the line that changes an allowance, after the lines about it before."""
    old = read_grant(grants[-1]) if grants else None
    new = None if allowance.filter is None else allowance.filter.budget
    detail = {
        "text": f"may have {new or 'the whole budget'}; before: {old or 'the whole budget'}",
        "old": None if old is None else old.to_dict(),
        "new": None if new is None else new.to_dict(),
        "accounting": "" if allowance.filter is None else allowance.filter.name,
        "declared": declared,
    }
    return {"kind": ALLOWANCE, "detail": detail, "asker": Asker(allowance.learner, allowance.key)}


def stands(lines: Sequence[Line], allowance: Allowance) -> bool:
    """Whether the allowance in force stays what it is, although an owner's file declares this one."""
    most = None if allowance.filter is None else allowance.filter.budget
    if not lines:
        return most is None
    part = read_grant(lines[-1])
    is_within = most is None or (part is not None and part <= most)
    declarations = [line for line in lines if line.detail.get("declared")]
    if not declarations:
        return is_within
    is_of_learner = lines[-1].asker == Asker(allowance.learner, allowance.key)
    return read_grant(declarations[-1]) == most and (is_within or is_of_learner)


__all__ = [
    "Account",
    "AllowanceQuote",
    "Quote",
    "Remaining",
    "Uses",
    "check_asker",
    "describe_grant",
    "find_grants",
    "has_answer",
    "in_force",
    "read_account",
    "read_grant",
    "require_price",
    "stands",
]
