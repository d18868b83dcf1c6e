"""Make an owner's folder: ``owner.toml``, a signing key and an empty ledger, all or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privada.exceptions import InputError
from privada.parties.sources.databases import Database
from privada.privacy.asker import check_name
from privada.privacy.ledger import Ledger
from privada.privacy.receipt import OwnerKey
from privada.service.setup.answers import Answers
from privada.service.setup.headers import ColumnHeader
from privada.service.setup.template import owner_toml

TOML, KEY, LEDGER = "owner.toml", "owner.key", "ledger.sqlite"


@dataclass(frozen=True, kw_only=True)
class NewOwner:
    """An owner that is to be made: where its rows are and what their columns are called.

    Parameters
    ----------
    folder : path
    data : path or Database, optional
    columns : tuple of ColumnHeader
    name : str, optional
        Identity of the data set; by default the name of the file, the table or the folder.
    dialect : mapping, optional
        How CSV is written.
    methods : tuple of str
    """

    folder: Path
    data: Path | Database | None
    columns: tuple[ColumnHeader, ...]
    methods: tuple[str, ...]
    name: str | None = None
    dialect: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dataset(self) -> str:
        """The identity of the data set."""
        if self.name:
            return self.name
        if isinstance(self.data, Database):
            return (self.data.table or self.folder.resolve().name).rpartition(".")[2]
        return self.data.stem if self.data else self.folder.resolve().name

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def text(self, *, label: str | None = None, answers: Answers | None = None) -> str:
        """The text of owner.toml; with answers it is complete."""
        return owner_toml(
            name=self.dataset,
            source=self._source(),
            ledger=LEDGER,
            key=KEY,
            methods=self.methods,
            columns=self.columns,
            label=label,
            dialect=self.dialect,
            answers=answers,
        )

    def _source(self) -> str | Database:
        home = self.folder.resolve()
        if isinstance(self.data, Database):
            return self.data.seen_from(home)
        return "data.parquet" if self.data is None else os.path.relpath(self.data.resolve(), home)

    def create(self, text: str, *, passphrase: str | None = None) -> tuple[tuple[Path, ...], OwnerKey]:
        """Write the three files; if one of them is there already, nothing is written."""
        check_name(name=self.dataset, longest=200)
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = tuple(self.folder / part for part in (TOML, KEY, LEDGER))
        for path in paths:
            if path.exists():
                raise InputError(f"DIR: {path} exists and is not overwritten.")
        key = OwnerKey.generate()
        key.save(paths[1], passphrase=passphrase)
        Ledger.open(paths[2], key).close()
        paths[0].write_text(text, encoding="utf-8")
        return paths, key


__all__ = ["KEY", "LEDGER", "TOML", "NewOwner"]
