"""The pages of the console, as an ASGI application."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile

from privada._text import printable_line
from privada.exceptions import PolicyError, PrivadaError
from privada.service.console import history
from privada.service.console.budget import add_budget_pages, find_vintages
from privada.service.console.console import COOKIE, Console, Refused, SignedOut
from privada.service.console.history import LARGEST_UPLOAD, MOST_FILES, Search, check_uploads
from privada.service.console.oidc import LONGEST, OidcSettings, PendingSignIns, Provider
from privada.service.console.users import Session
from privada.service.web import make_pages

START, BACK = "/sign-in/oidc", "/sign-in/oidc/back"
SIGN_IN_COOKIE = "privada-sign-in"
Field = Annotated[str, Form(max_length=2000)]
OptionalField = Annotated[str, Form(max_length=2000)]
Token = Annotated[str, Form(max_length=64)]
Text = Annotated[str, Query(max_length=200)]
LongText = Annotated[str, Query(max_length=4000)]


def make_application(console: Console) -> FastAPI:
    """Return the application with all its pages."""
    app = make_pages(console.origins, uploads={"/receipts": LARGEST_UPLOAD})

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

    add_sign_in_pages(app, console)
    add_question_pages(app, console)
    add_budget_pages(app, console)
    add_history_pages(app, console)
    return app


def add_sign_in_pages(app: FastAPI, console: Console) -> None:
    """Add the sign-in by a passphrase, and by an identity provider if there is one."""
    provider = "" if console.oidc is None else add_oidc_pages(app, console, console.oidc)

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


def add_oidc_pages(app: FastAPI, console: Console, file: Path) -> str:
    """Add the way to the identity provider and the way back; return its name, for the link to it.

    The way there is a link, not a form: the content security policy lets no form lead elsewhere. The way back
    comes from another site, so its cookie is lax, and the session's cookie, which is strict, is only sent
    once the browser goes on from a page of the console's own.
    """
    pending = PendingSignIns()

    @app.get(START)
    def start(request: Request) -> Response:
        host = request.headers["host"]
        origin = next(origin for origin in console.origins if origin.endswith(f"//{host}"))
        provider = read_provider(file)
        try:
            state, cookie, sign_in = pending.begin(origin + BACK, provider.discover())
            reply = RedirectResponse(provider.address(sign_in, state), 303)
        except PrivadaError as error:
            raise Refused(502, str(error)) from None
        flags = {"httponly": True, "samesite": "lax", "secure": origin.startswith("https:")}
        reply.set_cookie(SIGN_IN_COOKIE, cookie, path=START, max_age=int(LONGEST), **flags)  # type: ignore[arg-type]
        return reply

    @app.get(BACK)
    def back(
        request: Request, state: LongText = "", code: LongText = "", error: LongText = "", iss: LongText = ""
    ) -> Response:
        provider = read_provider(file)
        sign_in = pending.take(state, request.cookies.get(SIGN_IN_COOKIE, ""))
        if sign_in is None:
            raise Refused(403, "This sign-in is over, was used before, or was begun in another browser.")
        # RFC 9207: an answer of another provider must not be taken for this one's.
        if iss not in ("", provider.settings.issuer):
            raise Refused(403, "The answer comes from another issuer.")
        if error or not code:
            reason = printable_line(error)[:100] or "no code"
            raise Refused(403, f"The identity provider did not sign you in: {reason}.")
        try:
            person = provider.settings.person(provider.claims(sign_in, code))
        except PrivadaError as fault:
            raise Refused(403, str(fault)) from None
        if person is None:
            raise Refused(403, "The identity provider knows you, but nobody gave you a role here.")
        reply = console.page("signed_in.html", None, title="Signed in", person=person)
        console.sign_in(reply, person)
        reply.delete_cookie(SIGN_IN_COOKIE, path=START, httponly=True, samesite="lax")
        return reply

    return OidcSettings.read(file).host


def read_provider(file: Path) -> Provider:
    """Return the provider that the owner's file declares now, or raise `Refused`."""
    try:
        return Provider(OidcSettings.read(file))
    except PrivadaError:  # only the owner may learn what is wrong with the file
        raise Refused(500, f"{file.name} cannot be read; the owner has to correct it.") from None


def add_question_pages(app: FastAPI, console: Console) -> None:
    """Add the inbox, and the page on which a question is decided."""
    viewer, approver = Depends(console.needs("viewer")), Depends(console.needs("approver"))

    @app.get("/")
    def inbox(session: Session = viewer) -> Response:
        return console.page("inbox.html", session, title="Inbox", here="/", waiting=console.inbox.waiting())

    @app.get("/waiting")
    def waiting(session: Session = viewer) -> Response:
        return console.page("waiting.html", session, waiting=console.inbox.waiting())

    @app.get("/questions/{owner}/{digest}/{identity}")
    def question(owner: str, digest: str, identity: str, session: Session = viewer) -> Response:
        return console.show(session, console.find(owner, digest, identity))

    @app.post("/questions/{owner}/{digest}/{identity}")
    def decide(
        owner: str,
        digest: str,
        identity: str,
        token: Field,
        decision: Field,
        stated: Annotated[str, Form(alias="digest", max_length=64)],
        smaller: OptionalField = "",
        reason: OptionalField = "",
        session: Session = approver,
    ) -> Response:
        one = console.find(owner, digest, identity)
        if stated != digest or not session.owns(token, *one.bound):
            raise Refused(403, "The form is not one of this session, or is about another question.")
        try:
            console.decide(session, one, decision=decision, smaller=smaller, reason=reason)
        except PolicyError as error:
            return console.show(session, one, status=409, error=str(error))
        except PrivadaError as error:
            return console.show(session, one, status=400, error=str(error))
        return RedirectResponse(one.path, 303)


def add_history_pages(app: FastAPI, console: Console) -> None:
    """Add the pages of the history: search, verify, compare receipts, print, and a release in words."""
    viewer, desks = Depends(console.needs("viewer")), console.inbox.desks
    show = partial(show_history, console)
    add_receipts_page(app, console)

    @app.get("/history")
    def lines(
        learner: Text = "", method: Text = "", since: Text = "", until: Text = "", session: Session = viewer
    ) -> Response:
        return show(session, Search(learner=learner, method=method, since=since, until=until))

    @app.post("/verify")
    def verify(token: Token, session: Session = viewer) -> Response:
        if not session.owns(token, "verify"):
            raise Refused(403, "The form is not one of this session.")
        try:
            checked = [f"{desk.name}: {history.verify(desk.owner)}" for desk in desks]
        except PrivadaError as error:
            return show(session, Search(), status=409, error=f"The ledger does not hold: {error}")
        return show(session, Search(), checked=checked)

    @app.get("/export")
    def export(session: Session = viewer) -> Response:
        return console.page(
            "export.html",
            session,
            title="What was asked, decided and released",
            now=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            owners=[(desk.name, history.tabulate_lines(desk.owner, Search(), most=None)) for desk in desks],
            vintages=find_vintages(desks),
        )

    @app.get("/releases/{owner}/{digest}")
    def release(owner: str, digest: str, session: Session = viewer) -> Response:
        desk = next((desk for desk in desks if desk.name == owner), None)
        opened = None if desk is None else history.open_release(desk.owner, digest)
        if opened is None:
            raise Refused(404, "No release is kept for this question.")
        return console.page("release.html", session, title="A release", one=opened, here="/history")


def add_receipts_page(app: FastAPI, console: Console) -> None:
    """Add the comparison of receipts, whose files are read only for somebody who is signed in."""

    @app.post("/receipts")
    async def receipts(request: Request) -> Response:
        session = console.session(request)  # before the body is read
        async with request.form(max_files=MOST_FILES, max_fields=1) as form:
            if not session.owns(str(form.get("token", "")), "verify"):
                raise Refused(403, "The form is not one of this session.")
            files = [
                (upload.filename, await upload.read())
                for upload in form.getlist("files")
                if isinstance(upload, UploadFile) and upload.filename
            ]
        owners = [desk.owner for desk in console.inbox.desks]
        if not files:
            raise Refused(400, "Expected releases, or receipts as JSON.")
        tables = await run_in_threadpool(check_uploads, owners, files)
        return await run_in_threadpool(show_history, console, session, Search(), receipts=tables)


def show_history(console: Console, session: Session, search: Search, **values: Any) -> Response:
    """Return the page of the lines that a search finds, and of what was checked."""
    owners = [
        (desk.name, history.tabulate_lines(desk.owner, search), history.list_answered(desk.owner, search))
        for desk in console.inbox.desks
    ]
    common: dict[str, Any] = {"title": "History", "here": "/history", "owners": owners, "search": search}
    common |= {"checked": [], "receipts": [], "token": session.token("verify")}
    return console.page("history.html", session, **(common | values))


__all__ = ["BACK", "SIGN_IN_COOKIE", "START", "make_application"]
