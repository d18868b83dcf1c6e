"""What each learner has used of its allowance, decided in the transaction that charges.

The use is computed from the lines of the chain: the price of every answer that a
learner got, counted by the filter of its allowance, which is that of the last line about
it (`privada.privacy.ledger.grants`). Nothing else is stored, so an allowance that is
changed counts everything from the beginning. Charges that were lost with their lines
(`privada.privacy.ledger.restoring`) count in every allowance: nobody knows whose they were.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from privada.exceptions import BudgetError, InputError, TamperError
from privada.privacy.accounting.accountant import Price
from privada.privacy.accounting.filters import Allowance, Filter
from privada.privacy.asker import Asker
from privada.privacy.ledger.account import Account, AllowanceQuote, Remaining
from privada.privacy.ledger.database import table
from privada.privacy.ledger.database.store import Store
from privada.privacy.ledger.grants import in_force
from privada.privacy.ledger.heads import Heads
from privada.privacy.ledger.lines import CHARGE, COPY, Line, moment, read_account
from privada.privacy.ledger.outbox import Debt, find


class Uses:
    """Sums of allowances, continued from where they were last; lines are never changed or removed."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str, Filter], tuple[int, int]] = {}

    def grains(self, connection: Connection, dataset: str, allowance: Allowance) -> int:
        """What a learner has used, in grains of its allowance's filter; 0 if it has none."""
        if allowance.filter is None:
            return 0
        place = (dataset, allowance.learner, allowance.key, allowance.filter)
        position, used = self._known.get(place, (-1, 0))
        who = {"learner": allowance.learner, "key": allowance.key}
        lost = table.restored(connection, dataset, after=position)
        for line in table.told(connection, dataset, after=position, **who):
            position, used = line.index, used + allowance.filter.recorded_cost(_told(line))
        if lost:
            first = table.first(connection, dataset)
            assert first is not None  # it has a line after that
            budget = read_account(first).filter
            # losses of the budget's filter are the allowance's, too, unless they are at another Rényi order
            orders = [getattr(one, "order", None) for one in (budget, allowance.filter)]
            is_alike = budget.name == allowance.filter.name and orders[0] == orders[1]
            used += sum(
                line.cost if is_alike or not line.cost else allowance.filter.capacity for line in lost
            )
            position = max(position, lost[-1].index)
        self._known[place] = (position, used)
        return used

    def check(self, connection: Connection, head: Line, allowance: Allowance, price: Price) -> None:
        """Raise an error unless the learner's term and allowance cover one more answer."""
        allowance = in_force(connection, head.dataset, allowance)
        allowance.check_term(moment(head))
        quote = self.quote(connection, head.dataset, allowance, [price])
        if quote is not None and not quote.affordable:
            raise BudgetError(f"{quote.refusal} Nothing was charged.")

    def quote(
        self, connection: Connection, dataset: str, allowance: Allowance, prices: Sequence[Price]
    ) -> AllowanceQuote | None:
        """What prices would take from an allowance that is in force; None for the whole budget."""
        if allowance.filter is None:
            return None
        account = Account.opened(dataset, allowance.filter)
        used = self.grains(connection, dataset, allowance)
        return account.quote_for(allowance.learner, prices, used=used)


class Allowances(ABC):
    """The verbs of a ledger that are about what one learner may have."""

    _store: Store
    _heads: Heads
    _uses: Uses

    @abstractmethod
    def _known_as(self, dataset: str) -> str:
        """The name under which the ledger knows a data set."""

    @abstractmethod
    def _append(self, connection: Connection, head: Line, **fields: Any) -> Line:
        """Write the line after a head that is genuine."""

    def used(self, dataset: str, allowance: Allowance) -> Remaining:
        """What is left of an allowance, if the budget is not used up before; nothing is written."""
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            allowance = in_force(connection, name, allowance)
            used = self._uses.grains(connection, name, allowance)
        if allowance.filter is None:
            return Remaining(dataset=name, share=1.0, largest=None, learner=allowance.learner)
        account = Account.opened(name, allowance.filter)
        left = account.remaining(min(used, account.capacity))  # one that was lowered may be overdrawn
        return replace(left, learner=allowance.learner)

    def price_for(
        self, dataset: str, prices: Mapping[str, Price], allowance: Allowance | None
    ) -> AllowanceQuote | None:
        """What questions would take from a learner's allowance now; nothing is written.

        Parameters
        ----------
        dataset : str
            The data set.
        prices : mapping of str to Price
            The questions' prices, by digest; an answer that the learner has costs it nothing again.
        allowance : Allowance or None
            The learner's terms.

        Returns
        -------
        AllowanceQuote or None
            None if the learner may have the whole budget.
        """
        name = self._known_as(dataset)
        if allowance is None:
            return None
        with self._store.reading() as connection:
            asked = ((table.on_question(connection, name, digest), price) for digest, price in prices.items())
            due = [price for lines, price in asked if not _has(lines, allowance)]
            return self._uses.quote(connection, name, in_force(connection, name, allowance), due)

    def _catch_up(self, name: str, allowance: Allowance) -> None:
        """Count what a learner has used by now."""
        with self._store.reading() as connection:
            self._uses.grains(connection, name, in_force(connection, name, allowance))

    def check_term(self, dataset: str, allowance: Allowance | None) -> None:
        """Raise `PolicyError` if a learner's term is over, by the later of the clock and the last line."""
        name = self._known_as(dataset)
        if allowance is not None:
            with self._store.reading() as connection:
                allowance.check_term(moment(table.last(connection, name)))

    def check_allowance(self, dataset: str, price: Price, allowance: Allowance | None) -> None:
        """Raise an error if a learner's terms would not cover one more answer now; nothing is written.

        The charge decides again, in its transaction: this is to refuse early.
        """
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            self._check_terms(connection, table.last(connection, name), allowance, price)

    def has_answer(self, dataset: str, question: str, allowance: Allowance) -> bool:
        """Whether a learner paid for a question's answer, or got a copy of it, and its term is not over."""
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            allowance.check_term(moment(table.last(connection, name)))
            return _has(table.on_question(connection, name, question), allowance)

    def share(self, dataset: str, question: str, *, asker: Asker | None, allowance: Allowance | None) -> None:
        """Let a learner have an answer that is paid for; one that it did not pay for counts in its allowance.

        The budget is not charged again: the same answer tells nothing more about any row. Without an
        allowance nothing is checked or written.

        Raises
        ------
        BudgetError, PolicyError
            The learner's allowance or term does not cover it.
        """
        check_asker(asker, allowance)
        name = self._known_as(dataset)
        if allowance is None:
            return
        with self._store.writing() as connection:
            head, debt = table.locked_last(connection, name), find(connection, name, question)
            if debt is None:
                raise InputError(f"Question {question[:12]} was not charged; there is no answer to share.")
            written = self._copy(connection, head, debt, asker, allowance)
        if written is not None:
            self._heads.remember(written)

    def _copy(
        self, connection: Connection, head: Line, debt: Debt, asker: Asker | None, allowance: Allowance | None
    ) -> Line | None:
        """Write that a learner gets an answer for which it did not pay, if that is so."""
        if allowance is None or asker is None:
            return None
        there = table.on_question(connection, debt.dataset, debt.question)
        if _has(there, allowance):
            allowance.check_term(moment(head))
            return None
        paid = next((line for line in there if line.index == debt.position), None)
        if paid is None:
            raise TamperError(f"Line {debt.position} of {debt.dataset!r}, which paid, is not in the ledger.")
        self._check_terms(connection, head, allowance, _told(paid))
        text = f"the answer that line {paid.index} paid for, to another learner"
        detail = {"text": text, "price": dict(paid.detail)}
        return self._append(
            connection, head, kind=COPY, cost=0, detail=detail, question=debt.question, asker=asker
        )

    def _check_terms(
        self, connection: Connection, head: Line, allowance: Allowance | None, price: Price
    ) -> None:
        if allowance is not None:
            self._uses.check(connection, head, allowance, price)


def check_asker(asker: Asker | None, allowance: Allowance | None) -> None:
    """Raise `InputError` if an allowance is not the asker's."""
    if allowance is not None and (asker is None or asker.key != allowance.key):
        raise InputError(f"The allowance is that of {allowance.learner!r}, who does not ask.")


def _has(lines: list[Line], allowance: Allowance) -> bool:
    """Whether a learner paid for an answer, or got a copy of it."""
    askers = (line.asker for line in lines if line.kind in (CHARGE, COPY) and line.asker is not None)
    return any(who.key == allowance.key or who.learner == allowance.learner for who in askers)


def _told(line: Line) -> Price:
    price = line.told
    if price is None:
        raise TamperError(f"{line.where} was edited: it holds no price.")
    return price


__all__ = ["Allowances", "Uses", "check_asker"]
