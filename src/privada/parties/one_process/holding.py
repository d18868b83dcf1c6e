"""Who holds the private side of an estimator's fit, and which ledger pays for it.

======================================  ==================================================================
given to the estimator                  charged to
======================================  ==================================================================
an `Owner`                              that owner's ledger; rows in memory are recognised like arrays
arrays, a `Dataset` with a ledger       the budget of that data set, which has to be open
arrays                                  a budget of this fit alone; the process's own ledger recognises rows
                                        that were used before (`privada.parties.one_process.process_ledger`)
======================================  ==================================================================

With a ledger, every fit asks new questions (`Inquiry.again`): the rows of a data set may be others each time,
as the folds of a cross-validation are, and an answer that is kept for some of them is not one for others.
"""

from __future__ import annotations

import os
import secrets
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, TypeVar

import numpy as np

from privada import _check
from privada.exceptions import InputError, PrivacyLeakWarning, SchemaError
from privada.parties.in_memory import owner_in_memory
from privada.parties.one_process.process_ledger import (
    GivenBudget,
    OpenUse,
    Statement,
    enter_rows,
    join_fit,
    join_statements,
    open_ledger,
)
from privada.parties.owner import Owner
from privada.parties.permissions import Policy
from privada.parties.rows import number_persons
from privada.parties.schema import Schema, is_missing
from privada.parties.sources.memory import read_persons
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import Ledger
from privada.privacy.release import Question

T = TypeVar("T")
USED_BEFORE = (
    "Private rows of this fit were used before in this process: guarantee_ is of this fit alone, spent_ of "
    "everything that they were used for. Give dataset=Dataset(name, ledger=...) to charge one budget, which "
    "is a limit."
)
OURS = ("privada", "contextlib")  # between a warning and whoever called


@dataclass(frozen=True)
class Dataset:
    """The private data set of a fit: who pays for it, and whom it is about.

    Parameters
    ----------
    name : str or sequence of str, default=None
        Name of the budget in ``ledger`` that the fit is charged to; one for each source where there are
        several.
    ledger : Ledger, path or URL, default=None
        Where the fit is charged; by default to a budget of this fit alone, and the process remembers what
        else the rows were used for.
    max_rows : int, default=None
        Protects persons instead of rows: a public bound on the rows of one. ``fit`` then needs ``person``,
        and rows beyond the bound are dropped at random.
    table : str, default=None
        Name of the table that the rows are, for fits without a ledger. A process states what rows have lost
        (``spent_``) only as long as all fits without this name had one table. By naming tables, you declare
        that which of them a row (or person) is in follows from that row (or person) alone, and not from
        others, as places in a sorted file would.

    Examples
    --------
    >>> Dataset("patients", ledger="clinic.db", max_rows=3)
    Dataset(name='patients', ledger='clinic.db', max_rows=3, table=None)
    """

    name: str | Sequence[str] | None = None
    _: KW_ONLY
    ledger: Ledger | str | os.PathLike[str] | None = None
    max_rows: int | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        if self.max_rows is not None:
            _check.count(max_rows=self.max_rows)
        if self.name is not None and self.ledger is None:
            raise InputError(f"Expected ledger= beside name={self.name!r}: which ledger has its budget?")
        if self.table == "":
            raise InputError("Expected table to be a name, got ''.")
        if self.table is not None and self.ledger is not None:
            raise InputError(
                f"Expected no table={self.table!r} beside ledger=: a budget's name is its table's."
            )

    def __sklearn_clone__(self) -> Self:
        """Clones charge the same ledger."""
        return self

    def names(self, count: int) -> tuple[str | None, ...]:
        """The name of each of ``count`` sources."""
        if self.name is None:
            return (None,) * count
        names = (self.name,) if isinstance(self.name, str) else tuple(self.name)
        if len(names) != count:
            raise InputError(
                f"Expected one name of a data set for each of {count} sources, got {len(names)}."
            )
        return names


def read_dataset(dataset: Any) -> Dataset:
    """Check the ``dataset`` of an estimator; by default nothing is declared."""
    if dataset is None:
        return Dataset()
    if not isinstance(dataset, Dataset):
        raise InputError(
            f"Expected dataset to be a Dataset, got {type(dataset).__name__}: "
            'write Dataset("patients", ledger="clinic.db").'
        )
    return dataset


class Holding:
    """An owner for one fit, and what its rows have lost.

    Attributes
    ----------
    owner : Owner
        Answers the fit's questions.
    salt : str
        Of the fit's questions; empty where no ledger was given.
    use : OpenUse or None
        The use of its rows that this process noted.
    """

    def __init__(
        self,
        owner: Owner,
        *,
        use: OpenUse | None = None,
        budget: GivenBudget | None = None,
        salt: str = "",
        opened: bool = False,
    ) -> None:
        self.owner, self.salt = owner, salt
        self.use, self._budget, self._opened = use, budget, opened

    @property
    def is_notable(self) -> bool:
        """Whether it is the second, fourth, eighth, … use of one of the rows in this process."""
        uses = 0 if self.use is None else self.use.uses
        return uses > 1 and uses & (uses - 1) == 0 and self.owner.is_private

    def statement(self) -> Statement:
        """What everything that the rows were used for has cost, now and later."""
        if self.use is not None:
            return Statement([self.use])
        return Statement(budgets=[] if self._budget is None else [self._budget])

    def settle(self) -> None:
        """End the fit: read the charges for the last time, and close a ledger that was opened for it."""
        if self.use is not None:
            self.use.settle()
        elif self._budget is not None:
            self._budget.release_ledger()
        if self._opened:
            self.owner.ledger.close()


@contextmanager
def settling(held: Iterable[Holding]) -> Iterator[None]:
    """Settle the holdings of a fit at its end, however it ends."""
    holdings = tuple(held)
    try:
        yield
    finally:
        for holding in holdings:
            holding.settle()


def state_spent(held: Iterable[Holding]) -> Statement:
    """What all uses of what one fit holds cost together, at most: that of the data set that lost most."""
    holdings = tuple(held)
    join_fit([holding.use for holding in holdings if holding.use is not None])
    return join_statements([holding.statement() for holding in holdings])


def warn_of_earlier_uses(held: Iterable[Holding]) -> None:
    """Say that rows were used before, at their second use and whenever their number of uses has doubled."""
    if not any(holding.is_notable for holding in held):
        return
    frame, levels = sys._getframe(), 1  # the warning names the line that called privada
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in OURS:
        frame, levels = frame.f_back, levels + 1
    warnings.warn(USED_BEFORE, PrivacyLeakWarning, stacklevel=levels)


def require_owner(owner: Any) -> None:
    """Refuse what is not an owner."""
    if not isinstance(owner, Owner):
        raise InputError(f"Expected owner to be an Owner, got {type(owner).__name__}.")


def hold_owner(owner: Owner, budget: Guarantee) -> Holding:
    """Hold an owner for a fit that may cost so much. Rows that it has in memory are noted, too."""
    require_owner(owner)
    of_owner = GivenBudget.of(owner.ledger, owner.dataset, owner.ledger)
    return Holding(owner, use=owner.note_use(of_owner, budget), budget=of_owner)


def hold_rows(
    rows: Any,
    questions: Sequence[Question],
    *,
    schema: Schema,
    budget: Guarantee,
    name: str,
    ledger: Any = None,
    dataset: str | None = None,
    table: str | None = None,
    y: Any = None,
    person: Any = None,
    columns: Sequence[str] | None = None,
    policy: Policy | None = None,
    insecure_seed: int | None = None,
    allow_empty: bool = False,
) -> Holding:
    """Hold rows for one fit.

    Parameters
    ----------
    rows, questions, schema, budget, y, policy, insecure_seed, allow_empty
        As for `owner_in_memory`; ``budget`` is what the fit may cost by itself.
    name : str
        What the rows are called where no ledger is given.
    ledger : Ledger, path or URL, default=None
        Where the fit is charged.
    dataset : str, default=None
        Name of the data set in that ledger.
    table : str, default=None
        Name of the table that the rows are, where no ledger is given.
    person : array, default=None
        Person of each row.
    columns : sequence of str, default=None
        Names of the columns, if they have some.

    Privacy
    -------
    A row is noted as used before anything is charged for it, and stays so if the fit fails.
    """
    more = {
        "y": y,
        "person": person,
        "policy": policy,
        "insecure_seed": insecure_seed,
        "allow_empty": allow_empty,
    }
    noted = {"person": person, "guarantee": budget, "columns": columns, "table": table}
    if ledger is None:
        if dataset is not None:
            raise InputError(f"Expected ledger= beside dataset={dataset!r}: which ledger has its budget?")
        owner = owner_in_memory(rows, questions, schema=schema, budget=budget, dataset=name, **more)
        return Holding(owner, use=enter_rows(rows, ledger=owner.ledger, dataset=owner.dataset, **noted))
    opened = open_ledger(ledger)
    try:
        if not dataset:
            names = ", ".join(opened.datasets()) or "none"
            raise InputError(f"Expected the Dataset to name a budget of its ledger; it has: {names}.")
        keeps = opened.budget(dataset)
        settings = {"schema": schema, "budget": keeps.budget, "accounting": keeps.name, **more}
        owner = Owner(rows, ledger=opened, dataset=dataset, **settings)
        of_ledger = GivenBudget.of(opened, owner.dataset, ledger)
        use = enter_rows(rows, ledger=opened, dataset=owner.dataset, budget=of_ledger, **noted)
    except BaseException:
        if opened is not ledger:
            opened.close()
        raise
    # The rows of a data set may be others each time, so no answer that is kept is one for this fit.
    salt = f"fit {secrets.token_hex(16)}"
    return Holding(owner, use=use, budget=of_ledger, salt=salt, opened=opened is not ledger)


def count_persons(person: Any) -> int:
    """How many persons there are: public where a person is replaced by another."""
    people = read_persons(person)
    if is_missing(people).any():
        raise SchemaError("Expected a person for each row; one is missing.")
    return len(np.unique(number_persons(people, "person")))


__all__ = [
    "Dataset",
    "Holding",
    "count_persons",
    "hold_owner",
    "hold_rows",
    "read_dataset",
    "read_persons",
    "require_owner",
    "settling",
    "state_spent",
    "warn_of_earlier_uses",
]
