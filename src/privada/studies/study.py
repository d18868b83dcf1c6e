"""A study states who is asked, by which method, and how much may be spent, in one TOML file.

::

    [study]
    title = "Do the clinic's patients fit our cells?"
    project = "cells of patients"         # optional, as is purpose: for the owners' ledgers
    seed = 0                              # of public randomness
    again = 0                             # another number asks anew, and is paid for again

    [owners.clinic]
    owner = "clinic/owner.toml"           # or schema = "schema.toml", the owner card

    [budget]
    epsilon = 1.0                         # what this study asks to spend: epsilon (and delta), or rho

    [method]
    name = "cells"                        # the rest of the table is the method's own
    centers = "centers.csv"
    by_label = true

Relation and unit are those of the owners. Paths are relative to the study's file.
A study cannot override an owner's policy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from privada import _check
from privada._toml import Section
from privada.exceptions import InputError
from privada.methods.method import Method, find_method
from privada.parties.owner_file import Card, OwnerFile
from privada.parties.protocol import AskOwner, Inquiry
from privada.parties.schema import Schema
from privada.privacy.asker import LONGEST_PROJECT, LONGEST_PURPOSE, check_line
from privada.privacy.guarantee import Guarantee, make_guarantee


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study that was read and found complete.

    Attributes
    ----------
    title, project, purpose, seed, again
        Of the ``[study]`` table. Owners see project and purpose, and their ledgers keep them.
    home : Path
        The folder that paths are relative to.
    parties : mapping of name to OwnerFile or Card
        The owners that it asks, in the order of the file.
    guarantee : Guarantee
        What each question asks to spend, under the owners' relation and unit.
    method : type of Method
    """

    title: str
    project: str
    purpose: str
    seed: int
    again: int
    home: Path
    parties: Mapping[str, OwnerFile | Card]
    guarantee: Guarantee
    method: type[Method]
    _file: Path = field(repr=False)
    _settings: Mapping[str, Any] | None = field(repr=False, default=None)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, method: Mapping[str, Any] | None = None) -> Self:
        """Read a study; errors name the line and the key. ``method`` replaces its ``[method]``."""
        top = Section.read(path)
        home = Path(path).resolve().parent
        about, budget = top.section("study"), top.section("budget")
        parties = _parties(top.section("owners"), home)
        method_type = _method(_asked(top, method))
        with about.blaming("seed"):
            seed = _check.count(least=0, seed=about.whole("seed", 0))
        with about.blaming("again"):
            again = _check.count(least=0, again=about.whole("again", 0))
        with about.blaming("project", "purpose"):
            project = check_line(project=about.string("project", ""), longest=LONGEST_PROJECT, empty=True)
            purpose = check_line(purpose=about.string("purpose", ""), longest=LONGEST_PURPOSE, empty=True)
        study = cls(
            title=about.string("title"),
            project=project,
            purpose=purpose,
            seed=seed,
            again=again,
            home=home,
            parties=parties,
            guarantee=_guarantee(budget, parties),
            method=method_type,
            _file=Path(path),
            _settings=method,
        )
        for section in (about, budget, top):
            section.done()
        _ = study.inquiry  # which reads the method's own keys
        return study

    @property
    def schemas(self) -> dict[str, Schema]:
        """The public schema of each owner."""
        return {name: party.schema for name, party in self.parties.items()}

    @property
    def schema(self) -> Schema:
        """The schema of the first owner, by which results are named."""
        return next(iter(self.schemas.values()))

    @property
    def keys(self) -> dict[str, str]:
        """The public keys that owners' cards name."""
        cards = {name: party for name, party in self.parties.items() if isinstance(party, Card)}
        return {name: card.public_key for name, card in cards.items() if card.public_key}

    @property
    def at_hand(self) -> dict[str, OwnerFile]:
        """The owners whose files the study names and whose keys, which open their ledgers, are available."""
        files = {name: party for name, party in self.parties.items() if isinstance(party, OwnerFile)}
        return {name: file for name, file in files.items() if file.key.is_file()}

    @cached_property
    def inquiry(self) -> Inquiry[Any]:
        """What the method asks of the owners, in all rounds: pricing, asking and running see the same."""
        section = _asked(Section.read(self._file), self._settings)
        section.string("name")
        inquiry = self.method.inquire(
            section, schemas=self.schemas, guarantee=self.guarantee, home=self.home, seed=self.seed
        )
        return inquiry.again(f"again {self.again}" if self.again else "")

    @property
    def first_asks(self) -> tuple[AskOwner, ...]:
        """What the method asks before it has seen any answer."""
        return self.inquiry.first_round


def _parties(section: Section, home: Path) -> dict[str, OwnerFile | Card]:
    tables = section.named_sections()
    section.done()
    if not tables:
        section.fail("", "expected at least one [owners.NAME].")
    return {name: _party(table, home) for name, table in tables.items()}


def _party(section: Section, home: Path) -> OwnerFile | Card:
    keys = [key for key in ("owner", "schema") if key in section]
    if len(keys) != 1:
        section.fail("owner", 'expected either owner = "owner.toml" or schema = "schema.toml".')
    path = home / section.string(keys[0])
    section.done()
    if not path.is_file():
        section.fail(keys[0], f"there is no file {path.name}.")
    return OwnerFile.read(path) if keys == ["owner"] else Card.read(path)


def _asked(top: Section, settings: Mapping[str, Any] | None) -> Section:
    """The ``[method]`` of a study, or what a command says instead."""
    own = top.section("method")
    return own if settings is None else Section(dict(settings), name="the command", text="", path="method")


def _method(section: Section) -> type[Method]:
    name = section.string("name")
    with section.blaming("name"):
        return find_method(name)


def _guarantee(section: Section, parties: Mapping[str, OwnerFile | Card]) -> Guarantee:
    promised = {(party.relation, party.schema.unit) for party in parties.values()}
    if len(promised) > 1:
        promises = "; ".join(f"{name}: {p.relation}, {p.schema.unit}" for name, p in parties.items())
        section.fail("", f"the owners protect different things ({promises}); a study needs one.")
    ((relation, unit),) = promised
    numbers = {name: section.number(name, None) for name in ("epsilon", "delta", "rho")}
    with section.blaming("epsilon", "delta", "rho"):
        return make_guarantee(**numbers, relation=relation, unit=unit)


def check_method(study: Study, name: str) -> None:
    """Raise an `InputError` unless the study is of the method that a command names."""
    named_method = find_method(name)
    if named_method.name != study.method.name:
        raise InputError(f"The study's method.name is {study.method.name!r}, the command says {name!r}.")


__all__ = ["Study", "check_method"]
