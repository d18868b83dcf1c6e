"""What passes between learners and owners: questions one way, releases the other.

A learner is a generator that yields `AskOwner`s and receives releases. It has no input or output of its own.
Others drive it, all by the same loop (`drive_rounds`): ``parties.running`` in one process,
``exchange.asking`` through files, buckets or a network. It must be a deterministic function of its public
parameters and of the releases, so that it can be started again from the beginning.

An `Inquiry` is a learner that has not begun, with all that it may ask: what is priced before is what is
asked.

This module is on the learner's side: it imports no owner, no ledger and no rows.

>>> def count_rows(question):
...     release = yield AskOwner("clinic", question)
...     return release["counts"].sum()
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar

from privada.exceptions import InputError, TamperError
from privada.privacy.release import Disclosure, Question, Release

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")


@dataclass(frozen=True)
class AskOwner:
    """One question to one owner, by name.

    ``to`` names the curator where the question asks for raw rows: the reply is then a `Disclosure`.
    """

    owner: str
    question: Question
    to: str = ""

    def salted(self, salt: str) -> Self:
        """The same ask of a question with one more salt, which no answer that is kept belongs to."""
        return replace(self, question=replace(self.question, salt=f"{self.question.salt} {salt}".strip()))


@dataclass(frozen=True)
class Absent:
    """Stands for an answer that did not come: it was late, refused, or cannot be read.

    ``opened`` says that it failed while the rows were open. Rows may have been the cause, so nobody may be
    asked for more because of it.
    """

    owner: str
    reason: str
    opened: bool = False


Learner = Generator[AskOwner | Sequence[AskOwner], Any, T]


@dataclass(frozen=True)
class Inquiry(Generic[T]):
    """Questions to owners, in one round or several, and what is learnt from the answers.

    Attributes
    ----------
    asks : tuple of AskOwner
        For each owner, questions that together cost at least as much as those of all rounds, with the same
        kinds of noise. A question that depends on answers is represented by one of the same price.
    start : function
        Begins the rounds, and can be called again: every learner that it returns asks the same questions.
    optional_parties : frozenset of str, default=frozenset()
        Owners that the learner can do without: it accepts `Absent` in place of their replies.
    forecast : object, default=None
        What the method expects before anything is spent, for people to read.
    method : Method, default=None
        The method that prepared it, with its settings.
    """

    asks: tuple[AskOwner, ...]
    start: Callable[[], Learner[T]] = field(repr=False)
    optional_parties: frozenset[str] = frozenset()
    forecast: Any = None
    method: Any = None

    @property
    def first_round(self) -> tuple[AskOwner, ...]:
        """What is asked before any answer has come."""
        return as_round(next(self.start()))

    def again(self, salt: str) -> Self:
        """The same inquiry with new questions, which are paid for anew; an empty salt changes nothing."""
        if not salt:
            return self

        def start() -> Learner[T]:
            learner, replies = self.start(), None
            try:
                while True:
                    asks = learner.send(replies)
                    replies = yield (
                        asks.salted(salt)
                        if isinstance(asks, AskOwner)
                        else [ask.salted(salt) for ask in asks]
                    )
            except StopIteration as stop:
                result: T = stop.value
                return result

        return replace(self, asks=tuple(ask.salted(salt) for ask in self.asks), start=start)

    def then(self, finish: Callable[[T], U]) -> Inquiry[U]:
        """The same questions, and what ``finish`` makes of the learner's result."""

        def start() -> Learner[U]:
            return finish((yield from self.start()))

        return Inquiry(self.asks, start, self.optional_parties, self.forecast, self.method)


def one_round(rounds: Callable[P, Learner[T]]) -> Callable[P, Inquiry[T]]:
    """Make inquiries of a generator function whose learners ask in one round: that round is all they ask."""

    @wraps(rounds)
    def inquire(*args: P.args, **options: P.kwargs) -> Inquiry[T]:
        def start() -> Learner[T]:
            return rounds(*args, **options)

        return Inquiry(as_round(next(start())), start)

    return inquire


def as_round(asks: AskOwner | Sequence[AskOwner]) -> tuple[AskOwner, ...]:
    """The asks of one round: a learner yields one, or several at once."""
    return (asks,) if isinstance(asks, AskOwner) else tuple(asks)


def drive_rounds(
    inquiry: Inquiry[T] | Learner[T], reply_all: Callable[[tuple[AskOwner, ...]], Sequence[Any]]
) -> T:
    """Send the learner the replies of ``reply_all`` for each round, until it returns: the only such loop.

    A learner that yields one ask receives its reply; one that yields several at once, a list of replies.
    The caller checks the replies (`check_reply`), as `drive` does.
    """
    learner = inquiry.start() if isinstance(inquiry, Inquiry) else inquiry
    try:
        asks = next(learner)
        while True:
            replies = reply_all(as_round(asks))
            asks = learner.send(replies[0] if isinstance(asks, AskOwner) else list(replies))
    except StopIteration as stop:
        return stop.value


def drive(
    inquiry: Inquiry[T] | Learner[T],
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
            for release in replies:
                if isinstance(release, Release):
                    witness(release)
        return replies

    return drive_rounds(inquiry, reply_all)


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


@one_round
def ask_one(owner: str, question: Question) -> Learner[Release]:
    """Ask one question, and return its release."""
    release: Release = yield AskOwner(owner, question)
    only_releases(release)
    return release


def only_releases(*releases: Any) -> None:
    """Refuse any argument of a learner-side function that is not a release."""
    for release in releases:
        if not isinstance(release, Release):
            raise InputError(f"A learner accepts Releases only, got {type(release).__name__}.")


__all__ = [
    "Absent",
    "AskOwner",
    "Inquiry",
    "Learner",
    "as_round",
    "ask_one",
    "check_disclosure",
    "check_reply",
    "drive",
    "drive_rounds",
    "one_round",
    "only_releases",
]


def __getattr__(name: str) -> Any:
    from privada._deprecated import find_moved

    return find_moved(__name__, name)
