"""Learners are written once: as generators that yield `AskOwner`s and receive releases.

A learner has no input or output of its own. Others drive it, all by the same loop
(`drive_rounds`): ``parties.running`` in one process, ``exchange.asking`` through
files, buckets or a network. It must be a deterministic function of its public
parameters and of the releases, so that it may be started again from the
beginning.

A learner that asks in rounds is a `PlannedLearner`: it states beforehand the most
that it will ask for, so that a study whose later rounds cannot be paid for is
refused before the first charge (``parties.running.check_ahead``).

This module is on the learner's side: it imports no owner, no ledger and no rows.

>>> def curious(question):
...     release = yield AskOwner("clinic", question)
...     return release["counts"].sum()
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from privada.exceptions import InputError, TamperError
from privada.privacy.release import Disclosure, Question, Release

T = TypeVar("T")


@dataclass(frozen=True)
class AskOwner:
    """One question to one owner, by name.

    ``to`` names the curator where the question asks for raw rows: the reply is then a `Disclosure`.
    """

    owner: str
    question: Question
    to: str = ""


@dataclass(frozen=True)
class Absent:
    """Stands for an answer that did not come: late, refused, or not to be read.

    ``opened`` says that it failed while the rows were open. Rows may have been the cause, so nobody may be
    asked for more because of it.
    """

    owner: str
    reason: str
    opened: bool = False


Learner = Generator[AskOwner | Sequence[AskOwner], Any, T]


class PlannedLearner(Generator[AskOwner | Sequence[AskOwner], Any, T]):
    """A learner that states beforehand the most that it asks for, in all its rounds.

    Parameters
    ----------
    learner : Learner
        The generator that asks.
    asks : sequence of Ask
        For each owner, questions that together cost at least as much as the learner's, with the same
        kinds of noise. A question that depends on answers is represented by one of the same price.
    dispensable : iterable of str, default=()
        Owners that the learner can do without: it accepts `Absent` in place of their replies.
    forecast : object, optional
        What the method expects before anything is spent, for people to read.
    """

    def __init__(
        self,
        learner: Learner[T],
        asks: Iterable[AskOwner],
        *,
        dispensable: Iterable[str] = (),
        forecast: object | None = None,
    ) -> None:
        self.asks = tuple(asks)
        self.forecast = forecast
        self.dispensable = frozenset(dispensable)
        self._learner = learner

    def send(self, value: Any) -> AskOwner | Sequence[AskOwner]:
        """Go on with replies."""
        return self._learner.send(value)

    def throw(self, *error: Any) -> AskOwner | Sequence[AskOwner]:
        """Go on with an error."""
        return self._learner.throw(*error)


class BegunLearner(Generator[AskOwner | Sequence[AskOwner], Any, T]):
    """A learner whose first round was already read; the loop that drives it gets that round first."""

    def __init__(self, learner: Learner[T]) -> None:
        self.first = next(learner)
        self._looked_at = True
        self._learner = learner

    def send(self, value: Any) -> AskOwner | Sequence[AskOwner]:
        """Begin with the first round, then go on with replies."""
        if self._looked_at:
            self._looked_at = False
            return self.first
        return self._learner.send(value)

    def throw(self, *error: Any) -> AskOwner | Sequence[AskOwner]:
        """Go on with an error."""
        return self._learner.throw(*error)


def with_forecast(learner: Learner[T], forecast: object) -> PlannedLearner[T]:
    """The same learner, which asks in one round unless it has a plan, with what its method expects."""
    if isinstance(learner, PlannedLearner):
        learner.forecast = forecast
        return learner
    begun = BegunLearner(learner)
    return PlannedLearner(begun, as_round(begun.first), forecast=forecast)


def list_asks(learner: Learner[Any]) -> tuple[AskOwner, ...]:
    """All that a learner asks for; if it does not state that, its first round, which starts it."""
    return learner.asks if isinstance(learner, PlannedLearner) else as_round(next(learner))


def as_round(asked: AskOwner | Sequence[AskOwner]) -> tuple[AskOwner, ...]:
    """The asks of one round: a learner yields one, or several at once."""
    return (asked,) if isinstance(asked, AskOwner) else tuple(asked)


def drive_rounds(learner: Learner[T], reply_all: Callable[[tuple[AskOwner, ...]], Sequence[Any]]) -> T:
    """Send the learner the replies of ``reply_all`` for each round, until it returns: the only such loop.

    A learner that yields one ask receives its reply; one that yields several at once, a list of replies.
    The caller checks the replies (`check_reply`), as `drive` does.
    """
    try:
        asked = next(learner)
        while True:
            replies = reply_all(as_round(asked))
            asked = learner.send(replies[0] if isinstance(asked, AskOwner) else list(replies))
    except StopIteration as stop:
        return stop.value


def drive(
    learner: Learner[T],
    reply: Callable[[AskOwner], Release | Disclosure],
    *,
    announce: Callable[[AskOwner], None] | None = None,
    witness: Callable[[Release], None] | None = None,
) -> T:
    """Drive a learner with the checked replies of ``reply``, one ask after another.

    All asks of a round are announced before the first reply is awaited; ``witness`` sees the releases that
    the learner receives.
    """

    def reply_all(asks: tuple[AskOwner, ...]) -> list[Release | Disclosure]:
        if announce is not None:
            for ask in asks:
                announce(ask)
        replies = [check_reply(ask, reply(ask)) for ask in asks]
        if witness is not None:
            for each in replies:
                if isinstance(each, Release):
                    witness(each)
        return replies

    return drive_rounds(learner, reply_all)


def check_reply(ask: AskOwner, reply: Release | Disclosure) -> Release | Disclosure:
    """Return a reply that answers this ask; refuse any other."""
    if ask.question.discloses:
        check_disclosure(ask, reply)
    elif isinstance(reply, Release):
        reply.verify(question=ask.question)
    else:
        raise InputError(f"A learner accepts Releases only, got {type(reply).__name__}.")
    return reply


def check_disclosure(ask: AskOwner, reply: Any) -> None:
    """Refuse anything but rows that were meant for this curator and asked for by this question."""
    if not isinstance(reply, Disclosure):
        raise InputError(f"This question asks for a Disclosure, got {type(reply).__name__}.")
    if reply.curator != ask.to or reply.question != ask.question.digest:
        raise TamperError("The disclosure is for another curator, or answers another question.")
    reply.receipt.verify()


def ask_one(owner: str, question: Question) -> Learner[Release]:
    """A learner of one question, which returns its release."""
    release = yield AskOwner(owner, question)
    only_releases(release)
    return release


def only_releases(*releases: Any) -> None:
    """Refuse any argument of a learner-side function that is not a release."""
    for release in releases:
        if not isinstance(release, Release):
            raise InputError(f"A learner accepts Releases only, got {type(release).__name__}.")


if TYPE_CHECKING:
    from privada.parties import running

    check_ahead, quote_all, run = running.check_ahead, running.quote_all, running.run
    Foreseen, foreseen = PlannedLearner, list_asks

_MOVED = {  # names of 0.2, to be removed in 0.4
    "Foreseen": "protocol:PlannedLearner",
    "foreseen": "protocol:list_asks",
    "check_ahead": "running:check_ahead",
    "quote_all": "running:quote_all",
    "run": "running:run",
}


def __getattr__(name: str) -> Any:
    """Find names that moved or were renamed; the owner's side is imported only then."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, new = _MOVED[name].partition(":")
    return getattr(import_module(f"privada.parties.{module}"), new)


__all__ = [
    "Absent",
    "AskOwner",
    "BegunLearner",
    "Learner",
    "PlannedLearner",
    "as_round",
    "ask_one",
    "check_disclosure",
    "check_reply",
    "drive",
    "drive_rounds",
    "list_asks",
    "only_releases",
    "with_forecast",
]
