"""Learners are written once: as generators that yield `Ask`s and are sent releases.

A learner has no input or output of its own. Engines drive it: `run` in one
process, ``engines.folder`` through files, others over a network. It must be a
deterministic function of its public parameters and of the releases, so that an
engine may start it again from the beginning.

>>> def curious(question):
...     release = yield Ask("clinic", question)
...     return release["counts"].sum()
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from privada.exceptions import InputError, TamperError
from privada.parties.owner import Owner
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
    """Drive a learner in one process, with every owner at hand."""

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


__all__ = ["Ask", "Learner", "check_disclosure", "drive", "only_releases", "run"]
