"""The owner's record of where each chain ended, in a file beside the ledger.

A database can lose its last lines: a write-ahead log that was deleted or damaged,
an older copy that was put in its place. What is left is a valid chain, and only
a record of a later line can show the loss. So after every line its number and
digest are appended to a separate file and synced, and they are compared when the
ledger is opened (`check`). A missing file, or a half-written line of it, proves
nothing and is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from privada.exceptions import LedgerOutageError, TamperError
from privada.privacy.ledger.lines import Line
from privada.privacy.wire import canonical


class Heads:
    """Numbers and digests of the lines that were written; without a path, nothing is remembered."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def remember(self, line: Line) -> None:
        """Append one line's number, digest and sum; it is on disk on return."""
        if self._path is None:
            return
        note = {"dataset": line.dataset, "index": line.index, "digest": line.digest, "spent": line.spent}
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, canonical(note) + b"\n")
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerOutageError(
                f"The ledger's line was written, but not its note in {self._path.name}: {error.strerror}."
            ) from None

    def check(self, digest_of: Callable[[str, int], str | None]) -> None:
        """Raise `TamperError` unless the last recorded line of each chain is in the ledger."""
        for dataset, (index, digest) in self._last().items():
            found = digest_of(dataset, index)
            if found != digest:
                what = "is missing" if found is None else "is another one"
                raise TamperError(
                    f"Line {index} of {dataset!r} was written and {what} now: the ledger was damaged, or "
                    "an older copy was put in its place. Restore the newest copy; nothing is answered from "
                    "this one."
                )

    def _last(self) -> dict[str, tuple[int, str]]:
        """Number and digest of the last line of each data set."""
        last: dict[str, tuple[int, str]] = {}
        for note in self._notes():
            known = last.get(note["dataset"])
            if known is None or note["index"] >= known[0]:
                last[note["dataset"]] = (note["index"], note["digest"])
        return last

    def _notes(self) -> Iterator[dict[str, Any]]:
        if self._path is None or not self._path.is_file():
            return
        with self._path.open("rb") as stream:
            for text in stream:
                note = _read(text)
                if note is not None:
                    yield note


def _read(text: bytes) -> dict[str, Any] | None:
    """One note, None if it was written half."""
    try:
        note = json.loads(text)
        whole = isinstance(note["index"], int) and isinstance(note["dataset"], str)
    except (ValueError, TypeError, KeyError):
        return None
    return note if whole and isinstance(note.get("digest"), str) else None


__all__ = ["Heads"]
