"""The ledger: an append-only, hash-chained, durable record of what each data set has paid.

>>> import dp_accounting
>>> from privada.privacy import ZCDP, OwnerKey, Price
>>> eighth = ZCDP(rho=0.125, relation="add/remove")
>>> price = Price(event=dp_accounting.GaussianDpEvent(noise_multiplier=2), guarantee=eighth)
>>> with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
...     opened = ledger.open_budget("patients", ZCDP(rho=0.5, relation="add/remove"))
...     print(ledger.price("patients", price))
...     receipt = ledger.charge("patients", price, question="ab" * 32)
...     print(ledger.remaining("patients"))
...     print(ledger.verify([receipt]))
ρ = 0.125 (zCDP), add/remove one row would take 25 % of the budget of 'patients', of which 100 % is left: \
affordable, then 75 % is left; whenever the asker stops, this holds: ρ = 0.5 (zCDP), add/remove one row.
75 % of the budget of 'patients' is left: one question of ρ = 0.375 (zCDP), add/remove one row still fits.
data sets: 1, lines: 2, receipts: 1; chains, sums, costs and signatures hold.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from privada._notebook import list_rows
from privada._text import bounded, printable_line
from privada.exceptions import (
    AnswerError,
    InputError,
    LedgerError,
    LedgerOutageError,
    PolicyError,
    PrivacyLeakWarning,
    PrivadaError,
    TamperError,
)
from privada.privacy.accounting import accountant
from privada.privacy.accounting.accountant import Price
from privada.privacy.accounting.filters import (
    Allowance,
    Filter,
    Vintage,
    check_apart,
    check_part,
    open_filter,
)
from privada.privacy.asker import (
    LONGEST_NAME,
    Asker,
    check_distinct,
    check_line,
    check_name,
    check_single,
    find_same,
    is_alike,
    normal_name,
    show_name,
)
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import account as accounts
from privada.privacy.ledger import chain
from privada.privacy.ledger.account import Account, AllowanceQuote, Quote, Remaining, Uses, read_account
from privada.privacy.ledger.chain import HandOver, Line
from privada.privacy.ledger.recovery import Heads, Lost, back_up, continue_chains
from privada.privacy.ledger.storage import FAILED, KEPT, Debt, Storage, Transaction, absent, open_storage
from privada.privacy.ledger.verify import EXPORT_FORMAT, Verification, export_account, verify
from privada.privacy.receipt import OwnerKey, Receipt
from privada.privacy.relation import Relation
from privada.privacy.wire import canonical

FILE = "owner.toml"  # who changes an allowance by declaring another one
LEAST_ROOM = 1 << 20  # bytes of the disk that a charge and its notes may need
MOST_REFUSALS = 100  # lines that one learner's refusals may fill in a day


class Ledger:
    """Budgets of data sets and everything charged to them.

    Use `Ledger.open`. A ledger is safe for many threads and processes at once; it cannot be pickled: open it
    again where it is needed.

    Attributes
    ----------
    key : OwnerKey
        The owner's key; each line is signed with it.

    Privacy
    -------
    A learner chooses each question after seeing all earlier answers, so plain
    composition theorems do not apply. Each data set has a privacy filter that
    is fixed when its budget is opened (`privada.privacy.accounting.filters` names the
    theorem of each: Rogers et al. 2016 for ε, Feldman and Zrnic 2021 for ρ and
    for the Rényi divergence at one order, Smith and Thakurta 2022 for μ²), and
    a charge that would pass its capacity is refused. The sum is read and
    written under one lock, in whole numbers, and is on disk before `charge`
    returns: rows that are opened after that are paid for. Nothing is refunded.

    Price, relation and unit of a question are checked against the budget: a price under add/remove is
    converted for a replace-one budget, what cannot be converted is refused.
    """

    def __init__(self, storage: Storage, key: OwnerKey, heads: Heads | None) -> None:
        self.key = key
        self._storage = storage
        self._heads = heads  # None where nothing can be lost without the process noticing
        self._gaps: dict[str, str] = {}  # why chains must not be continued
        if heads is not None:
            with storage.reading() as tables:
                self._gaps = heads.find_gaps(tables.names())
        self._uses = Uses()
        self._accounts: dict[str, Account] = {}

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        key: OwnerKey,
        *,
        create: bool = True,
        heads: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open a ledger; create it if there is none and ``create`` allows it.

        Parameters
        ----------
        place : str or path
            A file, ``sqlite:///PATH``, ``postgresql+psycopg://…``, or ``":memory:"`` for a ledger that ends
            with this process.
        key : OwnerKey
            The key that the ledger was created with.
        create : bool, default=True
            Whether to create a ledger that does not exist. A running owner does not: a lost or mistyped
            ledger must not start a new budget.
        heads : path, default=None
            A separate file in which the last line of each chain is recorded, so that a ledger that lost lines
            is noticed. By default ``PLACE.heads`` beside a SQLite file, and none for PostgreSQL: name one, or
            a database that was put back from an older copy is not noticed. A ledger with lines of which this
            file says nothing can be read, and nothing is written to it before `restore`.

        Raises
        ------
        LedgerError
            The ledger does not exist, is not a ledger, belongs to another owner, or is of a newer version.
        TamperError
            Lines that the owner recorded are not in it.
        """
        if not isinstance(key, OwnerKey):
            raise LedgerError(f"A ledger needs its owner's key (an OwnerKey), got {type(key).__name__}.")
        storage = open_storage(place, create=create)
        try:
            storage.prepare(key.public, create=create)
            record = _open_heads(storage, heads)
            if record is not None:
                record.check(storage)
            with storage.reading() as tables:
                if (orphan := tables.find_orphan()) is not None:
                    raise TamperError(
                        f"Line {orphan.position} of {orphan.dataset!r}, which paid for an answer that was "
                        "drawn, is not in the ledger: lines were lost or edited."
                    )
            return cls(storage, key, record)
        except BaseException:
            storage.close()
            raise

    @classmethod
    def restore(
        cls,
        place: str | os.PathLike[str],
        key: OwnerKey,
        *,
        by: str,
        lost: Lost | None = None,
        receipts: Iterable[Receipt] = (),
        heads: str | os.PathLike[str] | None = None,
    ) -> list[Line]:
        """Continue a ledger that was put back from a copy; what it lacks is counted as spent.

        Parameters
        ----------
        place, key, heads
            As in `open`.
        by : str
            The person who decides; the lines say so.
        lost : {"nothing", "everything"}, default=None
            What was written after the copy, where the record of heads does not say it: nothing, or nobody
            knows what, and all that was left of the budget counts as spent.
        receipts : iterable of Receipt, default=()
            Receipts that others kept. They are verified; one of a later line shows that something was lost.

        Returns
        -------
        list of Line
            One of kind ``"restore"`` for each chain that was continued; none if the record is complete.
        """
        storage = open_storage(place, create=False)
        try:
            storage.prepare(key.public, create=False)
            record = _open_heads(storage, heads)
            ledger, all_receipts = cls(storage, key, record), list(receipts)
            ends = {name: ledger._last(name).index for name in ledger.datasets()}
            ledger.verify(
                receipt for receipt in all_receipts if receipt.index <= ends.get(receipt.dataset, -1)
            )
            for receipt in all_receipts:
                if receipt.index > ends.get(receipt.dataset, -1):
                    receipt.verify(key.public)
            with storage.writing() as tables:
                tables.lock_everything()
                notes = [] if record is None else list(record.notes())
                lines = continue_chains(tables, notes, key, by=by, lost=lost, receipts=all_receipts)
            ledger._remember(*lines)
            return lines
        finally:
            storage.close()

    def close(self) -> None:
        """Close the connection; the ledger cannot be used afterwards."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self._storage.place} of {self.key.public[:12]}…>"

    def __sklearn_clone__(self) -> Self:
        """A clone of an estimator charges the same ledger."""
        return self

    def _repr_html_(self) -> str:
        rows = []
        with suppress(LedgerError):  # one that is closed has a name, too
            for dataset in self.datasets():
                account, last = self._account(dataset), self._last(dataset)
                spent = str(account.filter.guarantee(last.spent) or "nothing")
                share = f"{100 * account.share_left(last.spent):.3g} %"
                rows.append((dataset, str(account.filter.budget), spent, share, str(last.index + 1)))
        return list_rows(repr(self), ("data set", "budget", "spent", "left", "lines"), rows)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A ledger cannot be pickled or copied; open it again where it is needed.")

    # Budgets

    def open_budget(
        self,
        dataset: str,
        budget: Guarantee,
        accounting: str | None = None,
        vintage: Vintage | None = None,
    ) -> Receipt:
        """Open the budget of a data set, once and for all; the same call again returns the same receipt.

        Parameters
        ----------
        dataset : str
            The name of the data set. It belongs to the data, not to a file: an updated or moved data set
            keeps its name and its budget.
        budget : Guarantee
            The most that can be spent; its relation and unit become the ledger's.
        accounting : str, default=None
            The filter; by default ``"pure"``, ``"zcdp"`` or ``"renyi"`` by the kind of the budget
            (``"gaussian"`` is the other choice for (ε, δ)).
        vintage : Vintage, default=None
            The rows that it is for, if it is not for all of a data set; ``dataset`` is the vintage's name.
            Its period must be apart from those of all other vintages in this ledger.
        """
        account = _read_budget(dataset, budget, accounting, vintage)
        with self._storage.writing() as tables:
            tables.lock_everything()
            line = tables.line(dataset, 0) or tables.line(account.dataset, 0)
            if line is None:
                check_name(dataset=dataset, longest=200)
                names = tables.names()
                check_distinct(account.dataset, names)
                check_apart(account.dataset, vintage, _read_vintages(tables, names), same=is_alike)
                chain.check_current(tables, self.key.public)
                self._check_recorded(*self._gaps)
                # Noted before the commit, so that a crash between the two is not taken for lost lines.
                if self._heads is not None:
                    self._heads.begin(account.dataset)
                line = chain.opening(account.dataset, account, self.key)
                tables.begin(line)
            signed_by = chain.signer(tables, line, self.key.public)
        if line.dataset not in self._gaps:
            self._remember(line)
        _check_same(read_account(line), account)
        return line.receipt(signed_by)

    def check_budget(
        self,
        dataset: str,
        budget: Guarantee,
        accounting: str | None = None,
        vintage: Vintage | None = None,
    ) -> str:
        """Raise an error unless this very budget is open and can be charged; return its name in the ledger.

        A running owner opens no budget: a changed or mistyped name would start a new one for the same rows.
        """
        expected = _read_budget(dataset, budget, accounting, vintage)
        account = self._account(dataset)
        self._check_recorded(account.dataset)
        _check_same(account, expected)
        check_single(account.dataset, self.datasets)
        if budget.relation is Relation.ATTRIBUTE:
            # A chain whose sum is false is refused: 0.1.0 took sampling to amplify at attribute level.
            for line in self.lines(account.dataset):
                price = line.price
                if price is not None and accountant.amplifies_wrongly(price.event, price.origin):
                    raise LedgerError(
                        f"{line.where} was priced too low by version 0.1.0 (sampling at attribute level), so "
                        "the ledger does not know what is left of this budget. Nothing more is answered "
                        "from it."
                    )
        return account.dataset

    def spent(self, dataset: str) -> Guarantee | None:
        """The guarantee after all charges so far, whenever the learner stops; None before the first."""
        return self._account(dataset).filter.guarantee(self._last(dataset).spent)

    def remaining(self, dataset: str) -> Remaining:
        """What is left: a share, and the largest single question that still fits."""
        return self._account(dataset).remaining(self._last(dataset).spent)

    def budget(self, dataset: str) -> Filter:
        """The filter that keeps the budget of a data set."""
        return self._account(dataset).filter

    def vintage(self, dataset: str) -> Vintage | None:
        """The rows that a budget is for, if it is not for all of a data set."""
        return self._account(dataset).vintage

    def datasets(self) -> tuple[str, ...]:
        """The data sets that have a budget, in alphabetical order."""
        with self._storage.reading() as tables:
            return tuple(tables.names())

    def lines(self, dataset: str) -> Iterator[Line]:
        """All lines of a data set in order, line 0 first."""
        return self._storage.lines(self._find_name(dataset))

    # Quotes and charges

    def price(self, dataset: str, price: Price) -> Quote:
        """What a charge would take now. Nothing is charged, written or locked."""
        return self.price_all(dataset, [price])

    def price_all(self, dataset: str, prices: Sequence[Price]) -> Quote:
        """What charges one after another would take together now. Nothing is charged, written or locked."""
        account = self._account(dataset)
        cost = sum(account.cost(account.converted(price)) for price in prices)
        return account.quote(*prices, cost=cost, spent=self._last(dataset).spent)

    def price_for(
        self, dataset: str, prices: Mapping[str, Price], allowance: Allowance | None
    ) -> AllowanceQuote | None:
        """What questions, by their digests, would take from a learner's allowance now; nothing is written.

        An answer that the learner has costs it nothing again. None if the learner may have the whole budget.
        """
        name = self._find_name(dataset)
        if allowance is None:
            return None
        with self._storage.reading() as tables:
            lines = ((list(tables.find(name, question=digest)), price) for digest, price in prices.items())
            due = [price for of_question, price in lines if not accounts.has_answer(of_question, allowance)]
            return self._uses.quote(tables, name, accounts.in_force(tables, name, allowance), due)

    def charge(
        self,
        dataset: str,
        price: Price,
        *,
        question: str,
        purpose: str = "",
        asker: Asker | None = None,
        allowance: Allowance | None = None,
        approver: str = "",
    ) -> Receipt:
        """Charge a price, every time that it is called. The line is on disk before this returns.

        Parameters
        ----------
        dataset : str
            The data set.
        price : Price
            What the question costs.
        question : str
            Digest of the question, in hexadecimal.
        purpose : str, default=""
            What the charge is for, in the owner's words.
        asker : Asker, default=None
            The learner that asks.
        allowance : Allowance, default=None
            The terms of that learner; they are checked in the transaction of the charge.
        approver : str, default=""
            The person who approved the question.

        Raises
        ------
        BudgetError
            The budget is absent or too small, or the learner's allowance is; nothing was charged.
        PolicyError
            The learner's term is over; nothing was charged.
        RelationError
            The price cannot be converted to the budget's relation or unit; nothing was charged.
        """
        line = {"question": question, "purpose": purpose, "asker": asker, "approver": approver}
        return self._charge(dataset, price, line, allowance, once=False)[0]

    def charge_once(
        self,
        dataset: str,
        price: Price,
        *,
        question: str,
        purpose: str = "",
        asker: Asker | None = None,
        allowance: Allowance | None = None,
        approver: str = "",
    ) -> tuple[Debt, Receipt]:
        """Charge a question, unless it was charged before; in both cases, return what it is owed.

        This is decided in the transaction of the charge, so that several processes at the same time, on any
        machines, charge it once. Each call counts as a try at the answer. For the rest, see `charge`.
        """
        line = {"question": question, "purpose": purpose, "asker": asker, "approver": approver}
        receipt, debt = self._charge(dataset, price, line, allowance, once=True)
        assert debt is not None
        return debt, receipt

    def _charge(
        self, dataset: str, price: Price, fields: dict[str, Any], allowance: Allowance | None, *, once: bool
    ) -> tuple[Receipt, Debt | None]:
        chain.check_digest(question=fields["question"])
        chain.check_text(purpose=fields["purpose"], longest=1000, empty=True)
        check_line(approver=fields["approver"], longest=LONGEST_NAME, empty=True)
        accounts.check_asker(fields["asker"], allowance)
        account = self._account(dataset)
        name = account.dataset
        check_single(name, self.datasets)
        charged = account.converted(price)
        cost, detail = account.cost(charged), json.loads(canonical(charged.to_dict()))
        if allowance is not None:  # most of the sum, before anybody has to wait
            with self._storage.reading() as tables:
                self._uses.count(tables, name, accounts.in_force(tables, name, allowance))
        receipt: Receipt | None = None
        with self._continuing(name) as (tables, head, append):
            debt = tables.debt(name, fields["question"]) if once else None
            if debt is not None:
                self._copy(tables, head, append, debt, fields["asker"], allowance)
                receipt, debt = self._read_receipt(tables, debt), tables.count_try(debt)
            else:
                self._uses.check(tables, head, allowance, charged)
                if head.spent + cost <= account.capacity:
                    line = append(kind=chain.CHARGE, cost=cost, detail=detail, **fields)
                    receipt = line.receipt(self.key.public)
                    if once:
                        debt = Debt(dataset=name, question=line.question, position=line.index, tries=1)
                        tables.owe(debt)
        if receipt is None:  # advice takes its time, and nobody should wait for it
            raise account.quote(price, cost=cost, spent=head.spent).refusal()
        return receipt, debt

    def _read_receipt(self, tables: Transaction, debt: Debt) -> Receipt:
        """The receipt of the line that paid for an answer."""
        line = tables.line(debt.dataset, debt.position)
        if line is None or line.question != debt.question:
            raise TamperError(f"Line {debt.position} of {debt.dataset!r}, which paid, is not in the ledger.")
        signed_by = chain.signer(tables, line, self.key.public)
        line.check_seal(signed_by)
        return line.receipt(signed_by)

    # Answers: what is owed, and what is kept

    def debt(self, dataset: str, question: str) -> Debt | None:
        """What a question that was charged by `charge_once` is owed, None if it never was."""
        with self._reading(dataset) as (tables, name):
            return tables.debt(name, question)

    def keep(self, debt: Debt, release: bytes) -> bytes:
        """Keep a signed release, and return the one to deliver: the first that was kept."""
        try:
            with self._storage.writing() as tables:
                is_first = tables.change(debt, state=KEPT, release=release)
        except LedgerError:  # the disk failed, not the answer: the try is taken back
            with suppress(LedgerError), self._storage.writing() as tables:
                tables.change(debt, tries=debt.tries - 1)
            raise
        if is_first:
            return release
        first = self.kept(debt.dataset, debt.question)
        if first is None:
            raise AnswerError("The answer failed in another process; the charge stands.")
        return first

    def fail(self, debt: Debt) -> None:
        """Note that an answer failed on the rows: it is not drawn again."""
        with self._storage.writing() as tables:
            tables.change(debt, state=FAILED)

    def kept(self, dataset: str, question: str) -> bytes | None:
        """The release that was kept for a question, None if there is none."""
        with self._reading(dataset) as (tables, name):
            return tables.release(name, question)

    def alone(self, dataset: str) -> AbstractContextManager[None]:
        """Answer for a data set while others who would wait, on whatever machines."""
        return self._storage.alone(self._find_name(dataset))

    def claim(self, dataset: str) -> None:
        """Be the only process that serves a data set, until the ledger is closed or the process ends.

        Raises `ServedError` if another process claimed it. Other processes may answer for it meanwhile.
        """
        self._storage.claim(self._find_name(dataset))

    def check_available(self) -> None:
        """Raise `LedgerOutageError` unless the ledger answers and has room.

        It is a `ServedError` if another process took over what this one had claimed.
        """
        self._storage.check_reachable()
        self.check_room(0)

    def check_room(self, size: int) -> None:
        """Raise `LedgerOutageError` if a release of so many bytes could not be kept."""
        free = self._storage.free_bytes()
        if free is not None and free < 3 * size + LEAST_ROOM:  # the log holds it, then the file, then a copy
            raise LedgerOutageError(
                f"The disk of the ledger {self._storage.place} has {free:,} bytes left, too few for "
                f"an answer of up to {size:,}. Nothing was charged."
            )

    # Allowances of learners

    def used(self, dataset: str, allowance: Allowance) -> Remaining:
        """What is left of an allowance, if the budget is not used up before; nothing is written."""
        with self._reading(dataset) as (tables, name):
            allowance = accounts.in_force(tables, name, allowance)
            used = self._uses.count(tables, name, allowance)
        if allowance.filter is None:
            return Remaining(dataset=name, share=1.0, largest=None, learner=allowance.learner)
        account = Account.opened(name, allowance.filter)
        remaining = account.remaining(min(used, account.capacity))  # one that was lowered may be overdrawn
        return replace(remaining, learner=allowance.learner)

    def check_term(self, dataset: str, allowance: Allowance | None) -> None:
        """Raise `PolicyError` if a learner's term is over, by the later of the clock and the last line."""
        last = self._last(dataset)
        if allowance is not None:
            allowance.check_term(chain.moment(last))

    def check_allowance(self, dataset: str, price: Price, allowance: Allowance | None) -> None:
        """Raise an error if a learner's terms do not cover one more answer now; the charge decides again."""
        name = self._find_name(dataset)
        if allowance is not None:
            with self._storage.reading() as tables:
                self._uses.check(tables, tables.last(name), allowance, price)

    def has_answer(self, dataset: str, question: str, allowance: Allowance) -> bool:
        """Whether a learner paid for a question's answer, or got a copy of it, and its term is not over."""
        with self._reading(dataset) as (tables, name):
            allowance.check_term(chain.moment(tables.last(name)))
            return accounts.has_answer(list(tables.find(name, question=question)), allowance)

    def share(self, dataset: str, question: str, *, asker: Asker | None, allowance: Allowance | None) -> None:
        """Let a learner have an answer that is paid for; one that it did not pay for counts in its allowance.

        The budget is not charged again: the same answer tells nothing more about any row. Without an
        allowance nothing is checked or written; one that does not cover it is a `BudgetError` or
        `PolicyError`.
        """
        accounts.check_asker(asker, allowance)
        name = self._find_name(dataset)
        if allowance is None:
            return
        with self._continuing(name) as (tables, head, append):
            debt = tables.debt(name, question)
            if debt is None:
                raise InputError(f"Question {question[:12]} was not charged; there is no answer to share.")
            self._copy(tables, head, append, debt, asker, allowance)

    def _copy(
        self,
        tables: Transaction,
        head: Line,
        append: Callable[..., Line],
        debt: Debt,
        asker: Asker | None,
        allowance: Allowance | None,
    ) -> None:
        """Write that a learner gets an answer for which it did not pay, if that is so."""
        if allowance is None or asker is None:
            return
        lines = list(tables.find(debt.dataset, question=debt.question))
        if accounts.has_answer(lines, allowance):
            allowance.check_term(chain.moment(head))
            return
        paid = next((line for line in lines if line.index == debt.position), None)
        if paid is None:
            raise TamperError(f"Line {debt.position} of {debt.dataset!r}, which paid, is not in the ledger.")
        self._uses.check(tables, head, allowance, accounts.require_price(paid))
        text = f"the answer that line {paid.index} paid for, to another learner"
        detail = {"text": text, "price": dict(paid.detail)}
        append(kind=chain.COPY, detail=detail, question=debt.question, asker=asker)

    def allow(self, dataset: str, *, learner: str, key: str, most: Guarantee | None, by: str) -> Receipt:
        """Change what may be spent on a learner's questions; it counts from now on, in every process.

        What the learner has used stays used. The same allowance again changes and writes nothing.

        Parameters
        ----------
        dataset : str
            The data set.
        learner, key : str
            The learner's name and public key, as the owner knows them.
        most : Guarantee or None
            The allowance, a part of the budget in the budget's own terms; None leaves it the whole budget.
        by : str
            The person who decides.
        """
        check_line(by=by, longest=LONGEST_NAME)
        budget = self.budget(dataset)
        part = None if most is None else check_part(most, budget.budget)
        allowance = Allowance.of(learner, key, part, accounting=budget.name)
        with self._continuing(dataset) as (tables, head, append):
            grants = accounts.find_grants(tables, head.dataset, allowance)
            if grants and grants[-1].asker == Asker(learner, key) and accounts.read_grant(grants[-1]) == part:
                return grants[-1].receipt(chain.signer(tables, grants[-1], self.key.public))
            line = append(**accounts.describe_grant(grants, allowance), approver=by)
        return line.receipt(self.key.public)

    def declare(self, dataset: str, allowance: Allowance) -> None:
        """Record what an owner's file allows a learner, if the file did not say so when it was last read."""
        with self._reading(dataset) as (tables, name):
            if accounts.stands(accounts.find_grants(tables, name, allowance), allowance):
                return
        with self._continuing(dataset) as (tables, _, append):
            grants = accounts.find_grants(tables, name, allowance)
            if not accounts.stands(grants, allowance):
                append(**accounts.describe_grant(grants, allowance, declared=True), approver=FILE)

    def allowed(self, dataset: str, allowance: Allowance) -> Allowance:
        """The terms of a learner as the chain has them now."""
        with self._reading(dataset) as (tables, name):
            return accounts.in_force(tables, name, allowance)

    # Lines that cost nothing

    def note(
        self,
        dataset: str,
        kind: str = "disclosure",
        *,
        text: str,
        question: str = "",
        asker: Asker | None = None,
    ) -> Receipt:
        """Write a line that costs nothing: what it records is *not* differentially private.

        Parameters
        ----------
        dataset : str
            The data set.
        kind : str, default="disclosure"
            One lower-case word; a disclosure is of rows that went to a named curator.
        text : str
            What happened, in words. Never a row.
        question : str, default=""
            Digest of the question.
        asker : Asker, default=None
            The learner that asked.
        """
        if not re.fullmatch(r"[a-z]{1,40}", str(kind)) or kind in chain.KINDS:
            raise InputError(
                f"Expected kind to be a lower-case word other than {', '.join(chain.KINDS)}, "
                f"got {kind!r:.80}."
            )
        chain.check_text(text=text, longest=10_000)
        if question:
            chain.check_digest(question=question)
        detail = {"text": text, "guarantee": "not differentially private"}
        with self._continuing(dataset) as (_, _, append):
            line = append(kind=kind, detail=detail, question=question, asker=asker)
        return line.receipt(self.key.public)

    def approve(
        self, dataset: str, question: str, *, by: str, asker: Asker | None = None, reconsider: bool = False
    ) -> Receipt:
        """Record that a person approves a question; approving again changes nothing.

        Parameters
        ----------
        dataset : str
            The data set.
        question : str
            The whole digest of the question.
        by : str
            The person's name.
        asker : Asker, default=None
            The learner to whom it may be answered; by default, whoever may ask.
        reconsider : bool, default=False
            Whether an earlier decision may be replaced. Otherwise the first one stands, and another is a
            `PolicyError`.
        """
        return self._decide(dataset, chain.APPROVAL, question, by, "approved", asker, reconsider=reconsider)

    def reject(
        self,
        dataset: str,
        question: str,
        *,
        by: str,
        reason: str,
        asker: Asker | None = None,
        reconsider: bool = False,
    ) -> Receipt:
        """Record that a person refuses a question, with a reason that the learner reads; see `approve`."""
        check_line(reason=reason, longest=1000)
        return self._decide(dataset, chain.REFUSAL, question, by, reason, asker, reconsider=reconsider)

    def _decide(
        self,
        dataset: str,
        kind: str,
        question: str,
        by: str,
        text: str,
        asker: Asker | None,
        *,
        reconsider: bool,
    ) -> Receipt:
        chain.check_digest(question=question)
        check_line(by=by, longest=LONGEST_NAME)
        with self._continuing(dataset) as (tables, head, append):
            before = _find_decision(tables, head.dataset, question, asker)
            if before is not None and not reconsider:
                if before.kind == kind:
                    return before.receipt(chain.signer(tables, before, self.key.public))
                what = "approved" if before.kind == chain.APPROVAL else "refused"
                raise PolicyError(
                    f"Question {question[:12]} was {what} by {before.approver} on {before.time[:10]}; "
                    "say reconsider to decide otherwise."
                )
            line = append(kind=kind, detail={"text": text}, question=question, approver=by, asker=asker)
        return line.receipt(self.key.public)

    def decision(self, dataset: str, question: str, *, asker: Asker | None = None) -> Line | None:
        """What a person last decided on a question of this learner, None if nobody has."""
        with self._reading(dataset) as (tables, name):
            return _find_decision(tables, name, question, asker)

    def refuse(self, dataset: str, *, question: str, reason: str, asker: Asker | None = None) -> None:
        """Record that a question is not answered, and the reason in public words; nothing is charged.

        Nobody can fill the disk by being refused: the same refusal is written once, each learner that the
        owner knows gets at most `MOST_REFUSALS` such lines a day, and refusals of anybody else are only
        counted, by day.
        """
        chain.check_digest(question=question)
        text = printable_line(bounded(reason))
        with self._continuing(dataset) as (tables, head, append):
            name, day = head.dataset, chain.moment(head)[:10]
            if asker is None:
                tables.count_unlisted(name, day)
                return
            for line in tables.find(name, kinds=(chain.REFUSAL,), question=question):
                if line.asker is not None and line.asker.key == asker.key and line.detail.get("text") == text:
                    return
            today = tables.find(name, kinds=(chain.REFUSAL,), learner=(asker.learner, asker.key), since=day)
            if len(list(islice(today, MOST_REFUSALS))) >= MOST_REFUSALS:
                tables.count_unlisted(name, day)
                return
            append(kind=chain.REFUSAL, detail={"text": text}, question=question, asker=asker)

    def unlisted(self, dataset: str) -> dict[str, int]:
        """How many refusals got no line, by day (UTC)."""
        with self._reading(dataset) as (tables, name):
            return {day: refusals for of, day, refusals in tables.unlisted() if of == name}

    # The whole ledger

    def verify(self, receipts: Iterable[Receipt] = ()) -> Verification:
        """Check everything again: chains, sums, costs, signatures, and the receipts that others keep.

        An edited line no longer matches its digest, a rewritten chain lacks the owner's signature or
        disagrees with a receipt, and a cut tail lacks the line of a receipt. Without receipts, a cut tail, or
        a chain rewritten with the owner's own key, cannot be detected. The `TamperError` names the first line
        that is not valid.

        Warns of budgets whose names look the same, which older versions opened.
        """
        with self._storage.reading() as tables:
            names = sorted({*tables.names(), *tables.names_in_lines()})
            chain.check_current(tables, self.key.public)
            *earlier, _ = chain.keys(tables)
        for one, other in find_same(names):
            warnings.warn(
                f"The budgets of {show_name(one)} and {show_name(other)} have names that look the same. "
                "If they are for the same rows, what was spent on these is the sum of both.",
                PrivacyLeakWarning,
                stacklevel=2,
            )
        chains = {name: self._storage.lines(name) for name in names}
        try:
            return verify(chains, receipts, public=self.key.public, earlier=earlier)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, PrivadaError):
                raise
            raise TamperError(f"A line is damaged and cannot be read ({type(error).__name__}).") from None

    def rotate(self, new: OwnerKey) -> HandOver:
        """Hand the ledger over to a new key; only the holder of the current key can.

        Every chain gets a line of kind ``"key"``, signed by the old key and accepted by the new one, and
        lines after it are signed by the new key. Receipts of both keys verify. Afterwards the old key no
        longer opens this ledger; older backups still need it. What is charged and not answered yet is given
        up: its charge stands. The `HandOver` names the new key to those who know the old one.
        """
        if not isinstance(new, OwnerKey):
            raise LedgerError(f"A ledger needs its owner's key (an OwnerKey), got {type(new).__name__}.")
        self._check_recorded(*self._gaps)
        with self._storage.writing() as tables:
            tables.lock_everything()
            statement, lines = chain.hand_over(tables, self.key, new)
            tables.give_up()
        self._remember(*lines)
        self.key = new
        return statement

    def hand_overs(self) -> list[HandOver]:
        """How the ledger's key changed, the oldest first."""
        with self._storage.reading() as tables:
            return tables.hand_overs()

    def export(self, dataset: str | None = None) -> dict[str, Any]:
        """Everything in plain JSON, with the recipe by which dp-accounting alone computes the same sums."""
        names = self.datasets() if dataset is None else (dataset,)
        return {
            "format": EXPORT_FORMAT,
            "owner": self.key.public,
            "datasets": {name: export_account(self._account(name), self.lines(name)) for name in names},
        }

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a consistent copy into a new SQLite file, and the heads of its chains into ``PATH.heads``.

        The ledger may be in use meanwhile. The copy verifies as a ledger; nothing is charged to it before
        `restore`.
        """
        back_up(self._storage, self._heads, path)

    def _account(self, dataset: str) -> Account:
        """The account of a data set; line 0 never changes, so it is read once."""
        if dataset not in self._accounts:
            with self._storage.reading() as tables:
                line = tables.line(dataset, 0) or tables.line(normal_name(dataset), 0)
                if line is None:
                    raise absent(dataset, tables.names())
                chain.check_opening(tables, line, self.key.public)
            self._accounts[dataset] = read_account(line)
        return self._accounts[dataset]

    def _find_name(self, dataset: str) -> str:
        """The name under which the ledger knows a data set."""
        return self._account(dataset).dataset

    def _last(self, dataset: str) -> Line:
        with self._reading(dataset) as (tables, name):
            return tables.last(name)

    @contextmanager
    def _reading(self, dataset: str) -> Iterator[tuple[Transaction, str]]:
        """A transaction that reads, and the name under which the ledger knows a data set."""
        name = self._find_name(dataset)
        with self._storage.reading() as tables:
            yield tables, name

    @contextmanager
    def _continuing(self, dataset: str) -> Iterator[tuple[Transaction, Line, Callable[..., Line]]]:
        """A transaction that may continue a chain: with its last line, and what appends one after it."""
        name, lines = self._find_name(dataset), list[Line]()
        with self._storage.writing() as tables:
            head = tables.lock(name)

            def append(**fields: Any) -> Line:
                chain.check_head(tables, head, self.key.public)
                self._check_recorded(name)
                lines.append(chain.following(head, self.key, **fields))
                tables.append(lines[-1])
                return lines[-1]

            yield tables, head, append
        self._remember(*lines)

    def _remember(self, *lines: Line) -> None:
        """Note lines after their commit: a line that is noted is in the ledger, or the ledger has lost it."""
        if self._heads is not None:
            for line in lines:
                self._heads.remember(line)

    def _check_recorded(self, *datasets: str) -> None:
        """Refuse to continue chains that may lack lines: what those charged would be spent again."""
        for dataset in datasets:
            if dataset in self._gaps:
                raise LedgerError(self._gaps[dataset])


def _open_heads(storage: Storage, heads: str | os.PathLike[str] | None) -> Heads | None:
    """The record of heads that was named, or the storage's own."""
    path = storage.heads if heads is None else Path(heads)
    return None if path is None else Heads(path)


def _read_budget(dataset: str, budget: Guarantee, accounting: str | None, vintage: Vintage | None) -> Account:
    """The account that a budget would have under the normal form of its name."""
    chain.check_text(dataset=dataset, longest=200)
    if not isinstance(budget, Guarantee):
        raise InputError(f"Expected budget to be a Guarantee, got {type(budget).__name__}.")
    # The name of a vintage's budget follows from data set and vintage.
    if vintage is not None and normal_name(dataset) != normal_name(vintage.dataset):
        raise InputError(f"Expected dataset to be {vintage.dataset!r} for this vintage, got {dataset!r:.80}.")
    return Account.opened(normal_name(dataset), open_filter(budget, accounting=accounting), vintage)


def _read_vintages(tables: Transaction, names: Iterable[str]) -> Iterator[tuple[str, Vintage | None]]:
    """Every data set that has a budget, and the rows that it is for."""
    for name in names:
        line = tables.line(name, 0)
        yield name, None if line is None else read_account(line).vintage


def _check_same(account: Account, expected: Account) -> None:
    if account.vintage != expected.vintage:
        raise LedgerError(
            f"The budget of {account.dataset!r} is for {account.vintage or 'all rows'}; it cannot become one "
            f"for {expected.vintage or 'all rows'}."
        )
    if not account.same_budget(expected.filter):
        raise LedgerError(
            f"The budget of {account.dataset!r} is {account.filter.budget} on a {account.filter.name} "
            f"filter; it cannot become {expected.filter.budget} on a {expected.filter.name} filter."
        )


def _find_decision(tables: Transaction, dataset: str, question: str, asker: Asker | None) -> Line | None:
    """The last line by which a person decided on a question, for everybody or for this learner."""
    key = None if asker is None else asker.key
    decisions = [
        line
        for line in tables.find(dataset, kinds=(chain.APPROVAL, chain.REFUSAL), question=question)
        if line.approver and (line.asker is None or line.asker.key == key)
    ]
    return decisions[-1] if decisions else None


__all__ = ["FILE", "MOST_REFUSALS", "Ledger"]
