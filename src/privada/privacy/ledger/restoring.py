"""Continue a ledger that was put back from a copy: what it lacks is counted as spent.

A restored ledger may lack lines, and the releases that they paid for have left. A chain
is continued by one line of kind ``"restore"``, signed as all others, that says who decided
and what was lost. There are three cases:

- The record of heads (`privada.privacy.ledger.heads`) has later lines than the ledger. It
  says what had been spent by then, so exactly the lost charges are counted.
- There is no record, or only that of the backup, and a person states that nothing was
  written after the copy. Nothing is counted; receipts that show otherwise are refused.
- Nobody knows what was written. All that was left counts as spent, and the budget is closed.

The line takes the number after the last lost one that is known, so that a lost line's
receipt is not taken for that of another line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sqlalchemy import Connection

from privada.exceptions import LedgerError
from privada.privacy.asker import LONGEST_NAME, check_line
from privada.privacy.ledger import rotation
from privada.privacy.ledger.database import table
from privada.privacy.ledger.heads import Heads, Note
from privada.privacy.ledger.lines import RESTORE, Line, following, read_account
from privada.privacy.receipt import OwnerKey, Receipt

Lost = Literal["nothing", "everything"]


def continue_chains(
    connection: Connection,
    heads: Heads,
    key: OwnerKey,
    *,
    by: str,
    lost: Lost | None = None,
    receipts: Iterable[Receipt] = (),
) -> list[Line]:
    """Write the line of kind ``"restore"`` into each chain that may lack lines.

    The caller holds the lock on everything, has verified the receipts, and commits.
    """
    check_line(by=by, longest=LONGEST_NAME)
    names, last = table.names(connection), heads.last()
    for dataset in sorted(set(last) - set(names)):
        if last[dataset].index >= 0:
            raise LedgerError(
                f"This copy is older than the budget of {dataset!r}, of which {last[dataset].index + 1} "
                "lines were written: nothing can continue that chain. Restore a later copy."
            )
    later: dict[str, int] = {}  # the last line of each chain that a receipt was given for
    for receipt in receipts:
        later[receipt.dataset] = max(later.get(receipt.dataset, 0), receipt.index)
    lines = [
        _continue_chain(connection, name, heads, key, by=by, lost=lost, receipt=later.get(name, -1))
        for name in names
    ]
    return [line for line in lines if line is not None]


def _continue_chain(
    connection: Connection,
    dataset: str,
    heads: Heads,
    key: OwnerKey,
    *,
    by: str,
    lost: Lost | None,
    receipt: int,
) -> Line | None:
    """The line that continues one chain; None if the record of its head is complete."""
    head = table.locked_last(connection, dataset)
    rotation.check_head(connection, head, key.public)
    notes = {note.index: note for note in heads.notes() if note.dataset == dataset}
    last = notes[max(notes)] if notes else None
    is_missing = last is not None and last.index >= 0 and not _is_there(connection, last)
    if last is not None and not is_missing and not last.copied and receipt <= head.index:
        return None
    left = _capacity(connection, dataset) - head.spent
    end = max(head.index, receipt, -1 if last is None else last.index)
    if lost == "everything":
        cost, text = left, f"{by}: what was written after line {head.index} is not known; nothing is left"
    elif lost == "nothing":
        if end > head.index:
            raise LedgerError(
                f"Lines up to {end} of {dataset!r} were written, and this copy ends at line {head.index}: "
                "it is not true that nothing was lost."
            )
        cost, text = 0, f"{by}: nothing was written after line {head.index} of the copy"
    elif is_missing and last is not None and receipt <= last.index and not last.copied:
        # sums in the record are running ones: what was spent between the last line that both know and the
        # last recorded one is lost, all of it where they have no line in common
        common = (note for _, note in sorted(notes.items(), reverse=True) if _is_there(connection, note))
        cost = min(last.spent - next((note.spent for note in common), 0), left)
        text = f"{by}: lines up to {last.index} are lost and count as spent"
    else:
        raise LedgerError(
            f"Nobody recorded what was written after line {head.index} of {dataset!r}. Say that nothing was "
            "(--lost nothing), or close the budget: all that is left counts as spent (--lost everything)."
        )
    line = following(
        head,
        key,
        index=end + 1,
        kind=RESTORE,
        cost=cost,
        detail={"text": text, "after": head.index, "lost": lost or "recorded"},
        approver=by,
    )
    table.append(connection, line)
    return line


def _is_there(connection: Connection, note: Note) -> bool:
    """Whether the line of a note is in the ledger."""
    line = table.at(connection, note.dataset, note.index)
    return line is not None and line.digest == note.digest


def _capacity(connection: Connection, dataset: str) -> int:
    first = table.first(connection, dataset)
    assert first is not None  # it has a last line
    return read_account(first).capacity


__all__ = ["Lost", "continue_chains"]
