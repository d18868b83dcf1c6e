"""What a ledger may have lost, and how it is continued: the record of heads, backups, and restored copies.

*Heads.* A database can lose its last lines: a write-ahead log that was deleted or damaged, an older copy that
was put in its place. What remains is a valid chain, and only a record of a later line can show the loss. So
after every line its number and digest are appended to a separate file and synced (`Heads.remember`), and they
are compared when the ledger is opened (`Heads.check`). A line of the file that was only half written proves
nothing and is ignored. A chain of which the file says nothing may have lost any number of lines, and so may a
backup, whose file says that it is one. Neither is continued (`Heads.find_gaps`) until a person says what was
lost. The beginning of a chain is noted before its line 0 is committed, so that a crash between the two does
not make a new chain look like a restored one.

*Backups.* A backup has a record of its heads, too, in ``COPY.heads``. It is not copied, but written from the
copied chains when the copy is complete. So it is neither newer than the copy, which then could not be opened,
nor older, which would hide that the copy lost lines later. A line is noted after it is committed, so every
line that was noted before the copy began is in the copy, or the ledger has lost it: the notes are read first
and compared with the copy. A copy is not a second budget: the ledger may have gone on, so nothing is charged
to the copy before somebody says what it lacks.

*Restored copies.* A restored ledger may lack lines, and the releases that they paid for have left. A chain is
continued by one line of kind ``"restore"``, signed as all others, that says who decided and what was lost:

- The record of heads has later lines than the ledger. It says what had been spent by then, so exactly the
  lost charges are counted.
- There is no record, or only that of the backup, and a person states that nothing was written after the copy.
  Nothing is counted; receipts that show otherwise are refused.
- Nobody knows what was written. All that was left counts as spent, and the budget is closed.

The line takes the number after the last lost one that is known, so that a lost line's receipt is not taken
for that of another line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from privada.exceptions import LedgerError, LedgerOutageError, TamperError
from privada.privacy.asker import LONGEST_NAME, check_line
from privada.privacy.ledger.account import read_account
from privada.privacy.ledger.chain import RESTORE, Line, check_head, following
from privada.privacy.ledger.storage import Storage, Transaction
from privada.privacy.receipt import OwnerKey, Receipt
from privada.privacy.wire import canonical

Lost = Literal["nothing", "everything"]
_BEGUN = -1  # the number in the note of a chain that is about to begin
_NOTE_TYPES = {"dataset": str, "index": int, "digest": str, "spent": int, "copied": bool}


@dataclass(frozen=True, kw_only=True)
class Note:
    """What the file says of one line; ``copied`` if it was the last one when a backup was made."""

    dataset: str
    index: int
    digest: str
    spent: int
    copied: bool = False

    @classmethod
    def of(cls, line: Line, *, copied: bool = False) -> Note:
        """The note of a line."""
        return cls(
            dataset=line.dataset, index=line.index, digest=line.digest, spent=line.spent, copied=copied
        )

    def to_bytes(self) -> bytes:
        """One line of the file."""
        plain = {"dataset": self.dataset, "index": self.index, "digest": self.digest, "spent": self.spent}
        return canonical(plain | ({"copied": True} if self.copied else {})) + b"\n"

    @classmethod
    def from_bytes(cls, text: bytes) -> Note | None:
        """Read one line of the file, None if only half of it was written."""
        try:
            plain = {"spent": 0, "copied": False} | json.loads(text)
            values = {name: plain[name] for name in _NOTE_TYPES}
        except (ValueError, TypeError, KeyError):
            return None
        is_valid = all(type(values[name]) is kind for name, kind in _NOTE_TYPES.items())
        return cls(**values) if is_valid else None

    def is_in(self, tables: Transaction) -> bool:
        """Whether the line of the note is in the ledger."""
        line = tables.line(self.dataset, self.index)
        return line is not None and line.digest == self.digest


class Heads:
    """Numbers and digests of the lines that were written, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, dataset: str) -> None:
        """Note that a chain begins, before its line 0 is committed."""
        self._append(Note(dataset=dataset, index=_BEGUN, digest="", spent=0))

    def remember(self, line: Line) -> None:
        """Append one line's number, digest and sum; it is on disk on return."""
        self._append(Note.of(line))

    def _append(self, note: Note) -> None:
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, note.to_bytes())
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerOutageError(
                f"The ledger's line was written, but not its note in {self.path.name}: {error.strerror}."
            ) from None

    def check(self, storage: Storage) -> None:
        """Raise `TamperError` unless the last recorded line of each chain is in the ledger."""
        for note in self.last().values():
            with storage.reading() as tables:
                line = None if note.index == _BEGUN else tables.line(note.dataset, note.index)
            if note.index > _BEGUN and (line is None or line.digest != note.digest):
                what = "is missing" if line is None else "is another one"
                raise TamperError(
                    f"Line {note.index} of {note.dataset!r} was written and {what} now: the ledger was "
                    "damaged, or an older copy was put in its place. Restore the newest copy; nothing is "
                    "answered from this one until what it lacks is counted as spent: privada ledger restore."
                )

    def find_gaps(self, datasets: Iterable[str]) -> dict[str, str]:
        """For each chain of which lines may be missing, why; none if the record is complete."""
        gaps: dict[str, str] = {}
        last = self.last()
        for dataset in datasets:
            note = last.get(dataset)
            if note is None:
                gaps[dataset] = (
                    f"The ledger has lines of {dataset!r}, but {self.path.name} does not say where they end: "
                    "later ones may be missing, and what they charged would be spent again. Put that file "
                    "back beside the ledger, or say what is missing: privada ledger restore."
                )
            elif note.copied:
                gaps[dataset] = (
                    f"The ledger is a backup that ends at line {note.index} of {dataset!r}: later lines may "
                    "be missing, and what they charged would be spent again. Say what is missing: "
                    "privada ledger restore."
                )
        return gaps

    def last(self) -> dict[str, Note]:
        """The note of the last line of each data set."""
        return _find_last(self.notes())

    def notes(self) -> Iterator[Note]:
        """Everything in the file, in the order in which it was written."""
        if not self.path.is_file():
            return
        with self.path.open("rb") as stream:
            for text in stream:
                note = Note.from_bytes(text)
                if note is not None:
                    yield note


def _find_last(notes: Iterable[Note]) -> dict[str, Note]:
    last: dict[str, Note] = {}
    for note in notes:
        if note.dataset not in last or note.index >= last[note.dataset].index:
            last[note.dataset] = note
    return last


def heads_of(place: str, key: Path) -> Path | None:
    """Where commands record the heads of a ledger at a URL: beside its key; else beside the file."""
    return key.with_name("ledger.heads") if "://" in place else None


def back_up(storage: Storage, heads: Heads | None, path: str | os.PathLike[str]) -> None:
    """Copy a ledger into a new SQLite file; the name is complete or empty, never half written."""
    from privada.privacy.ledger.database import create_file, open_database, sync_folder

    target = Path(path)
    record, part = target.with_name(f"{target.name}.heads"), target.with_name(f"{target.name}.partial")
    if record.exists():
        raise LedgerError(f"{record} exists; a backup never overwrites.")
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise LedgerError(f"{target} exists; a backup never overwrites.") from None
    except OSError as error:
        raise LedgerError(f"The backup {target} cannot be made: {error.strerror}.") from None
    part.unlink(missing_ok=True)
    create_file(part)
    recorded = {} if heads is None else heads.last()  # before the copy begins
    try:
        with_pages = storage.copy_pages(part)
        copy = open_database(part)
        try:
            if not with_pages:
                _copy_lines(storage, copy)
            with copy.reading() as tables:
                for note in recorded.values():
                    if note.index > _BEGUN and not note.is_in(tables):
                        raise TamperError(
                            f"Line {note.index} of {note.dataset!r} was written and is not in the ledger "
                            "now: no backup was made."
                        )
                notes = [Note.of(tables.last(name), copied=True) for name in tables.names()]
        finally:
            copy.close()
        create_file(record)
        record.write_bytes(b"".join(note.to_bytes() for note in notes))
        for file in (record, part):
            with file.open("rb+") as stream:
                os.fsync(stream.fileno())
        part.replace(target)
        sync_folder(target.parent)
    except BaseException:
        for file in (target, part, record):
            file.unlink(missing_ok=True)
        raise


def _copy_lines(storage: Storage, copy: Storage) -> None:
    """Line by line from any storage: chains only grow, so what is read is a valid beginning of each."""
    with storage.reading() as tables:
        owner, hand_overs, names = tables.owner(), tables.hand_overs(), tables.names()
        unlisted, debts = tables.unlisted(), tables.debts()
    copy.prepare(owner, create=True)
    with copy.writing() as target:
        for statement in hand_overs:
            target.add_hand_over(statement)
    for name in names:
        after = -1
        while True:
            with storage.reading() as tables:
                page = tables.page(name, after)
            if not page:
                break
            with copy.writing() as target:
                if after < 0:
                    target.begin(page[0])
                target.append(*(page if after >= 0 else page[1:]))
            after = page[-1].index
    with copy.writing() as target:
        for dataset, day, number in unlisted:
            target.count_unlisted(dataset, day, number)
    for earlier in debts:  # noted before the lines were read, so each has its line
        with storage.reading() as tables:
            debt = tables.debt(earlier.dataset, earlier.question)
            release = tables.release(earlier.dataset, earlier.question)
        if debt is not None:
            with copy.writing() as target:
                target.owe(debt, release)


def continue_chains(
    tables: Transaction,
    notes: Sequence[Note],
    key: OwnerKey,
    *,
    by: str,
    lost: Lost | None = None,
    receipts: Iterable[Receipt] = (),
) -> list[Line]:
    """Write the line of kind ``"restore"`` into each chain that may lack lines.

    The caller locks everything, has verified the receipts, and commits; the notes are the record of heads.
    """
    check_line(by=by, longest=LONGEST_NAME)
    names, last = tables.names(), _find_last(notes)
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
        _continue_chain(tables, name, notes, key, by=by, lost=lost, receipt=later.get(name, -1))
        for name in names
    ]
    return [line for line in lines if line is not None]


def _continue_chain(
    tables: Transaction,
    dataset: str,
    all_notes: Sequence[Note],
    key: OwnerKey,
    *,
    by: str,
    lost: Lost | None,
    receipt: int,
) -> Line | None:
    """The line that continues one chain; None if the record of its head is complete."""
    head, first = tables.lock(dataset), tables.line(dataset, 0)
    check_head(tables, head, key.public)
    notes = {note.index: note for note in all_notes if note.dataset == dataset}
    last = notes[max(notes)] if notes else None
    is_missing = last is not None and last.index >= 0 and not last.is_in(tables)
    if last is not None and not is_missing and not last.copied and receipt <= head.index:
        return None
    assert first is not None  # it has a last line
    unspent = read_account(first).capacity - head.spent
    end = max(head.index, receipt, -1 if last is None else last.index)
    if lost == "everything":
        cost = unspent
        text = f"{by}: what was written after line {head.index} is not known; nothing is left"
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
        common = (note for _, note in sorted(notes.items(), reverse=True) if note.is_in(tables))
        cost = min(last.spent - next((note.spent for note in common), 0), unspent)
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
    tables.append(line)
    return line


__all__ = ["Heads", "Lost", "Note", "back_up", "continue_chains", "heads_of"]
