r"""Names of data sets: one name, one budget.

A budget belongs to a name, so a name that merely looks like another must not
open a second one. Names are normalised before they are used (Unicode NFKC, no
spaces at the ends, single spaces inside), and a budget is not opened under a
name that differs from a known one in upper and lower case only.

>>> normal_name(" patients \u00a0 2024")
'patients 2024'
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from privada.exceptions import LedgerError


def normal_name(name: str) -> str:
    """The name under which a data set is known."""
    return " ".join(unicodedata.normalize("NFKC", name).split())


def check_distinct(name: str, known: Iterable[str]) -> None:
    """Raise `LedgerError` if a new name could be taken for a known one."""
    for other in known:
        if is_alike(other, name):
            raise LedgerError(
                f"The ledger has a budget of {other!r}; one of {name!r} would be taken for it. "
                "Use the name that is there: a second budget for the same rows would promise nothing."
            )


def is_alike(name: str, other: str) -> bool:
    """Whether one name could be taken for the other."""
    return _alike(name) == _alike(other)


def _alike(name: str) -> str:
    return normal_name(name).casefold()


__all__ = ["check_distinct", "is_alike", "normal_name"]
