"""The pages of the console, as an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Form, Request
from fastapi.responses import RedirectResponse, Response

from privada.exceptions import PolicyError, PrivadaError
from privada.service.console import guard
from privada.service.console.budget_pages import add_budget
from privada.service.console.history_pages import add_history
from privada.service.console.oidc.pages import add_oidc
from privada.service.console.receipts import LARGEST_UPLOAD
from privada.service.console.sessions import Session
from privada.service.console.stage import COOKIE, HOME, Console, Refused, SignedOut
from privada.service.console.style import CSS

STATIC = {
    "console.css": ("text/css; charset=utf-8", CSS.encode()),
    "htmx.min.js": ("text/javascript; charset=utf-8", (HOME / "static/htmx.min.js").read_bytes()),
    "icon.svg": ("image/svg+xml", (HOME / "static/icon.svg").read_bytes()),
}
Field = Annotated[str, Form(max_length=2000)]
OptionalField = Annotated[str, Form(max_length=2000)]


def make_application(console: Console) -> FastAPI:
    """The application; it has no interface description, which would load scripts from elsewhere."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    _guard(app, console)
    _sign_in_pages(app, console)
    _question_pages(app, console)
    add_budget(app, console)
    add_history(app, console)
    return app


def _guard(app: FastAPI, console: Console) -> None:
    """Checks before every page, headers after it, and pages for what is not done."""

    @app.middleware("http")
    async def guarded(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        largest = LARGEST_UPLOAD if request.url.path == "/receipts" else guard.LARGEST_FORM
        no = guard.refuse(request.method, request.headers, console.origins, largest=largest)
        reply = await go_on(request) if no is None else Response(no[1], no[0], media_type="text/plain")
        reply.headers.update(guard.HEADERS)
        return reply

    @app.exception_handler(SignedOut)
    def sign_in_first(request: Request, _: Exception) -> Response:
        if request.headers.get("hx-request"):
            return Response(status_code=401, headers={"HX-Redirect": "/sign-in"})
        return RedirectResponse("/sign-in", 303)

    @app.exception_handler(Refused)
    def say_no(request: Request, refused: Exception) -> Response:
        session = console.sessions.find(request.cookies.get(COOKIE, ""))
        status = refused.status if isinstance(refused, Refused) else 500
        return console.page("message.html", session, title="Not done", status=status, error=str(refused))

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            raise Refused(404, "There is no such page.")
        kind, body = STATIC[name]
        return Response(body, media_type=kind)


def _sign_in_pages(app: FastAPI, console: Console) -> None:
    provider = "" if console.oidc is None else add_oidc(app, console, console.oidc)

    def show(status: int = 200, error: str = "") -> Response:
        ways = {"provider": provider, "by_passphrase": bool(console.users.read())}
        return console.page("sign_in.html", None, title="Sign in", status=status, error=error, **ways)

    @app.get("/sign-in")
    def form() -> Response:
        return show()

    @app.post("/sign-in")
    def sign_in(name: Field, passphrase: Field) -> Response:
        if not console.attempts.start(name):
            return show(429, "Too many sign-ins failed. Wait five minutes.")
        user = console.users.sign_in(name, passphrase)
        if user is None:
            return show(403, "This name and passphrase do not belong together.")
        console.attempts.succeed(name)
        reply = RedirectResponse("/", 303)
        console.sign_in(reply, user)
        return reply

    @app.post("/sign-out")
    def sign_out(request: Request, token: Field) -> Response:
        if not console.session(request).owns(token, "sign out"):
            raise Refused(403, "The form is not one of this session.")
        console.sessions.end(request.cookies.get(COOKIE, ""))
        reply = RedirectResponse("/sign-in", 303)
        reply.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return reply


def _question_pages(app: FastAPI, console: Console) -> None:
    viewer, approver = Depends(console.needs("viewer")), Depends(console.needs("approver"))

    @app.get("/")
    def inbox(session: Session = viewer) -> Response:
        return console.page("inbox.html", session, title="Inbox", here="/", waiting=console.inbox.waiting())

    @app.get("/waiting")
    def waiting(session: Session = viewer) -> Response:
        return console.page("waiting.html", session, waiting=console.inbox.waiting())

    @app.get("/questions/{owner}/{digest}/{asked}")
    def question(owner: str, digest: str, asked: str, session: Session = viewer) -> Response:
        return console.show(session, console.find(owner, digest, asked))

    @app.post("/questions/{owner}/{digest}/{asked}")
    def decide(
        owner: str,
        digest: str,
        asked: str,
        token: Field,
        decision: Field,
        stated: Annotated[str, Form(alias="digest", max_length=64)],
        smaller: OptionalField = "",
        reason: OptionalField = "",
        session: Session = approver,
    ) -> Response:
        one = console.find(owner, digest, asked)
        if stated != digest or not session.owns(token, *one.bound):
            raise Refused(403, "The form is not one of this session, or is about another question.")
        try:
            console.decide(session, one, decision=decision, smaller=smaller, reason=reason)
        except PolicyError as error:
            return console.show(session, one, status=409, error=str(error))
        except PrivadaError as error:
            return console.show(session, one, status=400, error=str(error))
        return RedirectResponse(one.path, 303)


__all__ = ["STATIC", "make_application"]
