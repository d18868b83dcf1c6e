"""The guided page: the questions of the terminal as one form, on this machine, until the owner is made.

Whoever has the address can use it: it holds a secret that is made anew each time. Nothing on it comes from
the rows; the names and declared types of columns come from the file's header.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.background import BackgroundTask

from privada.exceptions import PrivadaError
from privada.service.console import guard
from privada.service.console.application import STATIC
from privada.service.console.style import open_templates
from privada.service.setup.answers import KINDS, RELATIONS, WARNINGS, answers_of_form
from privada.service.setup.making import NewOwner

HERE = Path(__file__).parent
LAST_LOOK = 2.0  # seconds for the browser to fetch what the last page needs


@dataclass
class SetUp:
    """An owner that is being set up on a page.

    Parameters
    ----------
    owner : NewOwner
    origins : tuple of str
        Where the page is served.
    passphrase : str, optional
        Protects the owner's key.
    """

    owner: NewOwner
    origins: tuple[str, ...]
    passphrase: str | None = field(default=None, repr=False)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    written: tuple[Path, ...] = ()
    _done: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        self._pages = open_templates(HERE / "pages")

    @property
    def path(self) -> str:
        """The page's path, with its secret."""
        return f"/set-up/{self.secret}"

    def render(self, said: Mapping[str, str], *, error: str = "", status: int = 200) -> Response:
        """The form with what was said so far, or what was written."""
        text = self._pages.get_template("setup.html").render(
            title=f"Set up {self.owner.dataset}",
            user=None,
            places=(),
            here="",
            sign_out="",
            error=error,
            owner=self.owner,
            said=said,
            path=self.path,
            kinds=KINDS,
            relations=RELATIONS,
            warnings=WARNINGS,
            written=self.written,
        )
        return HTMLResponse(text, status_code=status)

    def make(self, said: Mapping[str, str]) -> Response:
        """Check the answers and write the owner; what is wrong is said above the form."""
        if self.written:
            return self.render(said)
        try:
            answers = answers_of_form(said, self.owner.names)
            answers.check()
            self.written, _ = self.owner.create(self.owner.text(answers=answers), passphrase=self.passphrase)
        except PrivadaError as error:
            return self.render(said, error=str(error), status=400)
        return self.render(said)

    def end_if_written(self) -> None:
        """Let `wait` return once the reply that says so was sent; the style of that page is fetched yet."""
        if self.written:
            threading.Timer(LAST_LOOK, self._done.set).start()

    def wait(self) -> None:
        """Return when the owner is made and its last page was sent."""
        while not self._done.wait(1.0):  # in slices, so that Ctrl-C is heard
            pass


def make_application(page: SetUp) -> FastAPI:
    """The application: one form, and the files that it needs."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def guarded(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        no = guard.refuse(request.method, request.headers, page.origins)
        reply = await go_on(request) if no is None else Response(no[1], no[0], media_type="text/plain")
        reply.headers.update(guard.HEADERS)
        return reply

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        kind, body = STATIC.get(name, ("", b""))
        return Response(body, 200 if kind else 404, media_type=kind or "text/plain")

    @app.get("/set-up/{secret}")
    def form(secret: str) -> Response:
        return page.render({}) if _same(secret, page) else _unknown()

    @app.post("/set-up/{secret}")
    async def make(secret: str, request: Request) -> Response:
        if not _same(secret, page):
            return _unknown()
        sent: Any = await request.form(max_files=0, max_fields=5000)
        reply = page.make({key: value for key, value in sent.items() if isinstance(value, str)})
        reply.background = BackgroundTask(page.end_if_written)
        return reply

    return app


def _same(secret: str, page: SetUp) -> bool:
    return secrets.compare_digest(secret.encode(), page.secret.encode())


def _unknown() -> Response:
    return Response("Open the address that privada owner init --page printed.", 404, media_type="text/plain")


__all__ = ["SetUp", "make_application"]
