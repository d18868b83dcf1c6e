"""Which ledger pays for the private rows of a fit: what a caller declares, and the budget that was given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self

from privada import _check
from privada.exceptions import InputError, PrivadaError
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import Ledger
from privada.privacy.ledger.recovery import heads_of
from privada.privacy.receipt import OwnerKey

KEY_OF_URL = "PRIVADA_LEDGER_KEY"  # environment: path of the key that a ledger at a URL was created with


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


@dataclass(eq=False)
class GivenBudget:
    """A budget that others may charge, too: what it states is read from its ledger whenever it is asked for.

    Attributes
    ----------
    identity : str
        Of the budget: its opening line, which no other budget has.
    place : str or None
        Path or URL, by which it can be read later and in other processes.
    stated : Guarantee or None
        What the ledger stated when it could last be read; None before the first charge.
    """

    dataset: str
    identity: str
    place: str | None = None
    ledger: Ledger | None = None
    stated: Guarantee | None = None

    @classmethod
    def of(cls, ledger: Ledger, dataset: str, given: Any) -> GivenBudget:
        """The budget of a data set on an open ledger, which was given as itself or as a path or URL."""
        first = next(ledger.lines(dataset))
        place = None if isinstance(given, Ledger) else os.fspath(given)
        return cls(dataset, first.signature, place, ledger)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "ledger": None}

    def release_ledger(self) -> None:
        """Read it for the last time from a ledger that is closed then, and from its place later."""
        self.read()
        if self.place is not None:
            self.ledger = None

    def read(self) -> Guarantee | None:
        """What everything that was charged to it has cost; as it was last known if it cannot be read."""
        if self.ledger is None and self.place is None:
            return self.stated
        with suppress(PrivadaError, OSError):
            if self.ledger is not None:
                self.stated = self.ledger.spent(self.dataset)
                return self.stated
            with open_ledger(self.place) as ledger:
                if next(ledger.lines(self.dataset)).signature == self.identity:  # else it is another ledger
                    self.stated = ledger.spent(self.dataset)
        return self.stated


def open_ledger(ledger: Any) -> Ledger:
    """A ledger that was given as itself, as a path (its key is ``PATH.key``) or as a URL.

    The key of a ledger at a URL is in the file that the environment variable ``PRIVADA_LEDGER_KEY`` names,
    and its heads are recorded in ``ledger.heads`` beside that. A ledger that does not exist is never created:
    its budget has to be opened first.
    """
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, (str, os.PathLike)):
        raise InputError(f"Expected ledger to be a Ledger, a path or a URL, got {type(ledger).__name__}.")
    place = os.fspath(ledger)
    if "://" not in place or place.startswith("sqlite:///"):
        key = Path(place.removeprefix("sqlite:///") + ".key")
        return Ledger.open(place, OwnerKey.load(key), create=False)
    if not (path := os.environ.get(KEY_OF_URL)):
        raise InputError(f"Expected {KEY_OF_URL} to name the key file of the ledger at a URL.")
    return Ledger.open(place, OwnerKey.load(path), create=False, heads=heads_of(place, Path(path)))


__all__ = ["Dataset", "GivenBudget", "open_ledger", "read_dataset"]
