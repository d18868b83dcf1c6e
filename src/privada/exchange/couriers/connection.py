"""A connection to a NATS server that comes back by itself.

A server that goes away is waited for: requests are sent again until ``patience`` seconds have passed, then
one `CourierError` says so. Every request may therefore arrive twice and must be one that can. One thread
reads; it never waits for those whom it tells.
"""

from __future__ import annotations

import secrets
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from urllib.parse import urlsplit

from privada.exceptions import CourierError
from privada.exchange.couriers.protocol import (
    Message,
    ProtocolError,
    Stream,
    introduce,
    read_error,
    read_message,
    write_message,
)

_ATTEMPT = 5.0  # seconds until a request is sent again although the connection stands
PAUSE = 0.1
_SILENCE = 10.0  # seconds after which the server is asked whether it is there; twice that, it is not
_PORT = 4222
_REPLIES = 1  # the subscription of all replies


@dataclass
class _Request:
    """A request under way, and what became of it."""

    subject: str
    done: threading.Event = field(default_factory=threading.Event)
    reply: Message | None = None
    fault: Exception | None = None

    def settle(self, reply: Message | None = None, fault: Exception | None = None) -> None:
        """Tell the one who waits."""
        self.reply, self.fault = reply, fault
        self.done.set()


class Connection:
    """One connection; any thread may use it.

    Parameters
    ----------
    servers : sequence of str
        URLs of the server, or of those of a cluster.
    tls : ssl.SSLContext, optional
        Who is trusted and which certificate is shown. The TLS handshake comes before anything else, so
        that nobody between can talk the client out of it.
    inbox : str, default="_INBOX"
        Subject below which this party receives replies.
    patience : float, default=20.0
        Seconds for which a server that is away is waited for.

    Attributes
    ----------
    restarts : int
        How often the connection was made anew.
    changed : threading.Condition
        Notified when a message for a subscription came, and when the connection is lost or back.
    """

    def __init__(
        self,
        servers: Sequence[str],
        *,
        tls: ssl.SSLContext | None = None,
        inbox: str = "_INBOX",
        patience: float = 20.0,
    ) -> None:
        self.servers, self.patience = list(servers), patience
        self.restarts, self.changed = 0, threading.Condition()
        self._tls, self._inbox = tls, f"{inbox}.{secrets.token_hex(8)}"
        self._addresses = cycle([_address(url) for url in self.servers])
        self._numbers = count(_REPLIES + 1)
        self._requests: dict[str, _Request] = {}
        self._hearers: dict[int, tuple[str, Callable[[Message], None]]] = {}
        self._fault: Exception | None = None
        self._closed = False
        self._stream: Stream | None = self._connect_first()
        self._thread = threading.Thread(target=self._run, name="privada-nats", daemon=True)
        self._thread.start()

    @property
    def is_up(self) -> bool:
        """Whether the server is connected now."""
        return self._stream is not None

    def close(self) -> None:
        """Close the connection and end its thread."""
        self._closed = True
        if (stream := self._stream) is not None:
            stream.shut()
        self._thread.join(timeout=10)

    def request(
        self, subject: str, data: bytes = b"", *, headers: Mapping[str, str] | None = None
    ) -> Message:
        """Send a request, again if it must be, and return the reply."""
        until = time.monotonic() + self.patience
        while (left := until - time.monotonic()) > 0:
            try:
                return self.request_once(subject, data, headers=headers, seconds=left)
            except OSError as error:
                self._fault = error
                time.sleep(min(PAUSE, max(until - time.monotonic(), 0)))
        raise self.explain(self._fault)

    def request_once(
        self, subject: str, data: bytes, *, headers: Mapping[str, str] | None = None, seconds: float
    ) -> Message:
        """Send a request and return the reply; an OSError if there is none within a few seconds."""
        stream = self._stream
        if stream is None:
            raise self._fault if isinstance(self._fault, OSError) else ProtocolError("no answer")
        reply, request = f"{self._inbox}.reply.{next(self._numbers)}", _Request(subject)
        self._requests[reply] = request
        try:
            stream.write(*write_message(subject, reply, headers or {}, data))
            if not request.done.wait(min(seconds, _ATTEMPT)):
                raise ProtocolError("no answer")
        finally:
            del self._requests[reply]
        if request.fault is not None:
            raise request.fault
        assert request.reply is not None  # settled by one of the two
        return request.reply

    def subscribe(self, hear: Callable[[Message], None]) -> tuple[int, str]:
        """Listen at a new place of one's own: the subscription's number, and the place's subject."""
        number = next(self._numbers)
        place = f"{self._inbox}.{number}.{secrets.token_hex(8)}"
        self._hearers[number] = (place, hear)
        self._tell(f"SUB {place} {number}\r\n".encode())
        return number, place

    def unsubscribe(self, number: int) -> None:
        """Stop listening."""
        if self._hearers.pop(number, None) is not None:
            self._tell(f"UNSUB {number}\r\n".encode())

    def _tell(self, line: bytes) -> None:
        """Say something that is said again by itself whenever the connection is made anew."""
        with suppress(OSError):
            if (stream := self._stream) is not None:
                stream.write(line)

    def _connect_first(self) -> Stream:
        """Connect for the first time; who is not let in is told at once."""
        until = time.monotonic() + self.patience
        while True:
            try:
                return self._connect(max(until - time.monotonic(), 0.1))
            except OSError as error:
                self._fault = error
                if _is_final(error) or time.monotonic() + PAUSE > until:
                    raise self.explain(error) from None
            time.sleep(PAUSE)

    def _connect(self, seconds: float) -> Stream:
        seconds = min(seconds, _ATTEMPT)
        stream = Stream(next(self._addresses), tls=self._tls, seconds=seconds)
        try:
            told = introduce(stream, encrypted=self._tls is not None, seconds=seconds)
            self.largest_payload: int = told["max_payload"]
            stream.write(f"SUB {self._inbox}.reply.* {_REPLIES}\r\n".encode())
        except BaseException:
            stream.close()
            raise
        return stream

    def _run(self) -> None:
        """Read until the connection is closed on purpose; make it anew whenever it is lost."""
        while not self._closed:
            stream = self._stream
            try:
                if stream is None:
                    self._stream = self._connect(_ATTEMPT)
                    self._restart()
                else:
                    self._read(stream)
            except Exception as error:  # whatever a server sends, this thread goes on
                self._lose(error)
        if (stream := self._stream) is not None:
            stream.close()

    def _restart(self) -> None:
        """Listen again wherever somebody listens, also who began while there was no connection."""
        for number, (place, _) in list(self._hearers.items()):
            self._tell(f"SUB {place} {number}\r\n".encode())
        self.restarts += 1
        self._notify()

    def _read(self, stream: Stream) -> None:
        try:
            line = stream.read_line(_SILENCE)
        except TimeoutError:
            if time.monotonic() - stream.heard > 2 * _SILENCE:
                raise
            stream.write(b"PING\r\n")
            return
        word = line[:5].upper()
        if word.startswith((b"MSG ", b"HMSG ")):
            self._dispatch(read_message(line, stream, 2 * _SILENCE))
        elif word.startswith(b"PING"):
            stream.write(b"PONG\r\n")
        elif word.startswith(b"-ERR"):
            self._hear_error(read_error(line))

    def _dispatch(self, message: Message) -> None:
        if message.sid == _REPLIES:
            request = self._requests.get(message.subject)
            if request is not None and message.status == "503":
                request.settle(fault=ProtocolError("it holds no such exchange"))
            elif request is not None:
                request.settle(message)
        elif (found := self._hearers.get(message.sid)) is not None:
            found[1](message)
            self._notify()

    def _hear_error(self, said: str) -> None:
        """Tell those whose request the server refuses; it answers such requests with silence."""
        if not said.lower().startswith("permissions violation"):
            raise ProtocolError(said)
        for request in list(self._requests.values()):
            if f'"{request.subject}"' in said:
                request.settle(fault=CourierError(f"The broker does not allow this party that: {said}."))

    def _lose(self, error: Exception) -> None:
        self._fault = error if isinstance(error, OSError) else ProtocolError("the connection was closed")
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        for request in list(self._requests.values()):
            request.settle(fault=self._fault)
        self._notify()
        if stream is None and not self._closed:
            time.sleep(PAUSE)

    def _notify(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def explain(self, fault: Exception | None) -> CourierError:
        """What to say when there was no answer for too long."""
        where = ", ".join(url.rpartition("//")[2] for url in self.servers)
        why = _reason(fault)
        return CourierError(
            f"The broker at {where} cannot be used ({why}); waited at most {self.patience:g} s."
        )


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "localhost", parts.port or _PORT


def _is_final(error: OSError) -> bool:
    """Whether trying again cannot help."""
    return isinstance(error, ssl.SSLError) or any(
        word in str(error).lower() for word in ("authorization", "it wants tls", "no nats server")
    )


def _reason(fault: Exception | None) -> str:
    """What a fault says, in a few words."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {fault.verify_message}"
    if isinstance(fault, ssl.SSLError):
        return f"TLS: {fault.reason or 'the handshake failed'}"
    return getattr(fault, "strerror", None) or str(fault or "") or "no answer"


__all__ = ["PAUSE", "Connection"]
