"""The owner's record of where each chain ended, in a file beside the ledger.

A database can lose its last lines: a write-ahead log that was deleted or damaged,
an older copy that was put in its place. What remains is a valid chain, and only
a record of a later line can show the loss. So after every line its number and
digest are appended to a separate file and synced, and they are compared when the
ledger is opened (`check`). A line of the file that was written half proves nothing
and is ignored.

A chain of which the file says nothing may have lost any number of lines, and so may
a backup, whose file says that it is one. Neither is continued (`find_gaps`) until a
person says what was lost (`privada.privacy.ledger.restoring`). The beginning of a chain
is noted before its line 0 is committed, so that a crash between the two does not make a
new chain look like a restored one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from privada.exceptions import LedgerOutageError, TamperError
from privada.privacy.ledger.lines import Line
from privada.privacy.wire import canonical

_BEGUN = -1  # the number in the note of a chain that is about to begin


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
        """Read one line of the file, None if it was written half."""
        try:
            plain = json.loads(text)
            note = cls(
                dataset=plain["dataset"],
                index=plain["index"],
                digest=plain["digest"],
                spent=plain.get("spent", 0),
                copied=plain.get("copied", False),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        texts, numbers = (note.dataset, note.digest), (note.index, note.spent)
        valid = all(isinstance(one, str) for one in texts) and all(type(one) is int for one in numbers)
        return note if valid and type(note.copied) is bool else None


class Heads:
    """Numbers and digests of the lines that were written; without a path, nothing is remembered."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def begin(self, dataset: str) -> None:
        """Note that a chain begins, before its line 0 is committed."""
        self._append(Note(dataset=dataset, index=_BEGUN, digest="", spent=0))

    def remember(self, line: Line) -> None:
        """Append one line's number, digest and sum; it is on disk on return."""
        self._append(Note.of(line))

    def _append(self, note: Note) -> None:
        if self.path is None:
            return
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

    def check(self, digest_of: Callable[[str, int], str | None]) -> None:
        """Raise `TamperError` unless the last recorded line of each chain is in the ledger."""
        for dataset, note in self.last().items():
            digest = digest_of(dataset, note.index) if note.index > _BEGUN else note.digest
            if digest != note.digest:
                what = "is missing" if digest is None else "is another one"
                raise TamperError(
                    f"Line {note.index} of {dataset!r} was written and {what} now: the ledger was damaged, "
                    "or an older copy was put in its place. Restore the newest copy; nothing is answered "
                    "from this one until what it lacks is counted as spent: privada ledger restore."
                )

    def find_gaps(self, datasets: Iterable[str]) -> dict[str, str]:
        """For each chain of which lines may be missing, why; none if the record is complete."""
        gaps: dict[str, str] = {}
        if self.path is None:
            return gaps
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
        last: dict[str, Note] = {}
        for note in self.notes():
            if note.dataset not in last or note.index >= last[note.dataset].index:
                last[note.dataset] = note
        return last

    def notes(self) -> Iterator[Note]:
        """Everything in the file, in the order in which it was written."""
        if self.path is None or not self.path.is_file():
            return
        with self.path.open("rb") as stream:
            for text in stream:
                note = Note.from_bytes(text)
                if note is not None:
                    yield note


def heads_of(place: str, key: Path) -> Path | None:
    """Where commands record the heads of a ledger at a URL: beside its key; else beside the file."""
    return key.with_name("ledger.heads") if "://" in place else None


__all__ = ["Heads", "Note", "heads_of"]
