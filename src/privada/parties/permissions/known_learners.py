"""The learners that an owner knows, and the terms on which each may ask.

::

    [[learners]]
    name = "alice"                   # the owner's name for the learner; by default the card's
    key = "5f3c...e1"                # the public key in hexadecimal, or the path of the learner's card
    methods = ["cells"]              # by default, what the policy allows
    allowance = { epsilon = 1.0 }    # in the terms of the budget; by default, the whole of it
    expires = 2027-06-30             # the last day (UTC); by default, none
    approval = false                 # whether a person must approve; by default, as the policy says

If an owner's file has ``[[learners]]``, nobody else is answered. A learner is
recognised by its key, never by the name that it states.

An allowance is declared here and counts by the ledger: a new one is written there as a
line when an owner opens, and ``privada owner allow`` changes it without this file.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Self

from privada._text import escape_in_json
from privada._toml import Section
from privada.exceptions import InputError, PolicyError, PrivacyLeakWarning
from privada.parties.permissions.policy import Policy
from privada.privacy.accounting.allowance import Allowance, check_part
from privada.privacy.accounting.filters import Filter
from privada.privacy.asker import LONGEST_NAME, Asker, check_line
from privada.privacy.guarantee import ApproxDP, Guarantee, make_guarantee
from privada.privacy.keys import check_public_key
from privada.privacy.names import check_name, is_confusable, normal_name


@dataclass(frozen=True, kw_only=True)
class LearnerCard:
    """What a learner gives to owners: its name, its organisation, and the key that signs what it asks.

    Parameters
    ----------
    name : str
        The learner's name.
    public_key : str
        64 hexadecimal digits.
    organisation : str, default=""
        Where the learner is.
    """

    name: str
    public_key: str
    organisation: str = ""

    def __post_init__(self) -> None:
        check_name(name=self.name, longest=LONGEST_NAME)
        check_line(organisation=self.organisation, longest=200, empty=True)
        check_public_key(public_key=self.public_key)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read ``learner.toml``."""
        top = Section.read(path)
        section = top.section("learner")
        told = {name: section.string(name) for name in ("name", "public_key")}
        with section.blaming("name", "public_key", "organisation"):
            made = cls(organisation=section.string("organisation", ""), **told)
        section.done()
        top.done()
        return made

    def to_toml(self) -> str:
        """The text of ``learner.toml``."""
        told = {"name": self.name, "organisation": self.organisation, "public_key": self.public_key}
        pairs = (f"{key} = {_quoted(value)}" for key, value in told.items() if value)
        return "\n".join(["[learner]", *pairs]) + "\n"


def _quoted(text: str) -> str:
    return escape_in_json(json.dumps(text, ensure_ascii=False))


@dataclass(frozen=True, kw_only=True)
class KnownLearner:
    """One learner that an owner answers.

    Parameters
    ----------
    name : str
        The owner's name for the learner; it is normalised as names of data sets are.
    key : str
        The learner's public key.
    methods : tuple of str or None, default=None
        The methods that the learner may use; None leaves that to the policy.
    allowance : Guarantee or None, default=None
        The most that may be spent on the learner's questions; None leaves it the whole budget.
    expires : date or None, default=None
        The last day (UTC) on which the learner may ask.
    approval : bool or None, default=None
        Whether a person must approve each question; None leaves that to the policy.
    organisation : str, default=""
        Where the learner is, by its card.
    """

    name: str
    key: str
    methods: tuple[str, ...] | None = None
    allowance: Guarantee | None = None
    expires: date | None = None
    approval: bool | None = None
    organisation: str = ""

    def __post_init__(self) -> None:
        check_name(name=self.name, longest=LONGEST_NAME)
        check_line(organisation=self.organisation, longest=200, empty=True)
        object.__setattr__(self, "name", normal_name(self.name))
        check_public_key(key=self.key)
        if self.methods is not None:
            object.__setattr__(self, "methods", tuple(self.methods))

    def admit_method(self, method: str) -> None:
        """Raise `PolicyError` unless the learner may use a method."""
        if self.methods is not None and method not in self.methods:
            allowed = ", ".join(self.methods) or "none"
            raise PolicyError(f"The owner does not answer {method} to {self.name!r} (allowed: {allowed}).")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """On what terms a question is looked at: who asks, under which rules, with which allowance.

    ``allowance`` is None for a learner that the owner does not know.
    """

    policy: Policy
    asker: Asker | None = None
    allowance: Allowance | None = None


class KnownLearners:
    """All learners that an owner knows, with the filters that keep their allowances.

    Parameters
    ----------
    learners : iterable of KnownLearner
        The learners; names and keys differ.
    budget : Filter
        The filter of the data set's budget, which allowances are parts of.
    """

    def __init__(self, learners: Iterable[KnownLearner], *, budget: Filter) -> None:
        self.learners = check_distinct(learners)
        for one, other in combinations([learner.name for learner in self.learners], 2):
            if is_confusable(one, other):
                warnings.warn(
                    f"The letters of the learners {one!a} and {other!a} look the same: see that "
                    "you do not take one for the other.",
                    PrivacyLeakWarning,
                    stacklevel=3,
                )
        self._allowances = {each.key: _allowance(each, budget) for each in self.learners}

    @property
    def allowances(self) -> list[Allowance]:
        """The allowances of all of them, as they are declared."""
        return list(self._allowances.values())

    def allowance(self, learner: KnownLearner) -> Allowance:
        """The allowance of one of them."""
        return self._allowances[learner.key]

    def named(self, asker: Asker | None) -> Asker | None:
        """Who asks, under the owner's name for its key; None for anybody whom the owner does not know."""
        known = self.find(asker)
        return None if asker is None or known is None else replace(asker, learner=known.name)

    def find(self, asker: Asker | None) -> KnownLearner | None:
        """Who asks, as the owner lists it; None for anybody else."""
        return next((each for each in self.learners if asker is not None and each.key == asker.key), None)

    def terms(self, asker: Asker | None, method: str | None, policy: Policy) -> Terms:
        """The terms of who asks, under the owner's name for it; `PolicyError` for anybody else.

        ``method`` is None if it is not known yet.
        """
        known = self.find(asker)
        if asker is None or known is None:
            who = (
                "Nobody signed the question"
                if asker is None
                else f"The owner does not know {asker.learner!r}"
            )
            raise PolicyError(f"{who}; it answers the learners that its file lists. Nothing was charged.")
        if method is not None:
            known.admit_method(method)
        approval = policy.approval if known.approval is None else known.approval
        return Terms(
            policy=replace(policy, approval=approval),
            asker=replace(asker, learner=known.name),
            allowance=self._allowances[known.key],
        )


def _allowance(learner: KnownLearner, budget: Filter) -> Allowance:
    most = None if learner.allowance is None else check_part(learner.allowance, budget.budget)
    return Allowance.of(learner.name, learner.key, most, accounting=budget.name, expires=learner.expires)


def check_distinct(learners: Iterable[KnownLearner]) -> tuple[KnownLearner, ...]:
    """The learners, if no two share a name or a key."""
    made = tuple(learners)
    for what, seen in (("name", [one.name.casefold() for one in made]), ("key", [one.key for one in made])):
        twice = next((value for value in seen if seen.count(value) > 1), None)
        if twice is not None:
            raise InputError(f"Two learners have the same {what}: {twice}.")
    return made


def read_learners(sections: Sequence[Section], *, home: Path, budget: Guarantee) -> tuple[KnownLearner, ...]:
    """Read ``[[learners]]`` of an owner's file; errors name the line and the key."""
    made: list[KnownLearner] = []
    for section in sections:
        made.append(_read_learner(section, home, budget))
        with section.blaming("name", "key"):
            check_distinct(made)
    return tuple(made)


def _read_learner(section: Section, home: Path, budget: Guarantee) -> KnownLearner:
    key = section.string("key")
    card = None
    if key.endswith(".toml"):
        card = LearnerCard.read(home / key)
        key = card.public_key
    name = section.string("name") if card is None else section.string("name", card.name)
    methods = section.array("methods", None)
    allowance = _read_allowance(section.section("allowance"), budget) if "allowance" in section else None
    with section.blaming("name", "key", "methods"):
        learner = KnownLearner(
            name=name,
            key=key,
            methods=None if methods is None else tuple(map(str, methods)),
            allowance=allowance,
            expires=section.day("expires", None),
            approval=section.flag("approval", None),
            organisation="" if card is None else card.organisation,
        )
    section.done()
    return learner


def _read_allowance(section: Section, budget: Guarantee) -> Guarantee:
    """A part of the budget."""
    numbers = {name: section.number(name, None) for name in ("epsilon", "delta", "rho")}
    section.done()
    with section.blaming("epsilon", "delta", "rho"):
        return part_of(budget, **numbers)


def part_of(budget: Guarantee, *, epsilon: float | None, delta: float | None, rho: float | None) -> Guarantee:
    """An allowance in the terms of a budget; a delta that is not given is the budget's."""
    if delta is None and isinstance(budget, ApproxDP):
        delta = budget.delta
    asked = make_guarantee(epsilon=epsilon, delta=delta, rho=rho, relation=budget.relation, unit=budget.unit)
    return check_part(asked, budget)


__all__ = [
    "KnownLearner",
    "KnownLearners",
    "LearnerCard",
    "Terms",
    "check_distinct",
    "part_of",
    "read_learners",
]
