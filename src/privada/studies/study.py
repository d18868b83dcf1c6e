"""A study: who is asked, by which method, for how much. Declarative, in one TOML file.

::

    [study]
    title = "Do the clinic's patients fit our cells?"
    seed = 0                              # of public randomness; another seed is another asking

    [owners.clinic]
    owner = "clinic/owner.toml"           # or schema = "schema.toml", the card that the owner gave you

    [budget]
    epsilon = 1.0                         # what this study asks to spend: epsilon (and delta), or rho

    [method]
    name = "cells"                        # the rest of the table is the method's own
    centers = "centers.csv"
    by_label = true

    [baselines]
    names = []                            # methods' baselines, each paid for like the method

Relation and unit follow the owners'. Paths are relative to the study's file.
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
from privada.methods.registry import Method, load, method
from privada.parties.owner_file import Card, OwnerFile
from privada.parties.protocol import Ask, Foreseen, Learner, foreseen
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee, request


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study that was read and found complete.

    Attributes
    ----------
    title, seed
        Of the ``[study]`` table.
    home : Path
        The folder that paths are relative to.
    parties : mapping of name to OwnerFile or Card
        Whom it asks, in the order of the file.
    guarantee : Guarantee
        What each question asks to spend, under the owners' relation and unit.
    method : Method
        Its card.
    baselines : tuple of str
        Names of the method's baselines to run beside it.
    """

    title: str
    seed: int
    home: Path
    parties: Mapping[str, OwnerFile | Card]
    guarantee: Guarantee
    method: Method
    baselines: tuple[str, ...] = ()
    _file: Path = field(repr=False)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a study; errors name the line and the key."""
        top = Section.read(path)
        home = Path(path).resolve().parent
        about, budget, asked = top.section("study"), top.section("budget"), top.section("method")
        beside = top.section("baselines")
        parties = _parties(top.section("owners"), home)
        named = _method(asked)
        with about.blaming("seed"):
            seed = _check.count(least=0, seed=about.whole("seed", 0))
        made = cls(
            title=about.string("title"),
            seed=seed,
            home=home,
            parties=parties,
            guarantee=_guarantee(budget, parties),
            method=named,
            baselines=_baselines(beside, named),
            _file=Path(path),
        )
        for section in (about, budget, beside, top):
            section.done()
        made.learner()  # reads the method's own keys
        return made

    @property
    def schemas(self) -> dict[str, Schema]:
        """The public schema of each owner."""
        return {name: party.schema for name, party in self.parties.items()}

    @property
    def keys(self) -> dict[str, str]:
        """The public keys that owners' cards name."""
        cards = {name: party for name, party in self.parties.items() if isinstance(party, Card)}
        return {name: card.public_key for name, card in cards.items() if card.public_key}

    @property
    def at_hand(self) -> dict[str, OwnerFile]:
        """The owners whose files are named, and whose keys, which open their ledgers, are there."""
        files = {name: party for name, party in self.parties.items() if isinstance(party, OwnerFile)}
        return {name: file for name, file in files.items() if file.key.is_file()}

    def learner(self, baseline: str | None = None) -> Learner[Any]:
        """A fresh learner of the method, or of one of its baselines."""
        section = Section.read(self._file).section("method")
        section.string("name")
        make = self.method.study() if baseline is None else load(self.method.baseline_paths[baseline])
        made: Learner[Any] = make(
            section, schemas=self.schemas, guarantee=self.guarantee, home=self.home, seed=self.seed
        )
        return made

    @cached_property
    def first_asks(self) -> tuple[Ask, ...]:
        """What the method asks before it has seen any answer."""
        asked = next(self.learner())
        return (asked,) if isinstance(asked, Ask) else tuple(asked)

    @cached_property
    def foresees(self) -> bool:
        """Whether the method says beforehand what it asks for in all."""
        return isinstance(self.learner(), Foreseen)

    @cached_property
    def asks_in_all(self) -> tuple[Ask, ...]:
        """What the method and its baselines ask for in all rounds, at most, as far as they foresee it."""
        return tuple(ask for name in (None, *self.baselines) for ask in foreseen(self.learner(name)))


def _parties(section: Section, home: Path) -> dict[str, OwnerFile | Card]:
    tables = section.named_sections()
    section.done()
    if not tables:
        section.fail("", "expected at least one [owners.NAME].")
    return {name: _party(table, home) for name, table in tables.items()}


def _party(section: Section, home: Path) -> OwnerFile | Card:
    named = [key for key in ("owner", "schema") if key in section]
    if len(named) != 1:
        section.fail("owner", 'expected either owner = "owner.toml" or schema = "schema.toml".')
    path = home / section.string(named[0])
    section.done()
    if not path.is_file():
        section.fail(named[0], f"there is no file {path.name}.")
    return OwnerFile.read(path) if named == ["owner"] else Card.read(path)


def _method(section: Section) -> Method:
    name = section.string("name")
    with section.blaming("name"):
        return method(name)


def _guarantee(section: Section, parties: Mapping[str, OwnerFile | Card]) -> Guarantee:
    promised = {(party.relation, party.schema.unit) for party in parties.values()}
    if len(promised) > 1:
        said = "; ".join(f"{name}: {p.relation}, {p.schema.unit}" for name, p in parties.items())
        section.fail("", f"the owners protect different things ({said}); a study needs one.")
    ((relation, unit),) = promised
    numbers = {name: section.number(name, None) for name in ("epsilon", "delta", "rho")}
    with section.blaming("epsilon", "delta", "rho"):
        return request(**numbers, relation=relation, unit=unit)


def _baselines(section: Section, asked: Method) -> tuple[str, ...]:
    names = section.array("names", [])
    for name in names:
        if name not in asked.baseline_paths:
            known = ", ".join(asked.baseline_paths) or "none"
            section.fail("names", f"{asked.name} has no baseline {name!r} (it has: {known}).")
    return tuple(names)


def check_method(study: Study, name: str) -> None:
    """Raise an `InputError` unless the study is of the method that a command names."""
    asked = method(name)
    if asked.name != study.method.name:
        raise InputError(f"The study's method.name is {study.method.name!r}, the command says {name!r}.")


__all__ = ["Study", "check_method"]
