"""A connection to the console or to the set-up page, as uvicorn serves it and as its port looks at it."""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from privada.service.ports import Connection, LocalPort


class PageConnection(H11Protocol, Connection):
    """Uvicorn's connection, with the limits of a port.

    Uvicorn counts time between a reply and the next request only, and counts connections once their request
    has arrived. So it would keep those that say nothing for ever.
    """

    port: ClassVar[LocalPort]

    @property
    def has_head(self) -> bool:
        """Whether uvicorn has begun with a request and has not ended it."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    @property
    def has_request(self) -> bool:
        """The same, for one whose body is there."""
        return self.has_head and not self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place on the port."""
        super().connection_made(transport)
        self.port.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the port."""
        self.port.forget(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The next request has as much time as this one."""
        self.since = time.monotonic()
        super().on_response_complete()


__all__ = ["PageConnection"]
