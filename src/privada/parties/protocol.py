"""Learners are written once: as generators that yield `Ask`s and are sent releases.

A learner has no input or output of its own. Engines drive it: `run` in one
process, ``engines.folder`` through files, others over a network. It must be a
deterministic function of its public parameters and of the releases, so that an
engine may start it again from the beginning.

One that asks in rounds is `Foreseen`: it says beforehand what it will ask for at
most, and whoever has the owners at hand can refuse before the first charge what
could not be paid to the end (`check_ahead`).

>>> def curious(question):
...     release = yield Ask("clinic", question)
...     return release["counts"].sum()
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from privada.exceptions import InputError, TamperError
from privada.parties.owner import Owner
from privada.parties.owner_file import OwnerFile
from privada.privacy.ledger import Quote
from privada.privacy.release import Disclosure, Question, Release

T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """One question to one owner, by name.

    ``to`` names the curator where the question asks for raw rows: the reply is then a `Disclosure`.
    """

    owner: str
    question: Question
    to: str = ""


Learner = Generator[Ask | Sequence[Ask], Any, T]


class Foreseen(Generator[Ask | Sequence[Ask], Any, T]):
    """A learner that says beforehand what it asks for in all its rounds, at most.

    Parameters
    ----------
    learner : Learner
        Who asks.
    asks : sequence of Ask
        Of each owner, questions that together cost what the learner's do at most, of their kinds of
        noise. A question that follows from answers is stood in for by one of the same price.
    """

    def __init__(self, learner: Learner[T], asks: Iterable[Ask]) -> None:
        self.asks = tuple(asks)
        self._learner = learner

    def send(self, value: Any) -> Ask | Sequence[Ask]:
        """Go on with replies."""
        return self._learner.send(value)

    def throw(self, *error: Any) -> Ask | Sequence[Ask]:
        """Go on with an error."""
        return self._learner.throw(*error)


def foreseen(learner: Learner[Any]) -> tuple[Ask, ...]:
    """What a learner asks for in all; of one that does not say so, its first round, which starts it."""
    if isinstance(learner, Foreseen):
        return learner.asks
    asked = next(learner)
    return (asked,) if isinstance(asked, Ask) else tuple(asked)


def check_ahead(asks: Iterable[Ask], parties: Mapping[str, Owner | OwnerFile]) -> None:
    """Refuse what an owner at hand would not answer to the end; nothing is charged.

    One that was asked before for a part of it was looked at then, and goes on.

    Raises
    ------
    InputError, PolicyError, BudgetError
        As an owner would, but before the first charge.
    """
    asked = tuple(asks)
    for name, party in parties.items():
        mine = [ask for ask in asked if ask.owner == name]
        if mine and not any(party.has_paid(ask.question) for ask in mine):
            quote = quote_all(mine, party)
            if not quote.affordable:
                raise quote.refusal()


def quote_all(asks: Iterable[Ask], party: Owner | OwnerFile) -> Quote:
    """What asks of one owner would take together; raises where its policy forbids one of them."""
    asked = tuple(asks)
    for ask in asked:
        if ask.question.discloses:
            party.policy.admit_curator(ask.to)
    return party.price_all([ask.question for ask in asked])


def drive(
    learner: Learner[T],
    reply: Callable[[Ask], Release | Disclosure],
    *,
    announce: Callable[[Ask], None] | None = None,
) -> T:
    """Send each release that ``reply`` brings into the learner until it returns.

    A learner that yields several asks at once is sent as many releases; all
    of them are announced before the first reply is awaited.
    """
    try:
        asked = next(learner)
        while True:
            for ask in [asked] if isinstance(asked, Ask) else asked:
                if announce is not None:
                    announce(ask)
            if isinstance(asked, Ask):
                asked = learner.send(_checked(asked, reply(asked)))
            else:
                asked = learner.send([_checked(ask, reply(ask)) for ask in asked])
    except StopIteration as stop:
        result: T = stop.value
        return result


def _checked(ask: Ask, reply: Release | Disclosure) -> Release | Disclosure:
    if ask.question.discloses:
        check_disclosure(ask, reply)
    elif isinstance(reply, Release):
        reply.verify(question=ask.question)
    else:
        raise InputError(f"A learner accepts Releases only, got {type(reply).__name__}.")
    return reply


def check_disclosure(ask: Ask, reply: Any) -> None:
    """Refuse anything but rows that were meant for this curator and asked for by this question."""
    if not isinstance(reply, Disclosure):
        raise InputError(f"This question asks for a Disclosure, got {type(reply).__name__}.")
    if reply.curator != ask.to or reply.question != ask.question.digest:
        raise TamperError("The disclosure is for another curator, or answers another question.")
    reply.receipt.verify()


def run(learner: Learner[T], owners: Mapping[str, Owner]) -> T:
    """Drive a learner in one process, with every owner at hand.

    Of one that is `Foreseen`, nothing is charged unless all that it asks for can be paid.
    """
    if isinstance(learner, Foreseen):
        check_ahead(learner.asks, owners)

    def reply(ask: Ask) -> Release | Disclosure:
        if ask.owner not in owners:
            raise InputError(
                f"The learner asks {ask.owner!r}; known owners: {', '.join(sorted(owners)) or 'none'}."
            )
        if ask.question.discloses:
            return owners[ask.owner].disclose(ask.question, to=ask.to)
        return owners[ask.owner].answer(ask.question)

    return drive(learner, reply)


def only_releases(*releases: Any) -> None:
    """Refuse anything but releases at the door of a learner-side function."""
    for release in releases:
        if not isinstance(release, Release):
            raise InputError(f"A learner accepts Releases only, got {type(release).__name__}.")


__all__ = [
    "Ask",
    "Foreseen",
    "Learner",
    "check_ahead",
    "check_disclosure",
    "drive",
    "foreseen",
    "only_releases",
    "quote_all",
    "run",
]
