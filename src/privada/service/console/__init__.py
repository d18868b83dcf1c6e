"""The owner's console: pages on this machine on which a person sees what is asked, and decides.

`users` knows who may sign in and who is signed in, `oidc` talks to an identity provider. `console` describes
the questions that wait and writes the decisions, `budget` and `history` read the ledger, and `application`
has the pages. No page shows a row or an exact statistic: the console reads envelopes, questions and the
ledger, and never opens rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privada.service.console.users import Users
    from privada.service.serving import Service


@contextmanager
def host(
    service: Service, users: Users, port: int | None, *, oidc: Path | None = None
) -> Iterator[str | None]:
    """Serve the console while a service runs; yield its address. With ``port=None`` nothing is served.

    ``oidc`` is the file of a sign-in by OpenID Connect, if there is one.
    """
    if port is None:
        yield None
        return
    from privada._extras import require
    from privada.exceptions import InputError
    from privada.service.ports import listen, require_pages

    require_pages("The console")
    from privada.service.console.application import make_application
    from privada.service.console.console import Console, Inbox
    from privada.service.web import local_origins, run_pages

    if oidc is not None:
        require("console", "authlib", "requests", purpose="A sign-in by OpenID Connect")
    elif not users.read():
        raise InputError(f"Nobody may sign in: add people to {users.path} with privada owner console-user.")
    listening = listen("--console-port", port)
    origins = local_origins(listening.getsockname()[1])
    console = Console(inbox=Inbox(service), users=users, origins=origins, oidc=oidc)
    with closing(listening), run_pages(make_application(console), listening):
        yield origins[0]


__all__ = ["host"]
