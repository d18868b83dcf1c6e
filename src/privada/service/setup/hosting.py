"""Serve the guided page on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privada.service.console.guard import local_origins
from privada.service.console.hosting import require_pages, run
from privada.service.ports import listen
from privada.service.setup.making import NewOwner

if TYPE_CHECKING:
    from privada.service.setup.page import SetUp


@contextmanager
def serve_set_up(
    owner: NewOwner, *, port: int = 0, passphrase: str | None = None
) -> Iterator[tuple[str, SetUp]]:
    """Serve the page of an owner that is to be made; yields its address, which holds a secret."""
    require_pages("The page")
    from privada.service.setup.page import SetUp, make_application

    listening = listen("--page", port)
    origins = local_origins(listening.getsockname()[1])
    page = SetUp(owner=owner, origins=origins, passphrase=passphrase)
    with run(make_application(page), listening):
        yield origins[0] + page.path, page


__all__ = ["serve_set_up"]
