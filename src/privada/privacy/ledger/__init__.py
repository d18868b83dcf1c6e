"""The ledger: an append-only, hash-chained, signed record of what each data set has paid.

::

    ledger     Ledger: all rules of budgets, charges, allowances and decisions
    account    one data set's filter: costs, quotes, what remains, and what each learner may take of it
    chain      lines, their hashes and signatures, and how a new key takes over
    storage    what a place for lines can do; the one in memory
    database   SQLite and PostgreSQL: connections, locks, transactions
    tables     their tables, migrations and queries
    verify     chains, sums, costs, signatures and receipts, checked again; plain JSON for others to check
    recovery   the record of heads, backups, and copies that are continued
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privada._lazy import attach

if TYPE_CHECKING:  # what the lazy names are, for type checkers and editors
    from privada.privacy.ledger.account import Quote as Quote
    from privada.privacy.ledger.account import Remaining as Remaining
    from privada.privacy.ledger.chain import HandOver as HandOver
    from privada.privacy.ledger.chain import Line as Line
    from privada.privacy.ledger.ledger import Ledger as Ledger
    from privada.privacy.ledger.verify import Verification as Verification

_HOMES = {
    "account": ("Quote", "Remaining"),
    "chain": ("HandOver", "Line"),
    "ledger": ("Ledger",),
    "verify": ("Verification",),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
