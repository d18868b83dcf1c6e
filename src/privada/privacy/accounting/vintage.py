"""Vintages: rows of one data set, divided by a date, each period with a budget of its own.

A budget is never renewed. What can be renewed are the rows: those of a new period have not been asked about.

>>> year = Vintage(of="patients", name="2026", column="admitted", since="2026-01-01", until="2027-01-01")
>>> print(year)
rows of 'patients' whose 'admitted' is from 2026-01-01 and before 2027-01-01
>>> year.dataset
'patients-2026'
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from typing import Any, Self

from privada.exceptions import InputError, LedgerError
from privada.privacy.asker import check_line
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP

LONGEST = 90  # characters of each name: both together name a data set


@dataclass(frozen=True, kw_only=True)
class Vintage:
    """The rows of a data set whose date is in a half-open period.

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
    """

    of: str
    name: str
    column: str
    since: date | str
    until: date | str

    def __post_init__(self) -> None:
        for key in ("of", "name", "column"):
            check_line(**{key: getattr(self, key)}, longest=LONGEST)
        for key in ("since", "until"):
            object.__setattr__(self, key, _read_day(**{key: getattr(self, key)}))
        if not self._days[0] < self._days[1]:
            raise InputError(f"Expected since before until, got {self.since} and {self.until}.")

    def __str__(self) -> str:
        return f"rows of {self.of!r} whose {self.column!r} is {self.period}"

    @property
    def dataset(self) -> str:
        """The name under which its budget is."""
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
        if vintage is not None and same(name, vintage.of):
            raise LedgerError(
                f"{name!r} has a budget for all of its rows; a vintage of it would be a second one for some."
            )
        if other is not None and same(dataset, other.of):
            raise LedgerError(
                f"{other.of!r} has vintages, such as {name!r}; a budget for all of its rows would be a "
                "second one for theirs."
            )
        if vintage is not None and other is not None and same(vintage.of, other.of):
            _check_pair(vintage, name, other)


def _check_pair(vintage: Vintage, name: str, other: Vintage) -> None:
    if vintage.column != other.column:
        raise LedgerError(
            f"Vintages of {vintage.of!r} are divided by {other.column!r}; by {vintage.column!r}, a row could "
            "be in two of them."
        )
    if vintage.overlaps(other):
        raise LedgerError(
            f"The vintage {name!r} has the rows {other.period}; one {vintage.period} would be a second "
            "budget for some of them."
        )


def add_up(budgets: Sequence[Guarantee]) -> Guarantee | None:
    """What holds for a person who has rows in all of some vintages; None if their kinds differ.

    >>> first, second = (PureDP(epsilon=epsilon, relation="add/remove") for epsilon in (1, 2))
    >>> add_up([first, second]).epsilon >= 3
    True
    """
    first = budgets[0]
    if any(
        (type(each), each.relation, each.unit) != (type(first), first.relation, first.unit)
        for each in budgets
    ):
        return None
    kinds: dict[type[Guarantee], tuple[str, ...]] = {
        PureDP: ("epsilon",),
        ZCDP: ("rho",),
        ApproxDP: ("epsilon", "delta"),
    }
    sums = {name: _sum_up(getattr(each, name) for each in budgets) for name in kinds.get(type(first), ())}
    return replace(first, **sums) if sums and sums.get("delta", 0.0) < 1 else None  # type: ignore[arg-type]


def _sum_up(values: Iterable[float]) -> float:
    """A sum that is rounded up, unless there is one value."""
    found = [*values]
    return found[0] if len(found) == 1 else math.nextafter(math.fsum(found), math.inf)


def _read_day(**named: Any) -> date:
    ((name, value),) = named.items()
    try:
        found = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, date) or isinstance(found, datetime):
        raise InputError(f"Expected {name} to be a day such as 2027-01-01, got {value!r:.40}.")
    return found


__all__ = ["Vintage", "add_up", "check_apart"]
