"""What one learner may spend of a data set's budget, and until when.

An allowance is a second filter, over the questions of one learner only. It counts
the same events as the budget does, in the same way, and a question is charged only
if both filters have room. So all learners together keep the budget, however they
share what they know, and everything that one learner was answered keeps its
allowance if its questions depend on its own answers only, not on those of other
learners (accounting.md, "One learner's part"). Allowances may add up to more than
the budget; who comes first is then answered first.

*Whose questions count.* Those of the learner's name and those of its key: neither
a new key nor a new name for an old key starts the count again. A release that another
learner paid for counts too, for whoever else receives it.

>>> from privada.privacy import PureDP
>>> allowance = Allowance.of("alice", "ab" * 32, PureDP(epsilon=0.5, relation="add/remove"))
>>> print(allowance.filter.budget)
ε = 0.5 (pure), add/remove one row
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Self

from privada.exceptions import InputError, PolicyError
from privada.privacy.accounting.filters import Filter, open_filter
from privada.privacy.guarantee import Guarantee


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """The terms of one learner, which a ledger keeps beside the budget.

    Attributes
    ----------
    learner, key : str
        The learner's name and public key, as the owner knows them.
    filter : Filter or None
        Counts the learner's own questions; None leaves it the whole budget.
    expires : date or None
        The last day (UTC) on which the learner may ask.
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
        """The terms under which a learner spends at most a guarantee, counted as the budget is."""
        keeps = None if most is None else open_filter(most, accounting=accounting)
        return cls(learner=learner, key=key, filter=keeps, expires=expires)

    def check_term(self, moment: str) -> None:
        """Raise `PolicyError` if the learner's term is over at a moment of the ledger's clock."""
        if self.expires is not None and moment[:10] > self.expires.isoformat():
            raise PolicyError(
                f"The learner {self.learner!r} may not ask any more: its last day was {self.expires}. "
                "Nothing was charged."
            )


def check_part(part: Guarantee, budget: Guarantee) -> Guarantee:
    """Return an allowance that is in a budget's own currency and no larger, else raise `InputError`.

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


__all__ = ["Allowance", "check_part"]
