"""The curator: asks consumer and owners, waits for them, and goes on without those that do not answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from typing import Any, TypeVar

from privada import _check
from privada.exceptions import AnswerError, InputError, PrivadaError
from privada.methods.summarization.curator_noise import CuratorNoise, supply_noise
from privada.methods.summarization.learner.allocation import Absent
from privada.methods.summarization.learner.draws import Draw
from privada.methods.summarization.learner.learn import summarise
from privada.methods.summarization.learner.matching import Matching
from privada.methods.summarization.learner.rounds import greedy_rounds
from privada.methods.summarization.learner.summary import Summary
from privada.methods.summarization.nodes import OwnerNode, Transcript
from privada.parties.protocol import AskOwner, Inquiry, Learner, check_reply, drive_rounds
from privada.privacy.release import Disclosure, Release

Reply = Release | Disclosure
T = TypeVar("T")


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
            return [self._await_reply(ask, each, end) for ask, each in zip(asks, coming, strict=True)]

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
        points = _count_points(reply.rows) if isinstance(reply, Disclosure) else 0
        self.view.note(ask.question.kind, ask.owner, ask.question.digest, points=points)
        return reply

    def _note_absent(self, ask: AskOwner, reason: str, *, opened: bool = False) -> Absent:
        self.view.note("absent", ask.owner, ask.question.digest)
        return Absent(ask.owner, reason, opened)


def _count_points(rows: Mapping[str, Any]) -> int:
    """Raw points, or embeddings of them, in a disclosure; bids are none."""
    return sum(len(rows[name]) for name in ("X", "H") if name in rows)


__all__ = ["Curator"]
