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

from privada.exceptions import InputError
from privada.parties.owner import Owner
from privada.privacy.release import Question, Release

T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """One question to one owner, by name."""

    owner: str
    question: Question


Learner = Generator[Ask | Sequence[Ask], Any, T]


def drive(
    learner: Learner[T], reply: Callable[[Ask], Release], *, announce: Callable[[Ask], None] | None = None
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


def _checked(ask: Ask, release: Release) -> Release:
    if not isinstance(release, Release):
        raise InputError(f"A learner accepts Releases only, got {type(release).__name__}.")
    release.verify(question=ask.question)
    return release


def run(learner: Learner[T], owners: Mapping[str, Owner]) -> T:
    """Drive a learner in one process, with every owner at hand."""

    def reply(ask: Ask) -> Release:
        if ask.owner not in owners:
            raise InputError(
                f"The learner asks {ask.owner!r}; known owners: {', '.join(sorted(owners)) or 'none'}."
            )
        return owners[ask.owner].answer(ask.question)

    return drive(learner, reply)


def only_releases(*releases: Any) -> None:
    """Refuse anything but releases at the door of a learner-side function."""
    for release in releases:
        if not isinstance(release, Release):
            raise InputError(f"A learner accepts Releases only, got {type(release).__name__}.")


__all__ = ["Ask", "Learner", "drive", "only_releases", "run"]
