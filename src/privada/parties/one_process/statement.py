"""What a fit's rows have lost, as it is whenever somebody asks: not as it was when the fit ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privada.exceptions import InputError
from privada.parties.one_process.given_budget import GivenBudget
from privada.parties.one_process.process_ledger import OpenUse, find_use
from privada.parties.one_process.tables import UNKNOWN
from privada.privacy.accounting.accountant import weakest
from privada.privacy.guarantee import Guarantee


class Statement:
    """What all uses of what was held for a fit cost together, at most: that of the data set that lost most.

    A copy or a pickle in the same process goes on with it. In another process it states what was known when
    it was pickled, and reads given budgets again that have a path or URL.

    Parameters
    ----------
    uses : sequence of OpenUse
    budgets : sequence of GivenBudget
    known : Guarantee or None
        What another process knew.
    is_unknown : bool
        Whether another process could not state it.

    Privacy
    -------
    Neither a statement nor its pickle holds a fingerprint or anything else of the rows.
    """

    def __init__(
        self,
        uses: Sequence[OpenUse] = (),
        budgets: Sequence[GivenBudget] = (),
        known: Guarantee | None = None,
        is_unknown: bool = False,
    ) -> None:
        self._names = tuple(use.name for use in uses)  # a model refers to its rows by a name alone
        self._budgets, self._known, self._is_unknown = tuple(budgets), known, is_unknown

    @property
    def uses(self) -> list[OpenUse]:
        """The uses that this process knows."""
        return [use for name in self._names if (use := find_use(name)) is not None]

    def read(self) -> Guarantee | None:
        """What was lost so far; None for rows that were declared public.

        Raises
        ------
        InputError
            Fits of this process had different rows, and nobody knows how they were divided.
        """
        if self._is_unknown:
            raise InputError(UNKNOWN)
        now = [each.spent() for each in self.uses] + [each.read() for each in self._budgets]
        known = [each for each in (self._known, *now) if each is not None]
        return weakest(known) if known else None

    def __repr__(self) -> str:
        stated, is_unknown = self.try_to_read()
        return f"<Statement: {'unknown' if is_unknown else stated}>"

    def __reduce__(self) -> Any:
        given = [use.given for use in self.uses if use.given is not None]
        return _restore, (self._names, (*given, *self._budgets), *self.try_to_read())

    def try_to_read(self) -> tuple[Guarantee | None, bool]:
        """What was lost so far, and whether that is unknown."""
        try:
            return self.read(), False
        except InputError:
            return None, True


def join_statements(statements: Sequence[Statement]) -> Statement:
    """One statement for all."""
    known = [each._known for each in statements if each._known is not None]
    return Statement(
        [use for each in statements for use in each.uses],
        [budget for each in statements for budget in each._budgets],
        weakest(known) if known else None,
        any(each._is_unknown for each in statements),
    )


def _restore(
    names: Sequence[str],
    budgets: Sequence[GivenBudget],
    known: Guarantee | None,
    is_unknown: bool,
) -> Statement:
    uses = [use for name in names if (use := find_use(name)) is not None]
    if names and len(uses) == len(names):
        return Statement(uses)
    return Statement(uses, budgets, known, is_unknown)


__all__ = ["Statement", "join_statements"]
