"""Run the console beside a service, on this machine, for as long as the service runs."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from privada._extras import require
from privada.exceptions import InputError
from privada.service.console.users import Users
from privada.service.ports import LocalPort, listen
from privada.service.serving import Service


@contextmanager
def host(
    service: Service, users: Users, port: int | None, *, oidc: Path | None = None
) -> Iterator[str | None]:
    """Serve the console while a service runs; yields its address. None as the port serves nothing.

    ``oidc`` is the file of a sign-in by OpenID Connect, if there is one.
    """
    if port is None:
        yield None
        return
    require_pages("The console")
    from privada.service.console.application import make_application
    from privada.service.console.guard import local_origins
    from privada.service.console.inbox import Inbox
    from privada.service.console.stage import Console

    if oidc is not None:
        require("console", "authlib", "requests", purpose="A sign-in by OpenID Connect")
    elif not users.read():
        raise InputError(f"Nobody may sign in: add people to {users.path} with privada owner console-user.")
    listening = listen("--console-port", port)
    origins = local_origins(listening.getsockname()[1])
    console = Console(inbox=Inbox(service), users=users, origins=origins, oidc=oidc)
    with closing(listening), run(make_application(console), listening):
        yield origins[0]


def require_pages(purpose: str) -> None:
    """Name the extra that pages need if it is not there."""
    require("console", "fastapi", "jinja2", "multipart", "uvicorn", purpose=purpose)


@contextmanager
def run(application: Any, listening: socket.socket) -> Iterator[None]:
    """Serve pages in a thread of this process."""
    import uvicorn

    from privada.service.console.connection import PageGate

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


__all__ = ["host", "listen", "require_pages", "run"]
