"""The guided page: the questions of the terminal as one form, on this machine, until the owner is made.

Whoever has the address can use it: it contains a secret that is made anew each time. Nothing on it comes
from the rows; the names and declared types of columns come from the file's header.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.background import BackgroundTask

from privada.exceptions import PrivadaError
from privada.service.answers import RELATIONS, WARNINGS, list_kinds, read_form
from privada.service.new_owner import NewOwner
from privada.service.web import make_pages, open_templates

LAST_LOOK = 2.0  # seconds for the browser to fetch what the last page needs


@dataclass
class SetUp:
    """An owner that is being set up on a page, which is served at some origins."""

    owner: NewOwner
    origins: tuple[str, ...]
    passphrase: str | None = field(default=None, repr=False)  # protects the owner's key
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    written: tuple[Path, ...] = ()
    _done: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        self._templates = open_templates()

    @property
    def path(self) -> str:
        """The page's path, with its secret."""
        return f"/set-up/{self.secret}"

    def render(self, form: Mapping[str, str], *, error: str = "", status: int = 200) -> Response:
        """Return the form with the answers so far, or what was written."""
        layout: dict[str, Any] = {"user": None, "places": (), "here": "", "sign_out": "", "error": error}
        text = self._templates.get_template("setup.html").render(
            layout,
            title=f"Set up {self.owner.dataset}",
            owner=self.owner,
            form=form,
            path=self.path,
            kinds=list_kinds(),
            relations=RELATIONS,
            warnings=WARNINGS,
            written=self.written,
        )
        return HTMLResponse(text, status_code=status)

    def make(self, form: Mapping[str, str]) -> Response:
        """Check the answers and write the owner; the first error is shown above the form."""
        if self.written:
            return self.render(form)
        try:
            answers = read_form(form, self.owner.names)
            answers.check()
            self.written, _ = self.owner.create(self.owner.text(answers=answers), passphrase=self.passphrase)
        except PrivadaError as error:
            return self.render(form, error=str(error), status=400)
        return self.render(form)

    def end_if_written(self) -> None:
        """Let `wait` return after the last reply; the browser still fetches the style of that page."""
        if self.written:
            threading.Timer(LAST_LOOK, self._done.set).start()

    def wait(self) -> None:
        """Return when the owner is made and its last page was sent."""
        while not self._done.wait(1.0):  # in slices, so that Ctrl-C is noticed
            pass


def make_application(page: SetUp) -> FastAPI:
    """Return the application: one form, and the files that it needs."""
    app = make_pages(page.origins)
    unknown = "Open the address that privada owner init --page printed."

    def is_known(secret: str) -> bool:
        # In constant time, so that nobody can guess the secret digit by digit.
        return secrets.compare_digest(secret.encode(), page.secret.encode())

    @app.get("/set-up/{secret}")
    def show(secret: str) -> Response:
        return page.render({}) if is_known(secret) else Response(unknown, 404, media_type="text/plain")

    @app.post("/set-up/{secret}")
    async def make(secret: str, request: Request) -> Response:
        if not is_known(secret):
            return Response(unknown, 404, media_type="text/plain")
        fields: Any = await request.form(max_files=0, max_fields=5000)
        reply = page.make({key: value for key, value in fields.items() if isinstance(value, str)})
        reply.background = BackgroundTask(page.end_if_written)
        return reply

    return app


__all__ = ["SetUp", "make_application"]
