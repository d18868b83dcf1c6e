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
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self

from sqlalchemy import Connection

from privada.exceptions import BudgetError, InputError, LedgerError, PrivadaError, TamperError
from privada.privacy.filters import Filter, open_filter
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import schema, table
from privada.privacy.ledger.account import Account, Quote, Remaining
from privada.privacy.ledger.backends import absent, backend
from privada.privacy.ledger.backup import back_up
from privada.privacy.ledger.export import FORMAT, export_account
from privada.privacy.ledger.lines import BUDGET, CHARGE, Line, following, opening, read_account
from privada.privacy.ledger.store import Store
from privada.privacy.ledger.verify import Verification, verify
from privada.privacy.price import Price
from privada.privacy.receipt import OwnerKey, Receipt, canonical


class Ledger:
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
    is fixed when its budget is opened (`privada.privacy.filters` names the
    theorem of each: Rogers et al. 2016 for ε, Feldman and Zrnic 2021 for ρ and
    for the Rényi divergence at one order, Smith and Thakurta 2022 for μ²), and
    a charge that would pass its capacity is refused. The sum is read and
    written under one lock, in whole numbers, and is on disk before `charge`
    returns: whoever opens rows after that has paid. Nothing is refunded.

    Price, relation and unit of a question are checked against the budget: a
    price under add/remove is converted for a replace-one budget, what cannot
    be converted is refused.
    """

    def __init__(self, store: Store, key: OwnerKey) -> None:
        self.key = key
        self._store = store
        self._accounts: dict[str, Account] = {}

    @classmethod
    def open(cls, place: str | os.PathLike[str], key: OwnerKey, *, create: bool = True) -> Self:
        """Open a ledger, making it if there is none and ``create`` allows it.

        Parameters
        ----------
        place : str or path
            A file, ``sqlite:///PATH``, ``postgresql+psycopg://…``, or
            ``":memory:"`` for a ledger that ends with this process.
        key : OwnerKey
            The key that the ledger was made with.
        create : bool
            Whether a ledger that is not there is made. An owner at work says
            no: a lost or mistyped ledger must not begin its budget anew.

        Raises
        ------
        LedgerError
            The ledger is not there, is not a ledger, is of another owner, or of a newer version.
        """
        if not isinstance(key, OwnerKey):
            raise LedgerError(f"A ledger needs its owner's key (an OwnerKey), got {type(key).__name__}.")
        store = Store(backend(place, create=create))
        try:
            with store.reading() as connection:
                ready = schema.is_ready(connection, owner=key.public)
            if not ready and not create:
                raise LedgerError(absent(place))
            if not ready:
                with store.writing() as connection:
                    store.backend.lock_everything(connection)
                    schema.prepare(connection, owner=key.public)
        except BaseException:
            store.close()
            raise
        return cls(store, key)

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

    def __reduce__(self) -> NoReturn:
        raise TypeError("A ledger cannot be pickled or copied; open it again where it is needed.")

    def open_budget(self, dataset: str, budget: Guarantee, accounting: str | None = None) -> Receipt:
        """Open the budget of a data set, once and for all.

        Parameters
        ----------
        dataset : str
            The identity of the data set. It belongs to the data, not to a
            file: a refreshed or moved data set keeps it, and its budget.
        budget : Guarantee
            What may be spent in all; its relation and unit become the ledger's.
        accounting : str, optional
            The filter; by default ``"pure"``, ``"zcdp"`` or ``"renyi"`` by the
            kind of the budget (``"gaussian"`` is the other choice for (ε, δ)).

        Returns
        -------
        Receipt
            Of line 0. The same call again returns the same receipt.
        """
        _words(dataset=dataset, longest=200)
        if not isinstance(budget, Guarantee):
            raise InputError(f"Expected budget to be a Guarantee, got {type(budget).__name__}.")
        account = Account.opened(dataset, open_filter(budget, accounting=accounting))
        with self._store.writing() as connection:
            self._store.backend.lock_everything(connection)
            line = table.first(connection, dataset)
            if line is None:
                line = opening(dataset, account, self.key)
                table.begin(connection, line)
        there = read_account(line)
        if not there.same_budget(account.filter):
            raise LedgerError(
                f"The budget of {dataset!r} is {there.filter.budget} on a {there.filter.name} filter; "
                f"it cannot become {budget} on a {account.filter.name} filter."
            )
        return line.receipt(self.key.public)

    def price(self, dataset: str, price: Price) -> Quote:
        """What a charge would take now. Nothing is charged, written or locked."""
        return self.price_all(dataset, [price])

    def price_all(self, dataset: str, prices: Sequence[Price]) -> Quote:
        """What charges one after another would take together now. Nothing is charged, written or locked."""
        account = self._account(dataset)
        cost = sum(account.cost(account.converted(price)) for price in prices)
        return account.quote(*prices, cost=cost, spent=self._grains(dataset))

    def charge(
        self, dataset: str, price: Price, *, question: str, purpose: str = "", once: bool = False
    ) -> Receipt:
        """Charge a price. The line is on disk before this returns.

        Parameters
        ----------
        dataset : str
            The data set.
        price : Price
            What the question costs.
        question : str
            Digest of the question, in hexadecimal.
        purpose : str
            What the owner wants to remember of it.
        once : bool
            Refuse if the data set was charged for this purpose before.

        Returns
        -------
        Receipt
            The owner's signed word, for whoever asked.

        Raises
        ------
        BudgetError
            The budget is absent or too small, or ``once`` was before; nothing was charged.
        RelationError
            The price says nothing under the budget's relation or unit; nothing was charged.
        """
        _digest(question=question)
        _words(purpose=purpose, longest=1000, empty=True)
        account = self._account(dataset)
        charged = account.converted(price)
        cost, detail = account.cost(charged), json.loads(canonical(charged.to_dict()))
        with self._store.writing() as connection:
            head = table.locked_last(connection, dataset)
            if once and table.has_purpose(connection, dataset, purpose):
                raise BudgetError(
                    f"{dataset!r} was charged before for '{purpose}'. Nothing was charged; "
                    "another asking has another seed or salt."
                )
            granted = head.spent + cost <= account.capacity
            if granted:
                line = self._append(
                    connection,
                    head,
                    kind=CHARGE,
                    cost=cost,
                    detail=detail,
                    question=question,
                    purpose=purpose,
                )
        if not granted:  # advice takes its time, and nobody should wait for it
            raise account.quote(price, cost=cost, spent=head.spent).refusal()
        return line.receipt(self.key.public)

    def note(self, dataset: str, kind: str = "disclosure", *, text: str, question: str = "") -> Receipt:
        """Write a line that costs nothing: what it records is *not* differentially private.

        Parameters
        ----------
        dataset : str
            The data set.
        kind : str
            One lower-case word, by default ``"disclosure"``: rows that went to a named curator.
        text : str
            What happened, in words. Never a row.
        question : str, optional
            Digest of the question.
        """
        if not re.fullmatch(r"[a-z]{1,40}", str(kind)) or kind in (BUDGET, CHARGE):
            raise InputError(
                f"Expected kind to be a lower-case word other than budget and charge, got {kind!r}."
            )
        _words(text=text, longest=10_000)
        if question:
            _digest(question=question)
        detail = {"text": text, "guarantee": "not differentially private"}
        with self._store.writing() as connection:
            head = table.locked_last(connection, dataset)
            line = self._append(connection, head, kind=kind, cost=0, detail=detail, question=question)
        return line.receipt(self.key.public)

    def spent(self, dataset: str) -> Guarantee | None:
        """The guarantee that all charges amount to together, None before the first."""
        return self._account(dataset).filter.guarantee(self._grains(dataset))

    def remaining(self, dataset: str) -> Remaining:
        """What is left: a share, and the largest single question that still fits."""
        return self._account(dataset).remaining(self._grains(dataset))

    def budget(self, dataset: str) -> Filter:
        """The filter that keeps the budget of a data set."""
        return self._account(dataset).filter

    def datasets(self) -> tuple[str, ...]:
        """The data sets that have a budget, in alphabetical order."""
        with self._store.reading() as connection:
            return tuple(table.names(connection))

    def lines(self, dataset: str) -> Iterator[Line]:
        """All lines of a data set in order, line 0 first."""
        self._account(dataset)
        return table.every(self._store, dataset)

    def verify(self, receipts: Iterable[Receipt] = ()) -> Verification:
        """Check everything again: chains, sums, costs, signatures, and the receipts that others hold.

        An edited line no longer fits its digest, a chain that was written
        anew lacks the owner's signature or disagrees with a receipt, and a cut
        tail lacks the line of a receipt. Without receipts a cut tail, or a
        chain rewritten with the owner's own key, cannot be told from the truth.

        Raises
        ------
        TamperError
            Names the first line that does not hold.
        """
        with self._store.reading() as connection:
            names = sorted({*table.names(connection), *table.names_in_lines(connection)})
        chains = {name: table.every(self._store, name) for name in names}
        try:
            return verify(chains, receipts, public=self.key.public)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, PrivadaError):
                raise
            raise TamperError(f"A line is damaged and cannot be read ({type(error).__name__}).") from None

    def export(self, dataset: str | None = None) -> dict[str, Any]:
        """Everything in plain JSON, with the recipe by which dp-accounting alone comes to the same sums."""
        names = self.datasets() if dataset is None else (dataset,)
        return {
            "format": FORMAT,
            "owner": self.key.public,
            "datasets": {name: export_account(self._account(name), self.lines(name)) for name in names},
        }

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a consistent copy into a new SQLite file, which opens and verifies as a ledger.

        The ledger may be in use meanwhile. A restored backup lacks the lines
        after it: verify it with the receipts that others hold before using it.
        """
        back_up(self._store, path)

    def _account(self, dataset: str) -> Account:
        """The account of a data set; line 0 never changes, so it is read once."""
        if dataset not in self._accounts:
            with self._store.reading() as connection:
                line = table.first(connection, dataset)
            if line is None:
                raise table.absent(dataset)
            line.check_seal(self.key.public)
            self._accounts[dataset] = read_account(line)
        return self._accounts[dataset]

    def _grains(self, dataset: str) -> int:
        with self._store.reading() as connection:
            return table.last(connection, dataset).spent

    def _append(self, connection: Connection, head: Line, **fields: Any) -> Line:
        """Write the line after a head that is genuine."""
        head.check_seal(self.key.public)
        line = following(head, self.key, **fields)
        table.append(connection, line)
        return line


def _words(*, longest: int, empty: bool = False, **named: Any) -> None:
    """Check text that is stored: it is not empty, has a largest length, and every database can keep it."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or len(value) > longest or not (value.strip() or (empty and not value)):
        raise InputError(f"Expected {name} to be text of at most {longest} characters, got {value!r:.80}.")
    if "\0" in value or value != value.encode("utf-8", "replace").decode("utf-8"):
        raise InputError(f"Expected {name} to be plain Unicode text, got {value!r:.80}.")


def _digest(**named: Any) -> None:
    ((name, value),) = named.items()
    if not isinstance(value, str) or not re.fullmatch(r"(?:[0-9a-f]{2}){16,64}", value):
        raise InputError(f"Expected {name} to be a digest in lower-case hexadecimal, got {value!r:.80}.")


__all__ = ["Ledger", "Line", "Quote", "Remaining", "Verification"]
