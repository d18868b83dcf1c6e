"""What is public of the private rows of a fit: their name, the ledger that pays for them, and persons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from privada import _check
from privada.exceptions import InputError
from privada.privacy.ledger import Ledger


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


def read_dataset(given: Any) -> Dataset:
    """What an estimator was given as ``dataset``; nothing is known of it by default."""
    if given is None:
        return Dataset()
    if not isinstance(given, Dataset):
        raise InputError(
            f"Expected dataset to be a Dataset, got {type(given).__name__}: "
            'write Dataset("patients", ledger="clinic.db").'
        )
    return given


__all__ = ["Dataset", "read_dataset"]
