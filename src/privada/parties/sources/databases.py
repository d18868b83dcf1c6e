"""Rows in a database: a table or a query, read in batches from one snapshot that cannot write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.parties.schema import Schema
from privada.parties.sources.files import are_settled, identify_files
from privada.parties.sources.sessions import ENGINES, Session
from privada.parties.sources.source import Source
from privada.parties.tables import Table, check_names

COLUMN_ROWS = 65_536
SECRETS = frozenset({"password", "sslpassword", "passwd", "secret", "token"})


@dataclass(frozen=True, kw_only=True)
class Database:
    """Where rows are in a database.

    Parameters
    ----------
    url : str
        ``postgresql://user@host/database``, ``sqlite:///file.sqlite`` or ``duckdb:///file.duckdb``. It
        holds no password: PostgreSQL takes that from PGPASSWORD or from the file that PGPASSFILE names.
    table : str, optional
        A table or view, perhaps with its schema: "patients" or "clinic.patients".
    query : str, optional
        Instead of a table, a SELECT.
    """

    url: str
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise InputError("Expected either table or query beside database.")
        if self.query is not None and ";" in self.query.rstrip().rstrip(";"):
            raise InputError("Expected query to be one SELECT.")
        check_url(self.url, tuple(ENGINES))

    @property
    def engine(self) -> str:
        """The kind of database: the scheme of the URL."""
        return urlsplit(self.url).scheme

    @property
    def file(self) -> Path | None:
        """The file of an embedded database."""
        return None if self.engine.startswith("postgres") else Path(urlsplit(self.url).path[1:])

    def relative_to(self, home: Path) -> Database:
        """The same, with the path of its file, if it has one, taken from a folder."""
        if self.file is None:
            return self
        return Database(url=f"{self.engine}:///{home / self.file}", table=self.table, query=self.query)

    def seen_from(self, home: Path) -> Database:
        """The same, with the path of its file, if it has one, as seen from a folder."""
        if self.file is None:
            return self
        path = os.path.relpath(self.file.resolve(), home)
        return Database(url=f"{self.engine}:///{path}", table=self.table, query=self.query)

    @property
    def quoted_table(self) -> str:
        """The table's name, as a statement has it."""
        return ".".join(_quoted(part) for part in (self.table or "").split("."))

    def select(self, names: tuple[str, ...]) -> str:
        """The statement that reads some columns."""
        wanted = ", ".join(_quoted(name) for name in names) or "*"
        if self.table is not None:
            source = self.quoted_table
        else:
            source = f"({(self.query or '').rstrip().rstrip(';')}\n) AS privada_rows"  # a comment may end it
        return f"SELECT {wanted} FROM {source}"  # noqa: S608 - the owner's own names, quoted


def check_url(url: str, schemes: tuple[str, ...]) -> None:
    """Refuse a URL of another kind, and one that holds a secret."""
    parts = urlsplit(url)
    if parts.scheme not in schemes:
        raise InputError(f"Expected a URL that begins with {', '.join(schemes)}, got {parts.scheme!r}.")
    if parts.password is not None or SECRETS & {key.lower() for key, _ in parse_qsl(parts.query)}:
        raise InputError("The URL holds a password; a secret belongs in the environment, not in a file.")


def _quoted(name: str) -> str:
    if "\0" in name or not name:
        raise InputError("Expected names of tables and columns to be text.")
    return '"' + name.replace('"', '""') + '"'


class DatabaseSource(Source):
    """Rows of a database. Every reading is of one snapshot; an answer reads all from the same one.

    Privacy
    -------
    The session can only read. Rows may be others in the next answer: each answer bounds the rows of
    persons anew, in its own snapshot.
    """

    def __init__(self, database: Database, schema: Schema) -> None:
        self._database, self._schema = database, schema
        self.check_unchanged()

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        with self._connected() as session:
            yield from self._of(session).tables(size, names)

    def column(self, name: str) -> npt.NDArray[Any]:
        with self._connected() as session:
            return self._of(session).column(name)

    @contextmanager
    def pinned(self) -> Iterator[Source]:
        with self._connected() as session:
            yield self._of(session)

    def check_unchanged(self) -> None:
        """Make sure that the database answers, and that it has the columns still."""
        with self._connected() as session:
            check_names(session.names(self._database.select(())), self._schema.needed)

    def identity(self) -> str | None:
        file = self._database.file
        if file is None:
            return None
        files = [file, *(file.with_name(file.name + end) for end in ("-wal", ".wal"))]
        return identify_files(files) if are_settled(files) else None

    def _connected(self) -> AbstractContextManager[Session]:
        connect: Callable[[Database], AbstractContextManager[Session]] = ENGINES[self._database.engine]
        return connect(self._database)

    @property
    def travels(self) -> bool:
        """Only PostgreSQL shares a snapshot."""
        return self._database.engine.startswith("postgres")

    def _of(self, session: Session) -> SessionRows:
        return SessionRows(session, self._database, self._schema)


class SessionRows(Source):
    """Rows as one session sees them."""

    def __init__(self, session: Session, database: Database, schema: Schema, within: str = "") -> None:
        self._session, self._database, self._schema, self._within = session, database, schema, within

    def addresses(self) -> list[Source]:
        from privada.parties.sources.snapshots import share_snapshot

        return share_snapshot(self._session, self._database, self._schema)

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        return self._session.tables(self._statement(names), self._schema, size)

    def column(self, name: str) -> npt.NDArray[Any]:
        parts = self._session.tables(self._statement((name,)), self._schema, COLUMN_ROWS)
        values = [_decoded(part[name]) for part in parts]
        return np.concatenate(values) if values else np.zeros(0)

    def _statement(self, names: Sequence[str] | None) -> str:
        """Rows of persons are always read by one statement, whose order stays the same.

        An index that has all columns of a shorter list would be read instead of the table, in its own order.
        """
        shortened = names is not None and self._schema.person_id is None
        wanted = tuple(names) if shortened and names else self._schema.needed
        return self._database.select(wanted) + self._within


def _decoded(values: Any) -> npt.NDArray[Any]:
    """A column of whatever a session gives as an array."""
    return np.asarray(values)


__all__ = ["Database", "DatabaseSource", "SessionRows", "check_url"]
