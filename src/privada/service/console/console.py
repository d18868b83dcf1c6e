"""What waits in the console, described from public information alone, and what a signed-in person decides.

Nothing of a question is tried out here: its plan, its price and the shapes of its answer follow from its
public parameters. What cannot be read is left out and stays in the service's log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from privada.exceptions import PolicyError, PrivadaError
from privada.exchange.answering import Answering, Pending, read_asker
from privada.exchange.envelope import Envelope
from privada.parties.owner import Owner
from privada.privacy.asker import Asker
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger.account import Quote
from privada.privacy.ledger.chain import Line
from privada.privacy.release import Question
from privada.report.tables import Table
from privada.report.wording import Part, best_guess, in_a_hundred, parts_of, say_risk
from privada.service.console.oidc import Member, OidcSettings
from privada.service.console.users import Attempts, Person, Session, Sessions, Users
from privada.service.serving import Desk, Service
from privada.service.web import open_templates

MOST_DESCRIPTIONS = 500  # that are kept in memory
SMALLER = {"half": 0.5, "quarter": 0.25, "tenth": 0.1}
COOKIE = "privada-console"
PLACES = (("/", "Inbox"), ("/budget", "Budget"), ("/history", "History"))


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
    def names(self) -> tuple[str, str, str]:
        """The owner's name, the question's digest and the identity of its envelope."""
        return self.desk.name, self.waiting.digest, self.waiting.identity

    @property
    def path(self) -> str:
        """The path of the question's page."""
        return "/questions/" + "/".join(self.names)

    @property
    def bound(self) -> tuple[str, ...]:
        """What a form about this question is bound to."""
        return ("decision", *self.names)

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
        """Return what it would take from the budget now; None if it cannot be priced there."""
        try:
            return self.owner.ledger.price(self.owner.dataset, self.question.price)
        except PrivadaError:
            return None

    def allowance_share(self) -> tuple[float, float] | None:
        """Return the part of the learner's allowance that it would take, and what remains."""
        learners = self.owner.learners
        learner = None if learners is None else learners.find(self.asker)
        if learners is None or learner is None:
            return None
        prices = {self.question.digest: self.question.price}
        try:
            part = self.owner.ledger.price_for(self.owner.dataset, prices, learners.allowance(learner))
        except PrivadaError:
            return None
        return None if part is None else (part.share, part.remaining_share)

    def decision(self) -> Line | None:
        """Return what a person decided on it, or None if nobody has."""
        return self.owner.ledger.decision(self.owner.dataset, self.waiting.digest, asker=self.asker)

    def smaller(self, how: str) -> str:
        """Return the reason of a refusal that proposes a smaller question."""
        return f"Please ask for less: at most {self.guarantee.part(SMALLER[how])}."


def describe(desk: Desk, waiting: Pending, envelope: Envelope, question: Question) -> Described:
    """Return what a person should know of a question."""
    from privada.methods.method import methods

    asker, learners = read_asker(envelope), desk.owner.learners
    organisation = ""
    if learners is not None:
        learner = learners.find(asker)
        organisation = "" if learner is None else learner.organisation
        # The owner's own name for this key, not the one that the learner gives itself.
        asker = learners.named(asker) or asker
    method = methods().get(question.method)
    return Described(
        desk=desk,
        waiting=waiting,
        envelope=envelope,
        asker=asker,
        organisation=organisation,
        kind=question.kind,
        turn=question.turn,
        title=question.method if method is None else method.title,
        guarantee=question.guarantee,
        parts=parts_of(question),
        question=question,
    )


class Inbox:
    """Describes what waits; a description is made once."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._described: dict[tuple[str, str], Described] = {}

    @property
    def desks(self) -> tuple[Desk, ...]:
        """The owners that are served."""
        return self._service.desks

    def waiting(self) -> list[Described]:
        """Return all questions that wait for a person and can be read, the oldest first."""
        questions = self._service.waiting()
        self._describe([one for one in questions if (one[0].name, one[1].key) not in self._described])
        described = (self._described.get((desk.name, pending.key)) for desk, pending in questions)
        undecided = [one for one in described if one is not None and one.decision() is None]
        return sorted(undecided, key=lambda one: one.envelope.time)

    def find(self, owner: str, digest: str, identity: str) -> Described | None:
        """Return one question that waits, or waited while this process ran."""
        self.waiting()
        names = (owner, digest, identity)
        return next((one for one in [*self._described.values()] if one.names == names), None)

    def _describe(self, questions: Sequence[tuple[Desk, Pending]]) -> None:
        if not questions:
            return
        with self._service.open_courier() as courier:
            for desk, pending in questions:
                try:
                    envelope, question = Answering(courier, desk.name, desk.owner).read_asked(pending)
                    self._described[desk.name, pending.key] = describe(desk, pending, envelope, question)
                except PrivadaError:
                    continue
        while len(self._described) > MOST_DESCRIPTIONS:
            self._described.pop(next(iter(self._described)))


class SignedOut(Exception):  # noqa: N818 - not an error: the way to the sign-in page
    """The request belongs to no session."""


class Refused(Exception):  # noqa: N818 - what a page says, with its status
    """A request that is understood and not done."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Console:
    """What the pages work with; ``oidc`` is the file of a sign-in by OpenID Connect, if there is one."""

    inbox: Inbox
    users: Users
    origins: tuple[str, ...]
    oidc: Path | None = None
    sessions: Sessions = field(default_factory=Sessions)
    attempts: Attempts = field(default_factory=Attempts)

    def __post_init__(self) -> None:
        self._templates = open_templates()

    def session(self, request: Request) -> Session:
        """Return the session of a request; `SignedOut` if there is none, or if its user was changed."""
        cookie = request.cookies.get(COOKIE, "")
        session = self.sessions.find(cookie)
        if session is None or not self._is_current(session.user):
            self.sessions.end(cookie)
            raise SignedOut
        return session

    def _is_current(self, person: Person) -> bool:
        """Whether the files still give a person who is signed in the same role."""
        try:
            if isinstance(person, Member):
                return self.oidc is not None and OidcSettings.read(self.oidc).person(person.claims) == person
            return self.users.read().get(person.name) == person
        except PrivadaError:  # a file that cannot be read gives nobody a role
            return False

    def sign_in(self, reply: Response, person: Person) -> None:
        """Begin a session of a person, in the cookie of a reply."""
        secure = all(origin.startswith("https:") for origin in self.origins)
        cookie = self.sessions.begin(person)
        reply.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=secure)

    def needs(self, role: str) -> Callable[[Request], Session]:
        """Return a dependency of a page: the session of a request, if its user's role includes another."""

        def check(request: Request) -> Session:
            session = self.session(request)
            if not session.user.may(role):
                raise Refused(403, f"This takes the role of {role}; yours is {session.user.role}.")
            return session

        return check

    def page(
        self, name: str, session: Session | None, *, status: int = 200, error: str = "", **values: Any
    ) -> Response:
        """Return a page in the layout of all."""
        common = {
            "user": None if session is None else session.user,
            "places": PLACES,
            "here": values.pop("here", ""),
            "sign_out": "" if session is None else session.token("sign out"),
            "error": error,
        }
        text = self._templates.get_template(name).render(**common, **values)
        return HTMLResponse(text, status_code=status)

    def find(self, owner: str, digest: str, identity: str) -> Described:
        """Return a question that waits or waited, or raise `Refused`."""
        described = self.inbox.find(owner, digest, identity)
        if described is None:
            raise Refused(404, "This question does not wait for a decision any more, or never did.")
        return described

    def show(self, session: Session, one: Described, *, status: int = 200, error: str = "") -> Response:
        """Return the page of a question."""
        quote = one.quote()
        after = None if quote is None or not quote.running else quote.after
        return self.page(
            "question.html",
            session,
            status=status,
            error=error,
            title="A question from " + one.who,
            one=one,
            quote=quote,
            allowance=one.allowance_share(),
            in_all="" if after is None else say_total(one, after),
            state=say_state(one),
            may_decide=one.decision() is None and session.user.may("approver"),
            token=session.token(*one.bound),
        )

    def decide(self, session: Session, one: Described, *, decision: str, smaller: str, reason: str) -> None:
        """Write the decision of the person who is signed in; the first decision stands."""
        ledger, dataset, digest = one.owner.ledger, one.owner.dataset, one.waiting.digest
        by: dict[str, Any] = {"by": session.user.name, "asker": one.asker}
        if decision == "approve":
            receipt = ledger.approve(dataset, digest, **by)
        elif decision == "smaller" and smaller in SMALLER:
            receipt = ledger.reject(dataset, digest, reason=one.smaller(smaller), **by)
        elif decision == "refuse" and reason.strip():
            receipt = ledger.reject(dataset, digest, reason=" ".join(reason.split()), **by)
        else:
            raise Refused(400, "Expected a decision, and a reason for a refusal.")
        # Two people may decide at the same moment: the ledger keeps the line that came first.
        first = one.decision()
        if first is None or first.index != receipt.index or first.approver != session.user.name:
            raise PolicyError("It was decided before; the first decision stands.")


def say_total(one: Described, after: Guarantee) -> str:
    """Say what could be told about one row or person once this answer is added to all earlier ones."""
    total = (
        "With all earlier answers from this data set together, in at most "
        f"{in_a_hundred(best_guess(after))} cases: {after}."
    )
    is_divided = one.owner.ledger.vintage(one.owner.dataset) is not None and after.unit.name != "row"
    return f"{total} A {after.unit.name} with rows in other vintages may lose more." if is_divided else total


def say_state(one: Described) -> str:
    """Say what became of a question; the text is empty while nobody has decided."""
    decided, ledger = one.decision(), one.owner.ledger
    if decided is None:
        return ""
    when = f"{decided.time[:16].replace('T', ' ')} UTC, line {decided.index}"
    if decided.kind == "refusal":
        return f"Refused by {decided.approver} ({when}): {decided.detail['text']}"
    debt = ledger.debt(one.owner.dataset, one.waiting.digest)
    answer = {
        None: "The answer is on its way.",
        "owed": "It is charged; the answer is being computed.",
        "kept": "It is charged, answered and signed.",
        "failed": "It is charged, and the answer failed.",
    }[None if debt is None else debt.state]
    return f"Approved by {decided.approver} ({when}). {answer}"


__all__ = ["COOKIE", "Console", "Described", "Inbox", "Refused", "SignedOut", "describe", "say_state"]
