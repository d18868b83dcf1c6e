"""Copies of a ledger, made while it is in use.

A copy has a record of its heads, as the ledger has (`privada.privacy.ledger.heads`), in ``COPY.heads``.

*Why the two agree.* The record is not copied, but written from the copied chains when the copy is complete.
It is neither newer than the copy, which then could not be opened, nor older, which would hide that the copy
lost lines later.

*Why nothing that the ledger itself lost is passed over.* A line is noted after it is committed, so every line
that was noted before the copy began is in the copy, or the ledger has lost it: the notes are read first and
compared with the copy.

*Why a copy is not a second budget.* Each note says that it is a backup's. The ledger may have gone on, so
nothing is charged to the copy before somebody says what it lacks (`privada.privacy.ledger.restoring`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select

from privada.exceptions import LedgerError, TamperError
from privada.privacy.ledger import rotation
from privada.privacy.ledger.database import schema, table
from privada.privacy.ledger.database.backends import PostgreSQL, backend, create_file, sync_folder
from privada.privacy.ledger.database.store import Store
from privada.privacy.ledger.heads import Heads, Note


def back_up(store: Store, heads: Heads, path: str | os.PathLike[str]) -> None:
    """Copy a ledger into a new SQLite file; the name is complete or empty, never half written."""
    target = Path(path)
    record = target.with_name(f"{target.name}.heads")
    if record.exists():
        raise LedgerError(f"{record} exists; a backup never overwrites.")
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise LedgerError(f"{target} exists; a backup never overwrites.") from None
    except OSError as error:
        raise LedgerError(f"The backup {target} cannot be made: {error.strerror}.") from None
    part = target.with_name(target.name + ".partial")
    part.unlink(missing_ok=True)
    create_file(part)
    recorded = heads.last()  # before the copy begins
    try:
        _COPIES.get(type(store.backend), _copy_pages)(store, part)
        _write_heads(part, recorded, record)
        _sync(part)
        part.replace(target)
        sync_folder(target.parent)
    except BaseException:
        for file in (target, part, record):
            file.unlink(missing_ok=True)
        raise


def _write_heads(copy: Path, recorded: Mapping[str, Note], record: Path) -> None:
    """Compare a copy with what was recorded before it was made, and record its own heads."""
    opened = Store(backend(copy))
    try:
        with opened.reading() as connection:
            for note in recorded.values():
                line = table.at(connection, note.dataset, note.index)
                if note.index >= 0 and (line is None or line.digest != note.digest):
                    raise TamperError(
                        f"Line {note.index} of {note.dataset!r} was written and is not in the ledger now: no "
                        "backup was made."
                    )
            notes = [Note.of(table.last(connection, name), copied=True) for name in table.names(connection)]
    finally:
        opened.close()
    create_file(record)
    record.write_bytes(b"".join(note.to_bytes() for note in notes))
    _sync(record)


def _sync(path: Path) -> None:
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _copy_pages(store: Store, part: Path) -> None:
    """SQLite's own online backup."""
    with store.reading() as connection, closing(sqlite3.connect(part)) as target:
        source: Any = connection.connection.driver_connection
        source.backup(target)


def _copy_rows(store: Store, part: Path) -> None:
    """Row by row from any database: chains only grow, so what is read is a valid beginning of each."""
    copy = Store(backend(part))
    try:
        with store.reading() as connection:
            owner = connection.scalar(select(schema.identity.c.owner))
            names = table.names(connection)
            made = rotation.hand_overs(connection)
            unlisted = connection.execute(select(schema.unlisted)).mappings().all()
            owed = connection.execute(select(schema.answers.c.dataset, schema.answers.c.question)).all()
        with copy.writing() as connection:
            schema.prepare(connection, owner=str(owner))
            rotation.copy_successors(made, connection)
        for name in names:
            with copy.writing() as connection:
                connection.execute(insert(schema.datasets).values(dataset=name))
            for rows in table.pages(store, name):
                with copy.writing() as connection:
                    connection.execute(insert(schema.lines), [dict(row) for row in rows])
        for row in unlisted:
            with copy.writing() as connection:
                connection.execute(insert(schema.unlisted), dict(row))
        for dataset, question in owed:  # noted before the lines were read, so each has its line
            _copy_answer(store, copy, dataset, question)
    finally:
        copy.close()


def _copy_answer(store: Store, copy: Store, dataset: str, question: str) -> None:
    at = (schema.answers.c.dataset == dataset) & (schema.answers.c.question == question)
    with store.reading() as connection:
        row = connection.execute(select(schema.answers).where(at)).mappings().one()
    with copy.writing() as connection:
        connection.execute(insert(schema.answers), dict(row))


_COPIES: dict[type, Callable[[Store, Path], None]] = {PostgreSQL: _copy_rows}

__all__ = ["back_up"]
