"""The ledger: an append-only, hash-chained, signed record of what each data set has paid.

::

    book       Ledger: what callers use
    account    one data set's filter, its costs, quotes and what remains
    allowances what each learner has used of its allowance
    grants     what each learner was allowed, by whom and when
    notes      lines that cost nothing: decisions, refusals, disclosures
    outbox     what each charged question is owed, and the release once it was drawn
    lines      lines, their hashes and signatures
    verify     chains, sums, costs, signatures and receipts, checked again
    export     plain JSON that dp-accounting alone can recompute
    table      the lines table: read the head, append, walk
    schema     its columns, triggers and migrations
    store      connections, transactions, forks
    backends   SQLite and PostgreSQL
    backup     a consistent copy
    rotation   a new key takes over
    heads      the last line of each chain, remembered elsewhere
    restoring  a copy is continued; what it lacks counts as spent
    names      one name, one budget
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privada._lazy import attach

if TYPE_CHECKING:  # what the lazy names are, for type checkers and editors
    from privada.privacy.ledger.book import Ledger as Ledger
    from privada.privacy.ledger.book import Line as Line
    from privada.privacy.ledger.book import Quote as Quote
    from privada.privacy.ledger.book import Remaining as Remaining
    from privada.privacy.ledger.book import Verification as Verification
    from privada.privacy.ledger.rotation import HandOver as HandOver

_HOMES = {
    "book": ("Ledger", "Line", "Quote", "Remaining", "Verification"),
    "rotation": ("HandOver",),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
