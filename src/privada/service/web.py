"""What the pages of the console and of the set-up share: which requests are heard, the layout, the server.

A page of another origin can make a browser send requests here, and a name of somebody else's can be made to
point to this machine. So the Host must be the console's own, whatever is changed must come from its own
Origin, and no reply may be framed, cached, sniffed or load anything from elsewhere.
"""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from privada.report.ledger import percent
from privada.report.page import CSS as REPORT
from privada.report.page import Score, badge_row, score_row, table_block
from privada.service.ports import Connection, Gate, LocalPort, local_hosts

HOME = Path(__file__).parent
CSS = REPORT + "\n" + (HOME / "static/console.css").read_text(encoding="utf-8")
STATIC = {
    "console.css": ("text/css; charset=utf-8", CSS.encode()),
    "htmx.min.js": ("text/javascript; charset=utf-8", (HOME / "static/htmx.min.js").read_bytes()),
    "icon.svg": ("image/svg+xml", (HOME / "static/icon.svg").read_bytes()),
}
LARGEST_FORM = 1 << 16  # bytes
MOST_DIGITS = 12  # of a size
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # under no-referrer, browsers send forms with the Origin "null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_SMALL_FORM = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,5})[ \t]*\r\n")


def local_origins(port: int) -> tuple[str, ...]:
    """Return the origins of pages that are served on this machine only."""
    return tuple(f"http://{host}" for host in local_hosts(port))


def refuse(
    method: str, headers: Mapping[str, str], origins: tuple[str, ...], *, largest: int = LARGEST_FORM
) -> tuple[int, str] | None:
    """Return the status and the reason with which a request is refused; None if it is heard.

    >>> own = ("http://127.0.0.1:8400",)
    >>> refuse("GET", {"host": "127.0.0.1:8400"}, own)
    >>> refuse("GET", {"host": "evil.example"}, own)
    (421, 'This is not the console of that name.')
    >>> refuse("POST", {"host": "127.0.0.1:8400", "origin": "https://evil.example"}, own)
    (403, 'The form does not come from the console.')
    """
    if headers.get("host", "") not in {urlsplit(origin).netloc for origin in origins}:
        return 421, "This is not the console of that name."
    if method in ("GET", "HEAD"):
        return None
    if method != "POST":
        return 405, "The console knows GET and POST."
    if headers.get("origin", "") not in origins:
        return 403, "The form does not come from the console."
    # A body that comes in chunks states no size, and could be of any.
    size = headers.get("content-length", "")
    is_sized = size.isascii() and size.isdigit() and len(size) < MOST_DIGITS
    if "transfer-encoding" in headers or not is_sized or int(size) > largest:
        return 413, "The form is too large, or does not say how large it is."
    return None


def make_pages(origins: tuple[str, ...], *, uploads: Mapping[str, int] | None = None) -> FastAPI:
    """Return an application that checks every request and has the static files; pages are added to it.

    It has no interface description, which would load scripts from elsewhere.

    Parameters
    ----------
    origins : tuple of str
        Where the pages are served.
    uploads : mapping of path to int, optional
        The most bytes of the forms that may be larger than others.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def guarded(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        largest = (uploads or {}).get(request.url.path, LARGEST_FORM)
        refused = refuse(request.method, request.headers, origins, largest=largest)
        if refused is None:
            reply = await go_on(request)
        else:
            reply = Response(refused[1], refused[0], media_type="text/plain")
        reply.headers.update(HEADERS)
        return reply

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            return Response("There is no such file.", 404, media_type="text/plain")
        kind, body = STATIC[name]
        return Response(body, media_type=kind)

    return app


def open_templates() -> Environment:
    """Return the templates, which escape everything but the reports' own blocks."""

    def mark(block: Callable[..., str]) -> Callable[..., Markup]:
        # The reports have escaped the text of their blocks; it must not be escaped again.
        return lambda *args, **options: Markup(block(*args, **options))  # noqa: S704

    loader = FileSystemLoader(HOME / "pages")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.globals.update(badges=mark(badge_row), scores=mark(score_row), table=mark(table_block))
    templates.globals.update(percent=percent, score=Score)
    return templates


class PageGate(Gate):
    """A new connection, which is uvicorn's as soon as a request is there, with its form if that is small.

    Uvicorn counts only the time between a reply and the next request, and counts connections once their
    request has arrived: it would keep those that send nothing for ever. It also does much for each
    connection, so that many of these would keep others waiting.
    """

    port: ClassVar[LocalPort]

    def __init__(self, **settings: Any) -> None:
        super().__init__(self.port)
        self._settings = settings

    @property
    def has_head(self) -> bool:
        """Whether it waits for a form."""
        return b"\r\n\r\n" in self.head

    def go_on(self) -> None:
        """Hand over to uvicorn, which gets every byte as it came."""
        head = self.head.partition(b"\r\n\r\n")[0].lower() + b"\r\n"
        # A client that expects to be told to go on sends no form before.
        size = _SMALL_FORM.search(head) if self.has_head and b"\r\nexpect:" not in head else None
        if size is not None and len(self.head) < len(head) + 2 + int(size[1]):
            return
        connection = PageConnection(self.port, **self._settings)
        self.transport.set_protocol(connection)
        connection.connection_made(self.transport)
        self.port.hand_over(self, connection)
        connection.data_received(bytes(self.head))


class PageConnection(H11Protocol, Connection):
    """Uvicorn's connection, with the limits of a port."""

    def __init__(self, port: LocalPort, **settings: Any) -> None:
        super().__init__(**settings)
        self._port = port

    @property
    def has_head(self) -> bool:
        """Whether uvicorn has begun with a request and has not ended it."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    @property
    def has_request(self) -> bool:
        """The same, for a request whose body has arrived."""
        return self.has_head and not self.cycle.more_body

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the port."""
        self._port.forget(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The next request has as much time as this one."""
        self.since = time.monotonic()
        super().on_response_complete()


@contextmanager
def run_pages(application: FastAPI, listening: socket.socket) -> Iterator[None]:
    """Serve pages in a thread of this process."""
    port = LocalPort(listening)

    class Server(uvicorn.Server):
        """Uvicorn, with a longer queue than the number of connections that it accepts at once."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            port.widen_queue()

    config = uvicorn.Config(
        application,
        http=type("Gate", (PageGate,), {"port": port}),
        ws="none",
        backlog=port.at_once,
        log_config=None,
        log_level=logging.ERROR,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    server = Server(config)

    def stop() -> None:
        server.should_exit = True

    with port.run(lambda: server.serve([listening]), stop):
        yield


__all__ = [
    "CSS", "HEADERS", "LARGEST_FORM", "local_origins", "make_pages", "open_templates", "refuse", "run_pages",
]  # fmt: skip
