"""The three parties as objects: owners and consumer with their own ledgers, and the curator between them.

Every party keeps a transcript of what it was shown. What an owner saw is public noise and its own
number of rows; the auditor checks that it does not depend on another owner's rows
(`privada.audit.replay_views`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, field
from typing import Any, TypeVar

from privada import _check
from privada.exceptions import AnswerError, InputError, PrivadaError
from privada.methods.summarization.learner.auction import greedy_rounds
from privada.methods.summarization.learner.gathering import Summary
from privada.methods.summarization.learner.learn import Absent, Matching, summarise
from privada.parties.owner import Owner
from privada.parties.protocol import Ask, Learner, check_disclosure
from privada.privacy.release import Disclosure, Question, Release

Reply = Release | Disclosure
T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One thing that a party saw: what it was, from or for whom, and its digest."""

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

    def reply(self, ask: Ask) -> Reply:
        """Answer or disclose; what the owner was shown is the question."""
        self.view.note(ask.question.kind, ask.to, ask.question.digest)
        return self.disclose(ask.question, ask.to) if ask.question.discloses else self.answer(ask.question)

    def answer(self, question: Question) -> Release:
        """Through the owner's one door."""
        return self.owner.answer(question)

    def disclose(self, question: Question, to: str) -> Disclosure:
        """Raw rows for the curator: logged as not differentially private."""
        return self.owner.disclose(question, to=to)


class Consumer(OwnerNode):
    """Who holds the validation set, and is told what owners contributed."""

    def contributions(self, summary: Summary) -> dict[str, float]:
        """Value of each owner, for payment. Not to be told to owners: it depends on all rows."""
        return summary.contributions()


class Curator:
    """Coordinates: asks, waits, checks what comes, and gathers the summary.

    Parameters
    ----------
    name : str
        As in the owners' policies.
    deadline : float, optional
        Seconds that a party has for each reply; who is late is left out and never asked again.
    workers : int
        How many owners work at a time.
    """

    def __init__(self, name: str = "curator", *, deadline: float | None = None, workers: int = 8) -> None:
        self.name = name
        self.deadline = None if deadline is None else _check.positive(deadline=deadline)
        self.workers = _check.count(workers=workers)
        self.view = Transcript(name)

    def summarise(self, consumer: OwnerNode, owners: Sequence[OwnerNode], matching: Matching) -> Summary:
        """Run the whole protocol: local herding with a private allocation."""
        nodes = self._table(consumer, owners, matching)
        sizes = {node.name: node.size for node in owners}
        return self.drive(summarise(consumer.name, consumer.size, sizes, matching), nodes)

    def auction(
        self, consumer: OwnerNode, owners: Sequence[OwnerNode], matching: Matching, **rounds: Any
    ) -> Summary:
        """Run the round protocol instead; ``rounds`` are the options of `greedy_rounds`."""
        nodes = self._table(consumer, owners, matching)
        sizes = {node.name: node.size for node in owners}
        return self.drive(greedy_rounds(consumer.name, consumer.size, sizes, matching, **rounds), nodes)

    def _table(
        self, consumer: OwnerNode, owners: Sequence[OwnerNode], matching: Matching
    ) -> dict[str, OwnerNode]:
        nodes = {node.name: node for node in (consumer, *owners)}
        if len(nodes) != len(owners) + 1:
            raise InputError("Expected every party to have a name of its own.")
        if matching.curator != self.name:
            raise InputError(f"The matching names the curator {matching.curator!r}, this is {self.name!r}.")
        return nodes

    def drive(self, learner: Learner[T], nodes: Mapping[str, OwnerNode]) -> T:
        """Drive a learner; a reply that does not come, or is not what was asked, becomes `Absent`.

        Owners work at the same time, each in one thread: matrix products of several threads each would
        stand in each other's way (20 times slower where it was measured).
        """
        from threadpoolctl import threadpool_limits

        pool = ThreadPoolExecutor(max_workers=self.workers)
        try:
            with threadpool_limits(limits=1, user_api="blas"):
                return self._driven(learner, pool, nodes)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _driven(self, learner: Learner[T], pool: ThreadPoolExecutor, nodes: Mapping[str, OwnerNode]) -> T:
        try:
            asked = next(learner)
            while True:
                several = [asked] if isinstance(asked, Ask) else list(asked)
                replies = self._collect(pool, several, nodes)
                asked = learner.send(replies[0] if isinstance(asked, Ask) else replies)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _collect(
        self, pool: ThreadPoolExecutor, asks: Sequence[Ask], nodes: Mapping[str, OwnerNode]
    ) -> list[Reply | Absent]:
        futures = [pool.submit(nodes[ask.owner].reply, ask) for ask in asks]
        end = None if self.deadline is None else time.monotonic() + self.deadline
        return [self._settled(ask, coming, end) for ask, coming in zip(asks, futures, strict=True)]

    def _settled(self, ask: Ask, coming: Future[Reply], end: float | None) -> Reply | Absent:
        try:
            reply = coming.result(None if end is None else max(0.0, end - time.monotonic()))
            _CHECKS[ask.question.discloses](ask, reply)
        except TooLate:
            return self._absent(ask, "too late")
        except AnswerError as error:
            return self._absent(ask, f"{type(error).__name__}: {error}", opened=True)
        except PrivadaError as error:
            return self._absent(ask, f"{type(error).__name__}: {error}")
        except Exception as error:  # its message could show a row
            return self._absent(ask, f"failed with {type(error).__name__}")
        points = _points(reply.rows) if isinstance(reply, Disclosure) else 0
        self.view.note(ask.question.kind, ask.owner, ask.question.digest, points=points)
        return reply

    def _absent(self, ask: Ask, reason: str, *, opened: bool = False) -> Absent:
        self.view.note("absent", ask.owner, ask.question.digest)
        return Absent(ask.owner, reason, opened)


def _points(rows: Mapping[str, Any]) -> int:
    """Raw points, or embeddings of them, in a disclosure; bids are none."""
    return sum(len(rows[name]) for name in ("X", "H") if name in rows)


def _check_release(ask: Ask, reply: Any) -> None:
    if not isinstance(reply, Release):
        raise InputError(f"A learner accepts Releases only, got {type(reply).__name__}.")
    reply.verify(question=ask.question)


_CHECKS: dict[bool, Callable[[Ask, Any], None]] = {True: check_disclosure, False: _check_release}

__all__ = ["Consumer", "Curator", "Entry", "OwnerNode", "Transcript"]
