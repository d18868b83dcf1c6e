"""Answer questions as they come, for as long as the process runs.

Each data set has a thread and a connection of its own. The service keeps nothing that a restart would lose:
what was charged, answered and approved is in the ledger, what was asked and delivered is in the exchange.
While the exchange or a part of the owner (cluster, database, object store, files, ledger) is away, it is
tried again with growing pauses. Questions wait meanwhile, and nobody is refused.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privada.exceptions import (
    LedgerError,
    OutageError,
    PrivadaError,
    ServedError,
    SourceError,
    WireError,
)
from privada.exchange.answering import Answered, Answering, Pending
from privada.exchange.courier import Courier
from privada.exchange.posting import folder_of
from privada.parties.owner import Owner
from privada.service.metrics import Metrics

LOG = logging.getLogger("privada.service")
SLICE = 1.0  # seconds that one wait for questions lasts; so long does a stop take
LOOK_BACK = 10.0  # seconds, at least, between two looks at whether what was delivered is there still
LOOK_BACK_SHARE = 50  # and so many times as long as the last look took
RECHECK = 2.0  # seconds between two looks at questions that wait for a person, or for a delivery
LOOK = 10.0  # seconds between two looks at whether all that an answer needs is there
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds after a failure
_UNSETTLED = ("waiting", "undelivered")


@dataclass(frozen=True)
class Desk:
    """One owner of the service, under its name in studies."""

    name: str
    owner: Owner


class Service:
    """Serves owners over an exchange until it is stopped.

    Parameters
    ----------
    desks : sequence of Desk
    open_courier : function
        Opens a connection to the exchange; each data set has its own.
    metrics : Metrics, optional
    """

    def __init__(
        self,
        desks: Sequence[Desk],
        open_courier: Callable[[], Courier],
        *,
        metrics: Metrics | None = None,
    ) -> None:
        self._desks, self._open = tuple(desks), open_courier
        self.metrics = Metrics() if metrics is None else metrics
        self._stop = threading.Event()
        self._clerks = [Clerk(desk, open_courier, self._stop, self.metrics) for desk in self._desks]

    @property
    def desks(self) -> tuple[Desk, ...]:
        """The owners that are served."""
        return self._desks

    @property
    def open_courier(self) -> Callable[[], Courier]:
        """Opens one more connection to the exchange."""
        return self._open

    def waiting(self) -> list[tuple[Desk, Pending]]:
        """The questions that wait for a person, by owner."""
        return [(clerk.desk, each) for clerk in self._clerks for each in clerk.waiting()]

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
        LOG.info("serving", extra={"owners": [desk.name for desk in self._desks]})
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
        self._said: dict[str, str] = {}
        self._outage: tuple[str, float] | None = None  # what is away, and since when
        self.ended_by: ServedError | None = None

    def waiting(self) -> list[Pending]:
        """The questions that wait for a person; another thread may ask."""
        return [each for each in [*self._unsettled.values()] if self._said.get(each.key) == "waiting"]

    def run(self) -> None:
        """Connect and serve, again after each failure, until stopped."""
        pause = SHORTEST_PAUSE
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                with self._open() as courier:
                    self._serve(courier)
            except ServedError as error:
                LOG.error("failed", extra={"owner": self.desk.name, "reason": str(error)})
                self.ended_by = error
                self._stop.set()
            except PrivadaError as error:
                self._fail(_part_of(error), str(error))
            except Exception as error:  # its message could hold data
                self._fail("exchange", type(error).__name__)
            pause = SHORTEST_PAUSE if time.monotonic() - started > LONGEST_PAUSE else pause
            self._stop.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _fail(self, part: str, reason: str) -> None:
        """Count a failure, and log it if it is not the one that lasts already."""
        self._metrics.fail(self.desk.name, part)
        if self._outage is None or self._outage[0] != part:
            self._outage = (part, time.monotonic())
            LOG.error("failed", extra={"owner": self.desk.name, "part": part, "reason": reason})

    def _recover(self) -> None:
        """Note that everything is there, and log it if something was away."""
        self._metrics.connect(self.desk.name)
        if self._outage is not None:
            part, since = self._outage
            self._outage, seconds = None, round(time.monotonic() - since, 3)
            LOG.info("recovered", extra={"owner": self.desk.name, "part": part, "seconds": seconds})

    def _serve(self, courier: Courier) -> None:
        """Answer what is there, then what comes."""
        answering = Answering(courier, self.desk.name, self.desk.owner)
        answering.tidy()
        answering.check_writable()
        self.desk.owner.check_available()
        answering.find_damaged()
        self._recover()
        prefix, known, due = folder_of("question", self.desk.name) + "/", set[str](), 0.0
        look, look_back = time.monotonic() + LOOK, time.monotonic() + LOOK_BACK
        while not self._stop.is_set():
            for key in courier.wait(prefix, known=known, seconds=SLICE):
                known.add(key)
                self._take(answering, key)
            if self._unsettled and time.monotonic() >= due:
                self._look_again(answering)
                due = time.monotonic() + RECHECK
            if time.monotonic() >= look:
                self.desk.owner.check_available()
                look = time.monotonic() + LOOK
            if time.monotonic() >= look_back:
                started = time.monotonic()
                self._deliver_again(answering)
                spent = time.monotonic() - started
                look_back = time.monotonic() + max(LOOK_BACK, LOOK_BACK_SHARE * spent)
            self._metrics.note_turn(self.desk.name, waiting=len(self._unsettled))

    def _take(self, answering: Answering, key: str) -> None:
        """Answer a question that is new to this process, unless it was settled before."""
        waiting = Pending.from_key(key)
        if waiting is not None and not self._stop.is_set() and not answering.is_settled(waiting):
            self._answer(answering, waiting)

    def _deliver_again(self, answering: Answering) -> None:
        """Deliver what was delivered and is damaged or missing now; it is paid for."""
        for waiting in answering.find_damaged():
            self._said.pop(waiting.key, None)
            LOG.warning("delivering again", extra={"owner": self.desk.name, "question": waiting.digest})
            self._answer(answering, waiting)

    def _look_again(self, answering: Answering) -> None:
        for waiting in [*self._unsettled.values()]:
            if not self._stop.is_set():
                self._answer(answering, waiting)

    def _answer(self, answering: Answering, waiting: Pending) -> None:
        started = time.monotonic()
        done = answering.answer_one(waiting)
        if done.outcome in _UNSETTLED:
            self._unsettled[waiting.key] = waiting
        else:
            self._unsettled.pop(waiting.key, None)
        self._note(done, time.monotonic() - started)

    def _note(self, done: Answered, seconds: float) -> None:
        """Log and count what happened; a question that still waits is mentioned once."""
        if self._said.get(done.key) == done.outcome:
            return
        self._said[done.key] = done.outcome
        self._metrics.count(self.desk.name, done.outcome, seconds)
        told = {
            "owner": self.desk.name,
            "question": done.digest,
            "outcome": done.outcome,
            "learner": done.learner,
            "reason": done.reason,
            "seconds": round(seconds, 3),
        }
        LOG.info("question", extra={name: value for name, value in told.items() if value != ""})


def _part_of(error: PrivadaError) -> str:
    """What is away, as health and metrics name it."""
    if isinstance(error, OutageError):
        return error.part
    parts = ((WireError, "exchange"), (LedgerError, "ledger"), (SourceError, "rows"))
    return next((part for kind, part in parts if isinstance(error, kind)), "service")


def open_desks(named: Sequence[tuple[str, Callable[[], Owner]]]) -> list[Desk]:
    """Open owners one after another; an error names the one that cannot be opened."""
    desks = []
    for name, open_owner in named:
        try:
            desks.append(Desk(name, open_owner()))
        except PrivadaError as error:
            error.args = (f"{name}: {error}",)
            raise
    return desks


__all__ = ["Clerk", "Desk", "Service", "open_desks"]
