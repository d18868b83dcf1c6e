"""The local ports of a service: how many connections each may have, and how long each of them may take.

A client that connects and sends nothing, or sends it byte by byte, costs one descriptor for a few seconds.
The head of a request has `ARRIVAL` seconds to arrive, and there are `WHOLE` seconds until the reply is sent.
When a port has as many connections as it may have and one more arrives, the oldest without a complete request
is dropped: a client that is prompt is served however many others are not. Two ports together use about a
quarter of the process's descriptors; the rest is for the answers.

What goes wrong on a connection is the client's fault more often than the service's. It is counted, and the
log has at most one line for each reason in `LOG_EVERY` seconds, without a traceback.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from privada._extras import require
from privada.exceptions import InputError

LOG = logging.getLogger("privada.service")
HOST = "127.0.0.1"
ARRIVAL = 5.0  # seconds for the head of a request, from when the connection could have sent it
WHOLE = 60.0  # seconds for a request with its body and its reply
LARGEST_HEAD = 1 << 14  # bytes
MOST = 64  # connections of a port, if the process may have a thousand descriptors
QUEUE = 4096  # connections that the system keeps for us until they are accepted; they cost no descriptor
STOP = 10.0  # seconds that a server may take to stop
LOG_EVERY = 60.0


class Connection(ABC):
    """One client of a port, as the port sees it."""

    since: float  # when it could first send its present request, by the monotonic clock
    transport: asyncio.Transport

    @property
    @abstractmethod
    def has_head(self) -> bool:
        """Whether the head of a request has arrived, and the request has no reply yet."""

    @property
    @abstractmethod
    def has_request(self) -> bool:
        """Whether a complete request has arrived that has no reply yet."""


class Gate(asyncio.Protocol, Connection):
    """A connection until the head of its first request has arrived: little work, however many there are."""

    def __init__(self, port: LocalPort) -> None:
        self._port, self.head = port, bytearray()

    @property
    def has_head(self) -> bool:
        """It has none."""
        return False

    @property
    def has_request(self) -> bool:
        """It has none."""
        return False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place on the port."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._port.admit(self)

    def connection_lost(self, _: Exception | None) -> None:
        """Leave the port."""
        self._port.forget(self)

    def data_received(self, data: bytes) -> None:
        """Wait for the end of the head."""
        if self.transport.is_closing():
            return
        self.head += data
        if b"\r\n\r\n" in self.head or len(self.head) > LARGEST_HEAD:
            self.go_on()

    @abstractmethod
    def go_on(self) -> None:
        """Serve the request whose head has arrived, or is too large; called again when more arrives."""


class LocalPort:
    """A listening socket of this machine, as `listen` opens it, whose connections are few and short."""

    def __init__(self, listening: socket.socket) -> None:
        self.listening, self.number = listening, int(listening.getsockname()[1])
        self.most = most_connections()
        self._connections: set[Connection] = set()
        self._troubles: Counter[str] = Counter()
        self._logged = -LOG_EVERY

    @property
    def at_once(self) -> int:
        """How many connections a server accepts in one turn of its loop: the backlog to state to asyncio.

        What a new connection sent is read a few turns later; until then, others must not push it out.
        """
        return max(1, self.most // 4)

    def admit(self, connection: Connection) -> None:
        """Count a new connection; if there are too many, the oldest one without a request is dropped."""
        connection.since = time.monotonic()
        if len(self._connections) >= self.most:
            oldest = min(self._connections, key=lambda other: (other.has_request, other.since))
            self._drop(oldest, "too many connections")
        self._connections.add(connection)

    def hand_over(self, old: Connection, new: Connection) -> None:
        """Count a connection in the place of another object for it."""
        new.since = old.since
        self._connections.discard(old)
        self._connections.add(new)

    def forget(self, connection: Connection) -> None:
        """Count a connection no longer: it has ended."""
        self._connections.discard(connection)

    def widen_queue(self) -> None:
        """Let more connections wait than are accepted at once; call it when the server is listening."""
        self.listening.listen(QUEUE)

    def note(self, trouble: str) -> None:
        """Count something that went wrong on a connection, and log it unless that was done just now."""
        self._troubles[trouble] += 1
        self._log_troubles()

    @contextmanager
    def run(self, serve: Callable[[], Awaitable[object]], stop: Callable[[], object]) -> Iterator[None]:
        """Run a server in an event loop of a thread of its own; ``stop`` ends it from another thread."""

        def note_failure(_: object, context: dict[str, Any]) -> None:
            error = context.get("exception")
            number = error.errno if isinstance(error, OSError) else None
            self.note(errno.errorcode.get(number or 0) or type(error).__name__)

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(note_failure)
            watching = asyncio.create_task(self._watch())
            try:
                await serve()
            finally:
                watching.cancel()
                for connection in [*self._connections]:
                    connection.transport.abort()
                await asyncio.sleep(0)  # for the transports to close
                self._log_troubles(at_once=True)

        thread = threading.Thread(target=lambda: asyncio.run(main()), name=f"port {self.number}", daemon=True)

        def intercept(record: logging.LogRecord) -> bool:
            """Whether a record of a server's library is logged as it is: not if it is about this port."""
            # The same libraries may serve others in this process, who log as they like.
            if record.thread != thread.ident:
                return True
            error = record.exc_info[1] if record.exc_info else None
            self.note(type(error).__name__ if error else record.msg)
            return False

        # Their own form is a traceback for each record, which could also hold data.
        libraries = [logging.getLogger(name) for name in ("asyncio", "uvicorn.error")]
        for library in libraries:
            library.addFilter(intercept)
        thread.start()
        try:
            yield
        finally:
            stop()
            thread.join(STOP)
            self.listening.close()
            for library in libraries:
                library.removeFilter(intercept)

    async def _watch(self) -> None:
        """Drop what takes too long."""
        while True:
            await asyncio.sleep(min(1.0, ARRIVAL / 4))
            now = time.monotonic()
            for connection in [*self._connections]:
                # A reply that its client does not read is in the transport's buffer.
                at_work = connection.has_head or connection.transport.get_write_buffer_size() > 0
                if now - connection.since > (WHOLE if at_work else ARRIVAL):
                    self._drop(connection, "too slow")
            self._log_troubles()

    def _drop(self, connection: Connection, trouble: str) -> None:
        self.forget(connection)
        connection.transport.abort()
        self.note(trouble)

    def _log_troubles(self, *, at_once: bool = False) -> None:
        if not self._troubles or not (at_once or time.monotonic() - self._logged >= LOG_EVERY):
            return
        self._logged = time.monotonic()
        for trouble, count in sorted(self._troubles.items()):
            LOG.warning("connections", extra={"port": self.number, "reason": trouble, "count": count})
        self._troubles.clear()


def require_pages(purpose: str) -> None:
    """Raise an error that names the extra that pages need, if it is not installed."""
    require("console", "fastapi", "jinja2", "multipart", "uvicorn", purpose=purpose)


def listen(flag: str, port: int) -> socket.socket:
    """A socket of this machine only; an error names the option of the port."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise InputError(f"{flag}: port {port} cannot be used: {error.strerror}.") from None
    listening.listen(QUEUE)
    return listening


def most_connections() -> int:
    """How many connections a port may have: a sixteenth of the process's descriptors, and at most `MOST`."""
    try:
        import resource
    except ImportError:  # a system without such a limit
        return MOST
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if descriptors < 0 else max(4, min(MOST, descriptors // 16))


def local_hosts(port: int) -> tuple[str, ...]:
    """The Host headers of requests that mean this machine, and not a name that was made to point to it."""
    return tuple(f"{host}:{port}" for host in (HOST, "localhost"))


__all__ = ["ARRIVAL", "HOST", "WHOLE", "Connection", "Gate", "LocalPort", "listen", "local_hosts"]
