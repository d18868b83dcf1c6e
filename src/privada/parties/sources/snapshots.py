"""One snapshot of a PostgreSQL database, read by several processes: each opens it by its name.

The session that exported the snapshot stays open as long as the answer takes. A plain table is divided by
the pages in which its rows lie, so that every row is in one part and parts are in the order of one scan;
a view or a query is one part. PostgreSQL keeps the pages where they are while the session is open, since it
holds a lock on the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from privada.parties.schema import Schema
from privada.parties.sources.databases import Database, SessionRows
from privada.parties.sources.sessions import Session, open_postgresql, write_literal
from privada.parties.sources.source import Source
from privada.parties.tables import Table

PART_PAGES = 4096  # of 8 kB each, of a part
_PAGES = (
    "SELECT pg_relation_size(oid) / current_setting('block_size')::bigint AS pages FROM pg_class "
    "WHERE oid = {table}::regclass AND relkind IN ('r', 'm')"
)


@dataclass(frozen=True, eq=False, repr=False)
class SharedSnapshot(Source):
    """Some rows of an exported snapshot, opened by whoever reads them.

    Attributes
    ----------
    database : Database
        Where it is; the password comes from the environment of the process that reads.
    schema : Schema
    snapshot : str
        PostgreSQL's name of the snapshot.
    pages : (int, int or None), optional
        The first page, and the one after the last. By default all.
    """

    database: Database
    schema: Schema
    snapshot: str
    pages: tuple[int, int | None] | None = None

    def __repr__(self) -> str:
        return "<SharedSnapshot>"

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        """Read in a session of this process."""
        with self._opened() as rows:
            yield from rows.tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        """One whole column."""
        with self._opened() as rows:
            return rows.column(name)

    @contextmanager
    def _opened(self) -> Iterator[SessionRows]:
        with open_postgresql(self.database, self.snapshot) as session:
            yield SessionRows(session, self.database, self.schema, _within(self.pages))


def share_snapshot(session: Session, database: Database, schema: Schema) -> list[Source]:
    """Parts of a session's rows that other processes can read while the session stays open."""
    session.names(database.select(()))  # locks the table, so that its rows stay in their pages
    snapshot = _one(session, schema, "SELECT pg_export_snapshot() AS name")
    return [SharedSnapshot(database, schema, snapshot, pages) for pages in _divide(session, database, schema)]


def _divide(session: Session, database: Database, schema: Schema) -> list[tuple[int, int | None] | None]:
    if database.table is None:
        return [None]
    pages = _one(session, schema, _PAGES.format(table=write_literal(database.quoted_table)))
    starts = range(0, int(pages or 0), PART_PAGES)
    if len(starts) < 2:
        return [None]
    return [*((at, at + PART_PAGES) for at in starts[:-1]), (starts[-1], None)]


def _within(pages: tuple[int, int | None] | None) -> str:
    if pages is None:
        return ""
    first, end = pages
    return f" WHERE ctid >= '({first},0)'::tid" + ("" if end is None else f" AND ctid < '({end},0)'::tid")


def _one(session: Session, schema: Schema, statement: str) -> Any:
    """The only value of a statement; None if it has no row."""
    tables = session.tables(statement, schema, 1)
    return next((value for table in tables for value in next(iter(table.values()))), None)


__all__ = ["PART_PAGES", "SharedSnapshot", "share_snapshot"]
