"""The parties of a summary at work: the trusted curator and its noise, the consumer, and the owners.

The curator asks consumer and owners, waits for them, and goes on without those that do not answer. All that
it tells owners in rounds is drawn by `CuratorNoise`. Each party keeps a transcript of what it was shown.
What an owner sees is public noise and its own number of rows; the auditor checks that it does not depend on
another owner's rows (`privada.audit.replay_views`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import AnswerError, InputError, PrivadaError
from privada.methods.summarization.learner.learn import Matching, summarise
from privada.methods.summarization.learner.rounds import AskedOwners, Draw, NoisySum, Rounds, greedy_rounds
from privada.methods.summarization.learner.summary import Summary
from privada.parties.owner import Owner
from privada.parties.protocol import Absent, AskOwner, Inquiry, Learner, check_reply, drive_rounds
from privada.privacy.noise import Noise, SecureNoise
from privada.privacy.release import Disclosure, Question, Release

Reply = Release | Disclosure
T = TypeVar("T")
WORD = 2**64
COIN = WORD**2  # outcomes of a coin


@dataclass(frozen=True)
class Entry:
    """One line of a transcript: the kind of message, the other party, and the digest."""

    kind: str
    party: str
    digest: str
    points: int = 0


@dataclass
class Transcript:
    """What one party saw, in order. It holds digests and numbers of points, never a row."""

    party: str
    entries: list[Entry] = field(default_factory=list)

    def note(self, kind: str, party: str, digest: str, *, points: int = 0) -> None:
        """Write one line."""
        self.entries.append(Entry(kind, party, digest, points))

    @property
    def points(self) -> int:
        """Raw points that the party received."""
        return sum(entry.points for entry in self.entries)

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"party": self.party, "entries": [vars(entry) for entry in self.entries]}


class OwnerNode:
    """An owner at work: answers what it is asked and writes down what it was shown.

    Parameters
    ----------
    name : str
    owner : Owner
        Its rows, policy and ledger. The policy must name the curator for rows to be disclosed.
    """

    def __init__(self, name: str, owner: Owner) -> None:
        self.name, self.owner = name, owner
        self.view = Transcript(name)

    @property
    def size(self) -> int:
        """The public number of rows."""
        size = self.owner.schema.size
        if size is None:
            raise InputError(f"{self.name}: a summary needs the schema's public size.")
        return size

    def reply(self, ask: AskOwner) -> Release | Disclosure:
        """Answer or disclose; what the owner was shown is the question."""
        self.view.note(ask.question.kind, ask.to, ask.question.digest)
        return self.disclose(ask.question, ask.to) if ask.question.discloses else self.answer(ask.question)

    def answer(self, question: Question) -> Release:
        """Answer by a release, which is charged first."""
        return self.owner.answer(question)

    def disclose(self, question: Question, to: str) -> Disclosure:
        """Raw rows for the curator: logged as not differentially private."""
        return self.owner.disclose(question, to=to)


class Consumer(OwnerNode):
    """The holder of the validation set, who learns what owners contributed."""

    def contributions(self, summary: Summary) -> dict[str, float]:
        """Value of each owner, for payment. Not to be told to owners: it depends on all rows."""
        return summary.contributions()


class CuratorNoise:
    """Draws noisy sums, and which owners are asked.

    Parameters
    ----------
    noise : Noise, optional
        By default the operating system's; seeded noise is for tests only.
    """

    def __init__(self, noise: Noise | None = None) -> None:
        self.noise = SecureNoise() if noise is None else noise

    def draw(self, draw: Draw) -> Any:
        """Draw what a learner yielded."""
        return self.noisy_sum(draw) if isinstance(draw, NoisySum) else self.asked_owners(draw)

    def noisy_sum(self, draw: NoisySum) -> FloatArray:
        """The points' sum in whole grid steps, each truncated by itself, and noise."""
        exact = draw.mechanism.grid.truncate(draw.features).sum(axis=0)
        return np.asarray(draw.mechanism.draw(exact, self.noise))

    def asked_owners(self, draw: AskedOwners) -> set[str]:
        """Flip one coin for each owner; rank 1 is always asked.

        A coin has 128 bits, the last 64 drawn where they matter. With 53, every chance to be missed below
        1e-16 would be none, and ranks on either side of that could be told apart at no price.
        """
        # The second word of a coin is drawn only where the first one ties.
        asked_names = set()
        coins = self.noise.words(len(draw.ranks))
        for (name, rank), coin in zip(draw.ranks.items(), coins.tolist(), strict=True):
            high, low = divmod(int(Fraction(draw.rule.miss(rank)) * COIN), WORD)
            if coin > high or (coin == high and int(self.noise.words(1)[0]) >= low):
                asked_names.add(name)
        return asked_names


def repeat_draws(draw: Callable[[Draw], Any]) -> Callable[[], Callable[[Draw], Any]]:
    """Make curators that draw alike: each hears again what an earlier one was told, and only then draws anew.

    An inquiry can be started twice, and owners answer the same question alike both times. The same sum with
    fresh noise would show more than was paid for.
    """
    drawn: list[tuple[Draw, Any]] = []
    lock = Lock()  # two threads that start at once must not both draw

    def start() -> Callable[[Draw], Any]:
        place = iter(range(2**31))

        def draw_once(step: Draw) -> Any:
            number = next(place)
            with lock:
                if number == len(drawn):
                    drawn.append((step, draw(step)))
            before, answer = drawn[number]
            if not before.equals(step):
                raise InputError(
                    "The rounds were started again with other answers, and would show more than was paid "
                    "for: ask anew, with another again= in the study."
                )
            return answer

        return draw_once

    return start


def supply_noise(rounds: Rounds[T], draw: Callable[[Draw], Any]) -> Learner[T]:
    """A learner of the common protocol: questions pass, draws are answered by ``draw``."""
    try:
        step = next(rounds)
        while True:
            reply = draw(step) if isinstance(step, Draw) else (yield step)
            step = rounds.send(reply)
    except StopIteration as stop:
        return stop.value


class Curator:
    """Drives the protocol with every party at hand, and keeps a transcript of what it received.

    Parameters
    ----------
    name : str, default="curator"
        As in the owners' policies.
    deadline : float, optional
        Seconds that a party has for each reply; one that is late is left out and never asked again.
    workers : int, default=8
        How many owners work at a time.
    """

    def __init__(self, name: str = "curator", *, deadline: float | None = None, workers: int = 8) -> None:
        self.name = name
        self.deadline = None if deadline is None else _check.positive(deadline=deadline)
        self.workers = _check.count(workers=workers)
        self.view = Transcript(name)

    def summarise(self, consumer: OwnerNode, owners: Sequence[OwnerNode], matching: Matching) -> Summary:
        """Run the whole protocol: local herding with a private allocation."""
        nodes = self._check_parties(consumer, owners, matching)
        sizes = {node.name: node.size for node in owners}
        return self.drive(summarise(consumer.name, consumer.size, sizes, matching), nodes)

    def auction(
        self,
        consumer: OwnerNode,
        owners: Sequence[OwnerNode],
        matching: Matching,
        *,
        draw: Callable[[Draw], Any] | None = None,
        **rounds: Any,
    ) -> Summary:
        """Run the round protocol instead.

        Parameters
        ----------
        consumer, owners, matching
            As for `summarise`.
        draw : function, optional
            Draws what the curator tells owners; by default `CuratorNoise` with the operating system's noise.
        **rounds
            The options of `greedy_rounds`.
        """
        nodes = self._check_parties(consumer, owners, matching)
        sizes = {node.name: node.size for node in owners}
        learner = greedy_rounds(consumer.name, consumer.size, sizes, matching, **rounds)
        return self.drive(supply_noise(learner, draw or CuratorNoise().draw), nodes)

    def _check_parties(
        self, consumer: OwnerNode, owners: Sequence[OwnerNode], matching: Matching
    ) -> dict[str, OwnerNode]:
        nodes = {node.name: node for node in (consumer, *owners)}
        if len(nodes) != len(owners) + 1:
            raise InputError("Expected every party to have a name of its own.")
        if matching.curator != self.name:
            raise InputError(f"The matching names the curator {matching.curator!r}, this is {self.name!r}.")
        return nodes

    def drive(self, learner: Inquiry[T] | Learner[T], nodes: Mapping[str, OwnerNode]) -> T:
        """Drive a learner; a reply that does not come, or is not what was asked for, becomes `Absent`.

        Owners work at the same time, each in one thread: matrix products of several threads each would
        slow each other down (20 times where it was measured).
        """
        from threadpoolctl import threadpool_limits

        pool = ThreadPoolExecutor(max_workers=self.workers)

        def reply_all(asks: tuple[AskOwner, ...]) -> list[Reply | Absent]:
            coming = [pool.submit(nodes[ask.owner].reply, ask) for ask in asks]
            end = None if self.deadline is None else time.monotonic() + self.deadline
            return [self._await_reply(ask, reply, end) for ask, reply in zip(asks, coming, strict=True)]

        try:
            with threadpool_limits(limits=1, user_api="blas"):
                return drive_rounds(learner, reply_all)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _await_reply(self, ask: AskOwner, coming: Future[Reply], end: float | None) -> Reply | Absent:
        try:
            reply = coming.result(None if end is None else max(0.0, end - time.monotonic()))
            check_reply(ask, reply)
        except TooLate:
            return self._note_absent(ask, "too late")
        except PrivadaError as error:
            opened = isinstance(error, AnswerError)
            return self._note_absent(ask, f"{type(error).__name__}: {error}", opened=opened)
        except Exception as error:  # its message could show a row
            return self._note_absent(ask, f"failed with {type(error).__name__}")
        # Raw points, or embeddings of them; bids are none.
        rows = reply.rows if isinstance(reply, Disclosure) else {}
        points = sum(len(rows[name]) for name in ("X", "H") if name in rows)
        self.view.note(ask.question.kind, ask.owner, ask.question.digest, points=points)
        return reply

    def _note_absent(self, ask: AskOwner, reason: str, *, opened: bool = False) -> Absent:
        self.view.note("absent", ask.owner, ask.question.digest)
        return Absent(ask.owner, reason, opened)


__all__ = [
    "Consumer",
    "Curator",
    "CuratorNoise",
    "Entry",
    "OwnerNode",
    "Transcript",
    "repeat_draws",
    "supply_noise",
]
