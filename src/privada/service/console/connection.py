"""A connection to the console or to the set-up page, as uvicorn serves it and as its port looks at it."""

from __future__ import annotations

import re
import time
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from privada.service.ports import Connection, Gate, LocalPort

_SMALL_FORM = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,5})[ \t]*\r\n")


class PageGate(Gate):
    """A new connection, which is uvicorn's as soon as a request is there, with its form if that is small.

    Uvicorn counts time between a reply and the next request only, and counts connections once their request
    has arrived: it would keep those that say nothing for ever. And it does much for each connection, so that
    many of these would keep others waiting.
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
        size = _SMALL_FORM.search(head)
        # A client that expects to be told to go on sends no form before.
        if (
            self.has_head
            and size
            and b"\r\nexpect:" not in head
            and len(self.head) < len(head) + 2 + int(size[1])
        ):
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
        """The same, for one whose body is there."""
        return self.has_head and not self.cycle.more_body

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the port."""
        self._port.forget(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The next request has as much time as this one."""
        self.since = time.monotonic()
        super().on_response_complete()


__all__ = ["PageGate"]
