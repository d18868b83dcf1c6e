"""The pages of the history: search, verify, a release in words, and one page to print."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from starlette.datastructures import UploadFile

from privada.exceptions import PrivadaError
from privada.service.console import history
from privada.service.console.budget_pages import find_vintages
from privada.service.console.history import Search
from privada.service.console.receipts import MOST_FILES, check_uploads
from privada.service.console.sessions import Session
from privada.service.console.stage import Console, Refused

Text = Annotated[str, Query(max_length=200)]


def add_history(app: FastAPI, console: Console) -> None:
    """Add the pages to the application."""
    viewer = Depends(console.needs("viewer"))

    def show(session: Session, search: Search, **more: Any) -> Response:
        owners = [
            (desk.name, history.tables(desk.owner, search), history.answered(desk.owner, search))
            for desk in console.inbox.desks
        ]
        common: dict[str, Any] = {"title": "History", "here": "/history", "owners": owners, "search": search}
        common |= {"checked": [], "receipts": [], "token": session.token("verify")}
        return console.page("history.html", session, **(common | more))

    _add_receipts(app, console, show)

    @app.get("/history")
    def lines(
        learner: Text = "",
        method: Text = "",
        since: Text = "",
        until: Text = "",
        session: Session = viewer,
    ) -> Response:
        return show(session, Search(learner=learner, method=method, since=since, until=until))

    @app.post("/verify")
    def verify(token: Annotated[str, Form(max_length=64)], session: Session = viewer) -> Response:
        if not session.owns(token, "verify"):
            raise Refused(403, "The form is not one of this session.")
        try:
            checked = [f"{desk.name}: {history.verify(desk.owner)}" for desk in console.inbox.desks]
        except PrivadaError as error:
            return show(session, Search(), status=409, error=f"The ledger does not hold: {error}")
        return show(session, Search(), checked=checked)

    @app.get("/export")
    def export(session: Session = viewer) -> Response:
        owners = [(d.name, history.tables(d.owner, Search(), most=None)) for d in console.inbox.desks]
        said: dict[str, Any] = {"title": "What was asked, decided and released"}
        said |= {"now": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
        said |= {"owners": owners, "vintages": find_vintages(console.inbox.desks)}
        return console.page("export.html", session, **said)

    @app.get("/releases/{owner}/{digest}")
    def release(owner: str, digest: str, session: Session = viewer) -> Response:
        desk = next((each for each in console.inbox.desks if each.name == owner), None)
        opened = None if desk is None else history.open_release(desk.owner, digest)
        if opened is None:
            raise Refused(404, "No release is kept for this question.")
        return console.page("release.html", session, title="A release", one=opened, here="/history")


def _add_receipts(app: FastAPI, console: Console, show: Callable[..., Response]) -> None:
    @app.post("/receipts")
    async def receipts(request: Request) -> Response:
        session = console.session(request)  # before the body is read
        async with request.form(max_files=MOST_FILES, max_fields=1) as form:
            if not session.owns(str(form.get("token", "")), "verify"):
                raise Refused(403, "The form is not one of this session.")
            given = [each for each in form.getlist("files") if isinstance(each, UploadFile)]
            files = [(each.filename or "", await each.read()) for each in given if each.filename]
        if not files:
            raise Refused(400, "Expected releases, or receipts as JSON.")
        owners = [desk.owner for desk in console.inbox.desks]
        found = await run_in_threadpool(check_uploads, owners, files)
        return await run_in_threadpool(show, session, Search(), receipts=found)


__all__ = ["add_history"]
