"""Answer questions as they come, for as long as the process runs.

Each data set has a thread and a connection of its own. The service keeps nothing that a restart would lose:
what was charged, answered and approved is in the ledger, what was asked and delivered is in the exchange.
While the exchange or a part of the owner (cluster, database, object store, files, ledger) is away, it is
tried again with growing pauses. Questions wait meanwhile, and none is refused.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privada.exceptions import LedgerError, OutageError, PrivadaError, ServedError, SourceError, WireError
from privada.exchange.answering import Answering, Pending
from privada.exchange.courier import Courier
from privada.exchange.posting import folder_of
from privada.parties.owner import Owner
from privada.service.metrics import Metrics

LOG = logging.getLogger("privada.service")
SLICE = 1.0  # seconds that one wait for questions lasts, and that a stop can take
LOOK_BACK = 10.0  # seconds, at least, between two checks that what was delivered still exists
LOOK_BACK_SHARE = 50  # and so many times as long as the last check took
RECHECK = 2.0  # seconds between two looks at questions that wait for a person, or for a delivery
LOOK = 10.0  # seconds between two checks that all that an answer needs can be reached
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds after a failure
_UNSETTLED = ("waiting", "undelivered")


@dataclass(frozen=True)
class Desk:
    """One owner of the service, under its name in studies."""

    name: str
    owner: Owner


class Service:
    """Serves owners over an exchange until it is stopped; each data set opens a courier of its own."""

    def __init__(
        self, desks: Sequence[Desk], open_courier: Callable[[], Courier], *, metrics: Metrics | None = None
    ) -> None:
        self.desks, self.open_courier = tuple(desks), open_courier
        self.metrics = Metrics() if metrics is None else metrics
        self._stop = threading.Event()
        self._clerks = [Clerk(desk, open_courier, self._stop, self.metrics) for desk in self.desks]

    def waiting(self) -> list[tuple[Desk, Pending]]:
        """Return the questions that wait for a person, by owner."""
        return [(clerk.desk, question) for clerk in self._clerks for question in clerk.waiting()]

    def run(self) -> None:
        """Serve until `stop` is called, from another thread or a signal's handler.

        Raises
        ------
        ServedError
            Another process took over a data set while its ledger was away.
        """
        threads = [threading.Thread(target=clerk.run, name=clerk.desk.name) for clerk in self._clerks]
        for thread in threads:
            thread.start()
        LOG.info("serving", extra={"owners": [desk.name for desk in self.desks]})
        for thread in threads:
            thread.join()
        LOG.info("stopped")
        for clerk in self._clerks:
            if clerk.ended_by is not None:
                raise clerk.ended_by

    def stop(self) -> None:
        """End when the answers that are being computed are delivered."""
        self._stop.set()


class Clerk:
    """Answers for one owner: waits for questions, looks again at those that wait, survives failures."""

    def __init__(
        self, desk: Desk, open_courier: Callable[[], Courier], stop: threading.Event, metrics: Metrics
    ) -> None:
        self.desk, self._open, self._stop, self._metrics = desk, open_courier, stop, metrics
        self._unsettled: dict[str, Pending] = {}
        self._outcomes: dict[str, str] = {}  # by key: what was logged
        self._outage: tuple[str, float] | None = None  # what is away, and since when
        self.ended_by: ServedError | None = None

    def waiting(self) -> list[Pending]:
        """Return the questions that wait for a person; another thread may ask."""
        questions = [*self._unsettled.values()]
        return [question for question in questions if self._outcomes.get(question.key) == "waiting"]

    def run(self) -> None:
        """Connect and serve, again after each failure, until stopped."""
        pause = SHORTEST_PAUSE
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                with self._open() as courier:
                    self._serve(Answering(courier, self.desk.name, self.desk.owner))
            except ServedError as error:
                LOG.error("failed", extra={"owner": self.desk.name, "reason": str(error)})
                self.ended_by = error
                self._stop.set()
            except PrivadaError as error:
                kinds = ((WireError, "exchange"), (LedgerError, "ledger"), (SourceError, "rows"))
                part = next((part for kind, part in kinds if isinstance(error, kind)), "service")
                self._fail(error.part if isinstance(error, OutageError) else part, str(error))
            except Exception as error:  # its message could hold data
                self._fail("exchange", type(error).__name__)
            pause = SHORTEST_PAUSE if time.monotonic() - started > LONGEST_PAUSE else pause
            self._stop.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _fail(self, part: str, reason: str) -> None:
        """Count a failure, and log it unless it is the one that lasts already."""
        self._metrics.fail(self.desk.name, part)
        if self._outage is None or self._outage[0] != part:
            self._outage = (part, time.monotonic())
            LOG.error("failed", extra={"owner": self.desk.name, "part": part, "reason": reason})

    def _serve(self, answering: Answering) -> None:
        """Answer the questions that exist, then those that come."""
        owner, name = self.desk.owner, self.desk.name
        answering.tidy()
        answering.check_writable()
        owner.check_available()
        answering.find_damaged()
        # Nothing is away (any more).
        self._metrics.connect(name)
        if self._outage is not None:
            part, since = self._outage
            self._outage, seconds = None, round(time.monotonic() - since, 3)
            LOG.info("recovered", extra={"owner": name, "part": part, "seconds": seconds})
        # Questions that this process has looked at; the exchange keeps those that were settled long ago, too.
        prefix, keys, recheck = folder_of("question", name) + "/", set[str](), 0.0
        look, look_back = time.monotonic() + LOOK, time.monotonic() + LOOK_BACK
        while not self._stop.is_set():
            for key in answering.courier.wait(prefix, known=keys, seconds=SLICE):
                keys.add(key)
                question = Pending.from_key(key)
                if question is not None and not self._stop.is_set() and not answering.is_settled(question):
                    self._answer(answering, question)
            if self._unsettled and time.monotonic() >= recheck:
                for question in [*self._unsettled.values()]:
                    if not self._stop.is_set():
                        self._answer(answering, question)
                recheck = time.monotonic() + RECHECK
            if time.monotonic() >= look:
                owner.check_available()
                look = time.monotonic() + LOOK
            if time.monotonic() >= look_back:
                look_back = self._deliver_again(answering)
            self._metrics.note_turn(name, waiting=len(self._unsettled))

    def _deliver_again(self, answering: Answering) -> float:
        """Deliver what was delivered and is damaged or missing now; return when to look next."""
        started = time.monotonic()
        for question in answering.find_damaged():
            self._outcomes.pop(question.key, None)
            LOG.warning("delivering again", extra={"owner": self.desk.name, "question": question.digest})
            self._answer(answering, question)
        now = time.monotonic()
        return now + max(LOOK_BACK, LOOK_BACK_SHARE * (now - started))

    def _answer(self, answering: Answering, question: Pending) -> None:
        """Answer a question, and log and count what happened; one that still waits is mentioned once."""
        started = time.monotonic()
        answered = answering.answer_one(question)
        seconds, outcome = time.monotonic() - started, answered.outcome
        if outcome in _UNSETTLED:
            self._unsettled[question.key] = question
        else:
            self._unsettled.pop(question.key, None)
        # A question that waits for a person is looked at again and again.
        if self._outcomes.get(question.key) == outcome:
            return
        self._outcomes[question.key] = outcome
        self._metrics.count(self.desk.name, outcome, seconds)
        fields = {
            "owner": self.desk.name,
            "question": answered.digest,
            "outcome": outcome,
            "learner": answered.learner,
            "reason": answered.reason,
            "seconds": round(seconds, 3),
        }
        LOG.info("question", extra={name: value for name, value in fields.items() if value != ""})


def open_desks(owners: Sequence[tuple[str, Callable[[], Owner]]]) -> list[Desk]:
    """Open owners one after another; an error names the one that cannot be opened."""
    desks = []
    for name, open_owner in owners:
        try:
            desks.append(Desk(name, open_owner()))
        except PrivadaError as error:
            error.args = (f"{name}: {error}",)
            raise
    return desks


__all__ = ["Clerk", "Desk", "Service", "open_desks"]
