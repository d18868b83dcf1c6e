"""What all pages of the console share: the session of a request, the layout, and a question's page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from privada.exceptions import PolicyError, PrivadaError
from privada.privacy.guarantee import Guarantee
from privada.report.wording import best_guess, in_a_hundred
from privada.service.console.inbox import SMALLER, Described, Inbox
from privada.service.console.oidc.settings import Member, OidcSettings
from privada.service.console.sessions import Attempts, Session, Sessions
from privada.service.console.style import open_templates
from privada.service.console.users import Person, Users

HOME = Path(__file__).parent
COOKIE = "privada-console"
PLACES = (("/", "Inbox"), ("/budget", "Budget"), ("/history", "History"))


class SignedOut(Exception):  # noqa: N818 - not an error: the way to the sign-in page
    """The request belongs to no session."""


class Refused(Exception):  # noqa: N818 - what a page says, with its status
    """A request that is understood and not done."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
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
        self._pages = open_templates()

    def session(self, request: Request) -> Session:
        """The session of a request; `SignedOut` if there is none, or if its user was changed or removed."""
        cookie = request.cookies.get(COOKIE, "")
        found = self.sessions.find(cookie)
        if found is None or not self._knows(found.user):
            self.sessions.end(cookie)
            raise SignedOut
        return found

    def _knows(self, person: Person) -> bool:
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
        """A dependency of a page: the session of a request, if its user's role includes another."""

        def check(request: Request) -> Session:
            session = self.session(request)
            if not session.user.may(role):
                raise Refused(403, f"This takes the role of {role}; yours is {session.user.role}.")
            return session

        return check

    def page(
        self, name: str, session: Session | None, *, status: int = 200, error: str = "", **more: Any
    ) -> Response:
        """A page in the layout of all."""
        common = {
            "user": None if session is None else session.user,
            "places": PLACES,
            "here": more.pop("here", ""),
            "sign_out": "" if session is None else session.token("sign out"),
            "error": error,
        }
        return HTMLResponse(self._pages.get_template(name).render(**common, **more), status_code=status)

    def find(self, owner: str, digest: str, asked: str) -> Described:
        """A question that waits or waited; a page that says so if there is none."""
        found = self.inbox.find(owner, digest, asked)
        if found is None:
            raise Refused(404, "This question does not wait for a decision any more, or never did.")
        return found

    def show(self, session: Session, one: Described, *, status: int = 200, error: str = "") -> Response:
        """The page of a question."""
        quote, decided = one.quote(), one.decision()
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
            may_decide=decided is None and session.user.may("approver"),
            token=session.token(*one.bound),
        )

    def decide(self, session: Session, one: Described, *, decision: str, smaller: str, reason: str) -> None:
        """Write the decision of the person who is signed in; the first decision stands."""
        ledger, by = one.owner.ledger, session.user.name
        said: dict[str, Any] = {"by": by, "asker": one.asker}
        if decision == "approve":
            receipt = ledger.approve(one.owner.dataset, one.waiting.digest, **said)
        elif decision == "smaller" and smaller in SMALLER:
            said["reason"] = one.smaller(smaller)
            receipt = ledger.reject(one.owner.dataset, one.waiting.digest, **said)
        elif decision == "refuse" and reason.strip():
            said["reason"] = " ".join(reason.split())
            receipt = ledger.reject(one.owner.dataset, one.waiting.digest, **said)
        else:
            raise Refused(400, "Expected a decision, and a reason for a refusal.")
        first = one.decision()
        if first is None or first.index != receipt.index or first.approver != by:
            raise PolicyError("It was decided before; the first decision stands.")


def say_total(one: Described, after: Guarantee) -> str:
    """What could be told about one row or person once this answer is added to all earlier ones."""
    said = (
        "With all earlier answers from this data set together, in at most "
        f"{in_a_hundred(best_guess(after))} cases: {after}."
    )
    divided = one.owner.ledger.vintage(one.owner.dataset) is not None and after.unit.name != "row"
    return f"{said} A {after.unit.name} with rows in other vintages may lose more." if divided else said


def say_state(one: Described) -> str:
    """What became of a question, empty while nobody has decided."""
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


__all__ = ["COOKIE", "HOME", "Console", "Refused", "SignedOut", "say_state", "say_total"]
