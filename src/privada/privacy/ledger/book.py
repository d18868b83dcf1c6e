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
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from sqlalchemy import Connection

from privada._notebook import list_rows
from privada.exceptions import InputError, LedgerError, PrivacyLeakWarning, PrivadaError, TamperError
from privada.privacy.accounting import accountant
from privada.privacy.accounting.accountant import Price
from privada.privacy.accounting.filters import Allowance, Filter, Vintage, check_apart, open_filter
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
from privada.privacy.ledger import outbox, restoring, rotation
from privada.privacy.ledger.account import Account, Quote, Remaining
from privada.privacy.ledger.allowances import Allowances, Uses, check_asker
from privada.privacy.ledger.backup import back_up
from privada.privacy.ledger.database import schema, table
from privada.privacy.ledger.database.backends import absent, backend
from privada.privacy.ledger.database.store import Store
from privada.privacy.ledger.export import FORMAT, export_account
from privada.privacy.ledger.grants import Grants
from privada.privacy.ledger.heads import Heads
from privada.privacy.ledger.lines import (
    CHARGE,
    Line,
    check_digest,
    check_text,
    following,
    opening,
    read_account,
)
from privada.privacy.ledger.notes import Notes
from privada.privacy.ledger.outbox import Debt, Outbox
from privada.privacy.ledger.rotation import HandOver
from privada.privacy.ledger.verify import Verification, verify
from privada.privacy.receipt import OwnerKey, Receipt
from privada.privacy.relation import Relation
from privada.privacy.wire import canonical


class Ledger(Outbox, Notes, Grants, Allowances):
    """Budgets of data sets and everything charged to them.

    Use `Ledger.open`. A ledger is safe for many threads and processes at
    once; it cannot be pickled: open it again where it is needed.

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

    Price, relation and unit of a question are checked against the budget: a
    price under add/remove is converted for a replace-one budget, what cannot
    be converted is refused.
    """

    def __init__(self, store: Store, key: OwnerKey, heads: Heads) -> None:
        self.key = key
        self._store = store
        self._heads = heads
        with store.reading() as connection:
            self._gaps = heads.find_gaps(table.names(connection))  # why chains must not be continued
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
            A file, ``sqlite:///PATH``, ``postgresql+psycopg://…``, or
            ``":memory:"`` for a ledger that ends with this process.
        key : OwnerKey
            The key that the ledger was made with.
        create : bool
            Whether to create a ledger that does not exist. A running owner does
            not: a lost or mistyped ledger must not start a new budget.
        heads : path, optional
            A separate file in which the last line of each chain is recorded, so
            that a ledger that lost lines is noticed. By default
            ``PLACE.heads`` beside a SQLite file, and none for PostgreSQL: name one, or a
            database that was put back from an older copy is not noticed. A ledger with
            lines of which this file says nothing can be read, and nothing is written to it
            before `restore`.

        Raises
        ------
        LedgerError
            The ledger does not exist, is not a ledger, belongs to another owner, or is of a newer version.
        TamperError
            Lines that the owner recorded are not in it.
        """
        if not isinstance(key, OwnerKey):
            raise LedgerError(f"A ledger needs its owner's key (an OwnerKey), got {type(key).__name__}.")
        store = Store(backend(place, create=create))
        try:
            _make_ready(store, key, create=create, place=place)
            noted = Heads(store.backend.heads if heads is None else Path(heads))
            _check_whole(store, noted)
            return cls(store, key, noted)
        except BaseException:
            store.close()
            raise

    @classmethod
    def restore(
        cls,
        place: str | os.PathLike[str],
        key: OwnerKey,
        *,
        by: str,
        lost: restoring.Lost | None = None,
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
        lost : {"nothing", "everything"}, optional
            What was written after the copy, where the record of heads does not say it: nothing, or nobody
            knows what, and all that was left of the budget counts as spent.
        receipts : iterable of Receipt, default=()
            Receipts that others hold. They are verified; one of a later line shows that something was lost.

        Returns
        -------
        list of Line
            One of kind ``"restore"`` for each chain that was continued; none if the record is complete.

        Raises
        ------
        LedgerError
            It is not known what was lost, or the copy is older than a budget.
        TamperError
            The ledger or a receipt is not genuine.
        """
        store = Store(backend(place, create=False))
        try:
            _make_ready(store, key, create=False, place=place)
            ledger = cls(store, key, Heads(store.backend.heads if heads is None else Path(heads)))
            return ledger._continue(by, lost, list(receipts))
        finally:
            store.close()

    def _continue(self, by: str, lost: restoring.Lost | None, receipts: Sequence[Receipt]) -> list[Line]:
        ends = {name: self._last(name).index for name in self.datasets()}
        self.verify(receipt for receipt in receipts if receipt.index <= ends.get(receipt.dataset, -1))
        for receipt in receipts:
            if receipt.index > ends.get(receipt.dataset, -1):
                receipt.verify(self.key.public)
        with self._store.writing() as connection:
            self._store.backend.lock_everything(connection)
            lines = restoring.continue_chains(
                connection, self._heads, self.key, by=by, lost=lost, receipts=receipts
            )
        for line in lines:
            self._heads.remember(line)
        return lines

    def close(self) -> None:
        """Close the connection; the ledger cannot be used afterwards."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self._store.backend.place} of {self.key.public[:12]}…>"

    def __sklearn_clone__(self) -> Self:
        """A clone of an estimator charges the same ledger."""
        return self

    def _repr_html_(self) -> str:
        try:
            rows = [self._row(name) for name in self.datasets()]
        except LedgerError:  # one that is closed has a name, too
            rows = []
        return list_rows(repr(self), ("data set", "budget", "spent", "left", "lines"), rows)

    def _row(self, dataset: str) -> tuple[str, ...]:
        account, last = self._account(dataset), self._last(dataset)
        spent = account.filter.guarantee(last.spent)
        left = f"{100 * account.share_left(last.spent):.3g} %"
        return dataset, str(account.filter.budget), str(spent or "nothing"), left, str(last.index + 1)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A ledger cannot be pickled or copied; open it again where it is needed.")

    def open_budget(
        self,
        dataset: str,
        budget: Guarantee,
        accounting: str | None = None,
        vintage: Vintage | None = None,
    ) -> Receipt:
        """Open the budget of a data set, once and for all.

        Parameters
        ----------
        dataset : str
            The name of the data set. It belongs to the data, not to a file: an
            updated or moved data set keeps its name and its budget.
        budget : Guarantee
            The most that can be spent; its relation and unit become the ledger's.
        accounting : str, optional
            The filter; by default ``"pure"``, ``"zcdp"`` or ``"renyi"`` by the
            kind of the budget (``"gaussian"`` is the other choice for (ε, δ)).
        vintage : Vintage, optional
            The rows that it is for, if it is not for all of a data set; ``dataset`` is the vintage's name.
            Its period must be apart from those of all other vintages in this ledger.

        Returns
        -------
        Receipt
            Of line 0. The same call again returns the same receipt.
        """
        check_text(dataset=dataset, longest=200)
        if not isinstance(budget, Guarantee):
            raise InputError(f"Expected budget to be a Guarantee, got {type(budget).__name__}.")
        _check_name(dataset, vintage)
        keeps = open_filter(budget, accounting=accounting)
        account = Account.opened(normal_name(dataset), keeps, vintage)
        with self._store.writing() as connection:
            self._store.backend.lock_everything(connection)
            line = table.first(connection, dataset) or table.first(connection, account.dataset)
            if line is None:
                check_name(dataset=dataset, longest=200)
                check_distinct(account.dataset, table.names(connection))
                check_apart(account.dataset, vintage, _vintages(connection), same=is_alike)
                rotation.check_current(connection, self.key.public)
                self._check_recorded(*self._gaps)
                self._heads.begin(account.dataset)
                line = opening(account.dataset, account, self.key)
                table.begin(connection, line)
            signed_by = rotation.signer(connection, line, self.key.public)
        if line.dataset not in self._gaps:
            self._heads.remember(line)
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

        A running owner opens no budget: a changed or mistyped name would start
        a new one for the same rows.
        """
        check_text(dataset=dataset, longest=200)
        _check_name(dataset, vintage)
        there = self._account(dataset)
        self._check_recorded(there.dataset)
        _check_same(there, Account.opened(there.dataset, open_filter(budget, accounting=accounting), vintage))
        check_single(there.dataset, self.datasets)
        if budget.relation is Relation.ATTRIBUTE:
            self._check_prices(there.dataset)
        return there.dataset

    def _check_prices(self, dataset: str) -> None:
        """Refuse a chain whose sum is false: 0.1.0 took sampling to amplify at attribute level."""
        prices = ((line, line.price) for line in self.lines(dataset))
        for line, price in prices:
            if price is not None and accountant.amplifies_wrongly(price.event, price.origin):
                raise LedgerError(
                    f"{line.where} was priced too low by version 0.1.0 (sampling at attribute level), so the "
                    "ledger does not know what is left of this budget. Nothing more is answered from it."
                )

    def price(self, dataset: str, price: Price) -> Quote:
        """What a charge would take now. Nothing is charged, written or locked."""
        return self.price_all(dataset, [price])

    def price_all(self, dataset: str, prices: Sequence[Price]) -> Quote:
        """What charges one after another would take together now. Nothing is charged, written or locked."""
        account = self._account(dataset)
        cost = sum(account.cost(account.converted(price)) for price in prices)
        return account.quote(*prices, cost=cost, spent=self._grains(dataset))

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
        asker : Asker, optional
            The learner that asks.
        allowance : Allowance, optional
            The terms of that learner; they are checked in the transaction of the charge.
        approver : str, default=""
            The person who approved the question.

        Returns
        -------
        Receipt
            The owner's signed statement, for the learner.

        Raises
        ------
        BudgetError
            The budget is absent or too small, or the learner's allowance is; nothing was charged.
        PolicyError
            The learner's term is over; nothing was charged.
        RelationError
            The price cannot be converted to the budget's relation or unit; nothing was charged.
        """
        line = self._asked(question, purpose=purpose, asker=asker, allowance=allowance, approver=approver)
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

        This is decided in the transaction of the charge, so that several
        processes at the same time, on any machines, charge it once. Each
        call counts as a try at the answer. Parameters and errors are those of `charge`.
        """
        line = self._asked(question, purpose=purpose, asker=asker, allowance=allowance, approver=approver)
        receipt, debt = self._charge(dataset, price, line, allowance, once=True)
        assert debt is not None
        return debt, receipt

    def _asked(
        self, question: str, *, purpose: str, asker: Asker | None, allowance: Allowance | None, approver: str
    ) -> dict[str, Any]:
        """What a line says of who asked for what, checked."""
        check_digest(question=question)
        check_text(purpose=purpose, longest=1000, empty=True)
        check_line(approver=approver, longest=LONGEST_NAME, empty=True)
        check_asker(asker, allowance)
        return {"question": question, "purpose": purpose, "asker": asker, "approver": approver}

    def _charge(
        self, dataset: str, price: Price, asked: dict[str, Any], allowance: Allowance | None, *, once: bool
    ) -> tuple[Receipt, Debt | None]:
        account = self._account(dataset)
        check_single(account.dataset, self.datasets)
        charged = account.converted(price)
        cost, detail = account.cost(charged), json.loads(canonical(charged.to_dict()))
        if allowance is not None:
            self._catch_up(account.dataset, allowance)  # most of the sum, before anybody has to wait
        receipt: Receipt | None
        with self._store.writing() as connection:
            head = table.locked_last(connection, account.dataset)
            debt = outbox.find(connection, account.dataset, asked["question"]) if once else None
            if debt is not None:
                written = self._copy(connection, head, debt, asked["asker"], allowance)
                receipt, debt = self._receipt(connection, debt), outbox.try_again(connection, debt)
            else:
                self._check_terms(connection, head, allowance, charged)
                granted = head.spent + cost <= account.capacity
                fields = {"kind": CHARGE, "cost": cost, "detail": detail, **asked}
                written = self._append(connection, head, **fields) if granted else None
                receipt = None if written is None else written.receipt(self.key.public)
                debt = outbox.owe(connection, written) if once and written else None
        if written is not None:
            self._heads.remember(written)
        if receipt is None:  # advice takes its time, and nobody should wait for it
            raise account.quote(price, cost=cost, spent=head.spent).refusal()
        return receipt, debt

    def spent(self, dataset: str) -> Guarantee | None:
        """The guarantee after all charges so far, whenever the learner stops; None before the first."""
        return self._account(dataset).filter.guarantee(self._grains(dataset))

    def remaining(self, dataset: str) -> Remaining:
        """What is left: a share, and the largest single question that still fits."""
        return self._account(dataset).remaining(self._grains(dataset))

    def budget(self, dataset: str) -> Filter:
        """The filter that keeps the budget of a data set."""
        return self._account(dataset).filter

    def vintage(self, dataset: str) -> Vintage | None:
        """The rows that a budget is for, if it is not for all of a data set."""
        return self._account(dataset).vintage

    def datasets(self) -> tuple[str, ...]:
        """The data sets that have a budget, in alphabetical order."""
        with self._store.reading() as connection:
            return tuple(table.names(connection))

    def lines(self, dataset: str) -> Iterator[Line]:
        """All lines of a data set in order, line 0 first."""
        return table.every(self._store, self._known_as(dataset))

    def verify(self, receipts: Iterable[Receipt] = ()) -> Verification:
        """Check everything again: chains, sums, costs, signatures, and the receipts that others hold.

        An edited line no longer matches its digest, a rewritten chain lacks the
        owner's signature or disagrees with a receipt, and a cut tail lacks the
        line of a receipt. Without receipts, a cut tail, or a chain rewritten
        with the owner's own key, cannot be detected.

        Warns of budgets whose names look the same, which older versions opened.

        Raises
        ------
        TamperError
            Names the first line that is not valid.
        """
        with self._store.reading() as connection:
            names = sorted({*table.names(connection), *table.names_in_lines(connection)})
            rotation.check_current(connection, self.key.public)
            *earlier, _ = rotation.keys(connection)
        for one, other in find_same(names):
            warnings.warn(
                f"The budgets of {show_name(one)} and {show_name(other)} have names that look the same. "
                "If they are for the same rows, what was spent on these is the sum of both.",
                PrivacyLeakWarning,
                stacklevel=2,
            )
        chains = {name: table.every(self._store, name) for name in names}
        try:
            return verify(chains, receipts, public=self.key.public, earlier=earlier)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, PrivadaError):
                raise
            raise TamperError(f"A line is damaged and cannot be read ({type(error).__name__}).") from None

    def rotate(self, new: OwnerKey) -> HandOver:
        """Hand the ledger over to a new key; only the holder of the current key can.

        Every chain gets a line of kind ``"key"``, signed by the old key and
        accepted by the new one, and lines after it are signed by the new key.
        Receipts of both keys verify. Afterwards the old key no longer opens this
        ledger; older backups still need it. What is charged and not
        answered yet is given up: its charge stands.

        Returns
        -------
        HandOver
            For those who know the old public key: it names the new one.
        """
        if not isinstance(new, OwnerKey):
            raise LedgerError(f"A ledger needs its owner's key (an OwnerKey), got {type(new).__name__}.")
        self._check_recorded(*self._gaps)
        with self._store.writing() as connection:
            self._store.backend.lock_everything(connection)
            made, written = rotation.hand_over(connection, self.key, new)
            outbox.give_up(connection)
        for line in written:
            self._heads.remember(line)
        self.key = new
        return made

    def hand_overs(self) -> list[HandOver]:
        """How the ledger's key changed, the oldest first."""
        with self._store.reading() as connection:
            return rotation.hand_overs(connection)

    def export(self, dataset: str | None = None) -> dict[str, Any]:
        """Everything in plain JSON, with the recipe by which dp-accounting alone computes the same sums."""
        names = self.datasets() if dataset is None else (dataset,)
        return {
            "format": FORMAT,
            "owner": self.key.public,
            "datasets": {name: export_account(self._account(name), self.lines(name)) for name in names},
        }

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a consistent copy into a new SQLite file, and the heads of its chains into ``PATH.heads``.

        The ledger may be in use meanwhile. The copy opens and verifies as a ledger. It lacks the
        lines after it, so nothing is charged to it before `restore`.
        """
        back_up(self._store, self._heads, path)

    def _account(self, dataset: str) -> Account:
        """The account of a data set; line 0 never changes, so it is read once."""
        if dataset not in self._accounts:
            with self._store.reading() as connection:
                line = table.first(connection, dataset) or table.first(connection, normal_name(dataset))
                if line is None:
                    raise table.absent(dataset, table.names(connection))
                rotation.check_opening(connection, line, self.key.public)
            self._accounts[dataset] = read_account(line)
        return self._accounts[dataset]

    def _known_as(self, dataset: str) -> str:
        return self._account(dataset).dataset

    def _grains(self, dataset: str) -> int:
        return self._last(dataset).spent

    def _last(self, dataset: str) -> Line:
        name = self._known_as(dataset)
        with self._store.reading() as connection:
            return table.last(connection, name)

    def _receipt(self, connection: Connection, debt: Debt) -> Receipt:
        line = table.at(connection, debt.dataset, debt.position)
        if line is None or line.question != debt.question:
            raise TamperError(f"Line {debt.position} of {debt.dataset!r}, which paid, is not in the ledger.")
        signed_by = rotation.signer(connection, line, self.key.public)
        line.check_seal(signed_by)
        return line.receipt(signed_by)

    def _append(self, connection: Connection, head: Line, **fields: Any) -> Line:
        """Write the line after a head that is genuine."""
        rotation.check_head(connection, head, self.key.public)
        self._check_recorded(head.dataset)
        line = following(head, self.key, **fields)
        table.append(connection, line)
        return line

    def _check_recorded(self, *datasets: str) -> None:
        """Refuse to continue chains that may lack lines: what those charged would be spent again."""
        for dataset in datasets:
            if dataset in self._gaps:
                raise LedgerError(self._gaps[dataset])


def _make_ready(store: Store, key: OwnerKey, *, create: bool, place: str | os.PathLike[str]) -> None:
    """Create the tables, or migrate those of an older version."""
    with store.reading() as connection:
        there, ready = schema.is_there(connection), schema.is_ready(connection, owner=key.public)
    if not there and not create:
        raise LedgerError(absent(place))
    if not ready:
        with store.writing() as connection:
            store.backend.lock_everything(connection)
            schema.prepare(connection, owner=key.public)


def _check_whole(store: Store, heads: Heads) -> None:
    """Compare the ledger with the heads that its owner recorded."""

    def digest_of(dataset: str, index: int) -> str | None:
        with store.reading() as connection:
            line = table.at(connection, dataset, index)
        return None if line is None else line.digest

    heads.check(digest_of)
    with store.reading() as connection:
        outbox.check(connection)


def _check_name(dataset: str, vintage: Vintage | None) -> None:
    """The name of a vintage's budget follows from data set and vintage."""
    if vintage is not None and normal_name(dataset) != normal_name(vintage.dataset):
        raise InputError(f"Expected dataset to be {vintage.dataset!r} for this vintage, got {dataset!r:.80}.")


def _vintages(connection: Connection) -> Iterator[tuple[str, Vintage | None]]:
    """Every data set that has a budget, and the rows that it is for."""
    for name in table.names(connection):
        line = table.first(connection, name)
        yield name, None if line is None else read_account(line).vintage


def _check_same(there: Account, wanted: Account) -> None:
    if there.vintage != wanted.vintage:
        raise LedgerError(
            f"The budget of {there.dataset!r} is for {there.vintage or 'all rows'}; it cannot become one for "
            f"{wanted.vintage or 'all rows'}."
        )
    if not there.same_budget(wanted.filter):
        raise LedgerError(
            f"The budget of {there.dataset!r} is {there.filter.budget} on a {there.filter.name} filter; "
            f"it cannot become {wanted.filter.budget} on a {wanted.filter.name} filter."
        )


__all__ = ["Ledger", "Line", "Quote", "Remaining", "Verification"]
