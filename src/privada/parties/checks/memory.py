"""What a whole reading of the rows found, remembered so that the same rows need not be read twice.

Remembered is the number of rows that count, under a digest of the schema, of where the rows are and how
they are written, of what tells them from those of another moment, and of the version of privada. Whatever
differs, all rows are read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privada.parties.rows import Rows
from privada.privacy.wire import canonical

CHECKS = 1  # to be raised when a check becomes stricter
MOST_ENTRIES = 32
LARGEST = 1 << 16


@dataclass(frozen=True)
class CheckMemory:
    """A file that remembers which rows were read to their end and found right.

    Parameters
    ----------
    path : Path
        The file. Only its owner may read it: it holds exact numbers of rows.
    place : str
        Where the rows are and how they are written, in words.
    """

    path: Path
    place: str

    def recall(self, rows: Rows) -> int | None:
        """How many rows count, if these very rows were checked before under this schema."""
        key = self._key(rows)
        found = self._entries().get(key) if key else None
        return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None

    def remember(self, rows: Rows, size: int, *, identity: str | None) -> None:
        """Remember how many rows count, if they are still those of ``identity``.

        ``identity`` is what told the rows from others before they were read. A file that cannot be written
        is not an error: rows will be read again.
        """
        if identity is None or rows.identity != identity:
            return
        entries = self._entries()
        entries.pop(key := self._key(rows) or "", None)
        kept = dict([*entries.items(), (key, size)][-MOST_ENTRIES:])
        with suppress(OSError):
            _write_private(self.path, json.dumps(kept).encode())

    def _key(self, rows: Rows) -> str | None:
        """A digest of all that the result depends on; None if nothing tells the rows from others."""
        from privada import __version__

        identity = rows.identity
        if identity is None:
            return None
        about = {"checks": CHECKS, "version": __version__, "schema": rows.schema.to_dict()}
        return hashlib.sha256(canonical(about | {"place": self.place, "identity": identity})).hexdigest()

    def _entries(self) -> dict[str, Any]:
        try:
            if self.path.stat().st_size > LARGEST or self.path.stat().st_mode & 0o077:
                return {}
            found = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def _write_private(path: Path, blob: bytes) -> None:
    """Replace a file by one that only its owner may read."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(blob)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


__all__ = ["CheckMemory"]
