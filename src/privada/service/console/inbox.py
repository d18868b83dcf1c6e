"""The questions that wait for a person, described from public information alone.

Nothing of a question is tried out here: its plan, its price and the shapes of its answer follow from its
public parameters. What cannot be read is left out and stays in the service's log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privada.exceptions import PrivadaError
from privada.exchange.answering import Answering, Pending, read_asker
from privada.exchange.envelope import Envelope
from privada.parties.owner import Owner
from privada.privacy.asker import Asker
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger.account import Quote
from privada.privacy.ledger.chain import Line
from privada.privacy.release import Question
from privada.report.tables import Table
from privada.report.wording import Part, parts_of, say_risk
from privada.service.serving import Desk, Service

MOST_KEPT = 500  # descriptions that are kept in memory
SMALLER = {"half": 0.5, "quarter": 0.25, "tenth": 0.1}


@dataclass(frozen=True, kw_only=True)
class Described:
    """What never changes about a question that was asked."""

    desk: Desk
    waiting: Pending
    envelope: Envelope
    asker: Asker | None
    organisation: str
    kind: str
    turn: str
    title: str
    guarantee: Guarantee
    parts: tuple[Part, ...]
    question: Question

    @property
    def owner(self) -> Owner:
        """The owner that is asked."""
        return self.desk.owner

    @property
    def who(self) -> str:
        """The name of who asks."""
        return "somebody who did not sign" if self.asker is None else self.asker.learner

    @property
    def sent(self) -> str:
        """When it was sent, by the sender's clock."""
        day, _, clock = self.envelope.time.partition("T")
        return f"{day} {clock[:5]} UTC" if clock.endswith("+00:00") else self.envelope.time

    @property
    def path(self) -> str:
        """Where the question's page is."""
        return f"/questions/{self.desk.name}/{self.waiting.digest}/{self.waiting.identity}"

    @property
    def bound(self) -> tuple[str, ...]:
        """What a form about this question is bound to."""
        return ("decision", self.desk.name, self.waiting.digest, self.waiting.identity)

    @property
    def numbers(self) -> int:
        """How many numbers come back."""
        return sum(part.numbers for part in self.parts)

    @property
    def parts_table(self) -> Table:
        """What comes back, as a table."""
        rows = tuple((part.name, part.shape, part.noise, part.within) for part in self.parts)
        columns = ("what comes back", "shape", "noise", "each number, 95 %")
        return Table(title="What comes back", columns=columns, rows=rows)

    @property
    def risk(self) -> str:
        """What the answer could tell about one row or person."""
        return say_risk(self.guarantee)

    def quote(self) -> Quote | None:
        """What it would take from the budget now; None if it cannot be priced there."""
        try:
            return self.owner.ledger.price(self.owner.dataset, self.question.price)
        except PrivadaError:
            return None

    def allowance_share(self) -> tuple[float, float] | None:
        """Which part of the learner's allowance it would take, and which is left; None without one."""
        learners = self.owner.learners
        known = None if learners is None else learners.find(self.asker)
        if learners is None or known is None:
            return None
        prices = {self.question.digest: self.question.price}
        try:
            part = self.owner.ledger.price_for(self.owner.dataset, prices, learners.allowance(known))
        except PrivadaError:
            return None
        return None if part is None else (part.share, part.remaining_share)

    def decision(self) -> Line | None:
        """What a person decided on it, None if nobody has."""
        return self.owner.ledger.decision(self.owner.dataset, self.waiting.digest, asker=self.asker)

    def smaller(self, how: str) -> str:
        """The reason of a refusal that proposes a smaller question."""
        return f"Please ask for less: at most {self.guarantee.part(SMALLER[how])}."


class Inbox:
    """Describes what waits; a description is made once."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._kept: dict[tuple[str, str], Described] = {}

    @property
    def desks(self) -> tuple[Desk, ...]:
        """The owners that are served."""
        return self._service.desks

    def waiting(self) -> list[Described]:
        """All questions that wait for a person and that can be read, the oldest first."""
        found = self._service.waiting()
        self._describe([each for each in found if (each[0].name, each[1].key) not in self._kept])
        made = (self._kept.get((desk.name, pending.key)) for desk, pending in found)
        undecided = [one for one in made if one is not None and one.decision() is None]
        return sorted(undecided, key=lambda one: one.envelope.time)

    def find(self, owner: str, digest: str, asked: str) -> Described | None:
        """One question that waits, or waited while this process ran."""
        self.waiting()
        names = (owner, digest, asked)
        return next(
            (
                one
                for one in [*self._kept.values()]
                if (one.desk.name, one.waiting.digest, one.waiting.identity) == names
            ),
            None,
        )

    def _describe(self, new: Sequence[tuple[Desk, Pending]]) -> None:
        if not new:
            return
        with self._service.open_courier() as courier:
            for desk, pending in new:
                try:
                    asked = Answering(courier, desk.name, desk.owner).read_asked(pending)
                    self._kept[desk.name, pending.key] = describe(desk, pending, *asked)
                except PrivadaError:
                    continue
        while len(self._kept) > MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))


def describe(desk: Desk, waiting: Pending, envelope: Envelope, question: Question) -> Described:
    """What a person should know of a question."""
    from privada.methods.method import methods

    asker, learners = read_asker(envelope), desk.owner.learners
    known = None if learners is None else learners.find(asker)
    named = asker if learners is None else learners.named(asker) or asker
    room = methods().get(question.method)
    return Described(
        desk=desk,
        waiting=waiting,
        envelope=envelope,
        asker=named,
        organisation="" if known is None else known.organisation,
        kind=question.kind,
        turn=question.turn,
        title=question.method if room is None else room.title,
        guarantee=question.guarantee,
        parts=parts_of(question),
        question=question,
    )


__all__ = ["SMALLER", "Described", "Inbox", "describe"]
