"""A client of NATS, as far as an exchange needs it: the protocol, and a connection that restores itself.

A `Stream` is read by one thread and written to by any. No call on its socket blocks, and calls take turns,
because a TLS connection cannot be read and written at the same moment. Lines and messages have a largest
size, whatever the server says.

A `Connection` waits for a server that is away: requests are sent again until ``patience`` seconds have
passed, then one `CourierError` says so. Every request may therefore arrive twice, and must be one that can.
One thread reads; it never waits for those to whom it hands messages.
"""

from __future__ import annotations

import json
import secrets
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from typing import Any
from urllib.parse import urlsplit

from privada.exceptions import CourierError

LARGEST_MESSAGE = (1 << 20) + (1 << 16)
PAUSE = 0.1  # seconds before another attempt
_LARGEST_LINE = 1 << 16
_BLOCK = 1 << 18
_VERSION = b"NATS/1.0"
_ATTEMPT = 5.0  # seconds until a request is sent again although the connection stands
_SILENCE = 10.0  # seconds after which the server is asked for a sign of life; after twice that, it is lost
_PORT = 4222
_REPLIES = 1  # the number of the subscription to all replies


class ProtocolError(OSError):
    """The other side does not speak NATS, closed the connection, or reports an error that ends it."""


@dataclass(frozen=True)
class Message:
    """A message of a subscription: its subject, headers and bytes; a status if it has no bytes."""

    sid: int
    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    status: str = ""


class Stream:
    """A connected socket, read line by line and message by message.

    With ``tls`` the handshake comes before anything else; ``seconds`` are for connecting and the handshake.
    """

    def __init__(self, address: tuple[str, int], *, tls: ssl.SSLContext | None, seconds: float) -> None:
        self._socket = socket.create_connection(address, timeout=seconds)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=address[0])
            self._socket.setblocking(False)
        except BaseException:
            self._socket.close()
            raise
        self._turn, self._writing = threading.Lock(), threading.Lock()
        self._unread = bytearray()
        self.heard = time.monotonic()

    def shut(self) -> None:
        """End the connection, so that a thread that reads or writes gets an error."""
        with suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def write(self, *pieces: bytes) -> None:
        """Write all pieces, one after the other, in as few calls as bounded memory allows."""
        with self._writing:
            for block in join_pieces(pieces):
                sent = 0
                while sent < len(block):
                    try:
                        with self._turn:
                            sent += self._socket.send(block[sent:])
                    except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                        select.select([], [self._socket], [], 1.0)

    def _receive_into(self, buffer: memoryview, seconds: float) -> int:
        """Read what has arrived, until the buffer is full; wait for so many seconds if nothing has."""
        until = time.monotonic() + seconds
        while True:
            try:
                with self._turn:
                    size = self._socket.recv_into(buffer)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                remaining = until - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError("no answer") from None
                select.select([self._socket], [], [], remaining)
                continue
            if size == 0:
                raise ProtocolError("the connection was closed")
            self.heard = time.monotonic()
            return size

    def read_line(self, seconds: float) -> bytes:
        """Read the next line and return it without its end."""
        while (end := self._unread.find(b"\r\n")) < 0:
            if len(self._unread) > _LARGEST_LINE:
                raise ProtocolError("a line is too long")
            buffer = memoryview(bytearray(_BLOCK // 4))
            size = self._receive_into(buffer, seconds)
            self._unread += buffer[:size]
        line = bytes(self._unread[:end])
        del self._unread[: end + 2]
        return line

    def read_bytes(self, size: int, seconds: float) -> bytearray:
        """Read so many bytes."""
        data = bytearray(size)
        at = min(size, len(self._unread))
        data[:at] = self._unread[:at]
        del self._unread[:at]
        with memoryview(data) as buffer:
            while at < size:
                at += self._receive_into(buffer[at:], seconds)
        return data


def join_pieces(pieces: Sequence[bytes]) -> Iterator[memoryview]:
    """Yield all pieces in blocks of one size: short pieces are joined, a whole block is not copied."""
    begun = bytearray()
    for piece in pieces:
        rest = memoryview(piece)
        while len(begun) + len(rest) >= _BLOCK:
            missing = _BLOCK - len(begun)
            yield memoryview(begun + rest[:missing]) if begun else rest[:missing]
            begun, rest = bytearray(), rest[missing:]
        begun += rest
    if begun:
        yield memoryview(begun)


def write_message(subject: str, reply: str, headers: Mapping[str, str], data: bytes) -> tuple[bytes, ...]:
    """Return the pieces of a message to the server."""
    if not headers:
        return f"PUB {subject} {reply} {len(data)}\r\n".encode(), data, b"\r\n"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = _VERSION + f"\r\n{lines}\r\n".encode()
    return f"HPUB {subject} {reply} {len(head)} {len(head) + len(data)}\r\n".encode() + head, data, b"\r\n"


def read_message(line: bytes, stream: Stream, seconds: float) -> Message:
    """Read the message that a ``MSG`` or ``HMSG`` line announces."""
    words = line.decode("utf-8", "replace").split(" ")
    try:
        _, subject, number, *_, total = words
        sid, size = int(number), int(total)
        head_size = int(words[3:][-2]) if words[0].upper() == "HMSG" else 0
    except (ValueError, IndexError):
        raise ProtocolError("a line announces no message") from None
    # Refused before a byte of it is read: the server must not decide how much memory this takes.
    if not 0 <= head_size <= size <= LARGEST_MESSAGE:
        raise ProtocolError("a message is too large")
    head = bytes(stream.read_bytes(head_size, seconds)).decode("utf-8", "replace")
    data = bytes(stream.read_bytes(size - head_size, seconds))
    if bytes(stream.read_bytes(2, seconds)) != b"\r\n":
        raise ProtocolError("a message does not end where it should")
    # The first line of a head is "NATS/1.0", with a status if there are no bytes.
    first, *lines = head.split("\r\n")
    headers = {
        name.strip(): value.strip() for name, colon, value in (ln.partition(":") for ln in lines) if colon
    }
    status = first.split()[1:2]
    return Message(sid, subject, data, headers, status[0] if status else "")


def read_error(line: bytes) -> str:
    """Return what an ``-ERR`` line says."""
    return line[4:].decode("utf-8", "replace").strip().strip("'")


def introduce(stream: Stream, *, encrypted: bool, seconds: float) -> dict[str, Any]:
    """Greet the server, wait until it lets this party in, and return what it says of itself."""
    word, _, text = stream.read_line(seconds).partition(b" ")
    try:
        info = json.loads(text)
    except ValueError:
        info = None
    if word.upper() != b"INFO" or not isinstance(info, dict):
        raise ProtocolError("it is no NATS server")
    if type(info.setdefault("max_payload", 1 << 20)) is not int:
        raise ProtocolError("it is no NATS server")
    if info.get("tls_required") and not encrypted:
        raise ProtocolError("it wants TLS; expected a tls:// URL with certificates")
    options: dict[str, object] = {"verbose": False, "pedantic": False, "protocol": 1, "headers": True}
    options |= {"no_responders": True, "lang": "python-privada", "version": "1", "tls_required": encrypted}
    stream.write(b"CONNECT " + json.dumps(options).encode() + b"\r\nPING\r\n")
    while (line := stream.read_line(seconds)).upper() != b"PONG":
        if line.upper().startswith(b"-ERR"):
            raise ProtocolError(read_error(line))
    return info


@dataclass
class _Request:
    """A request under way, and its outcome: a reply or an error."""

    subject: str
    done: threading.Event = field(default_factory=threading.Event)
    outcome: Message | Exception | None = None

    def settle(self, outcome: Message | Exception) -> None:
        """Wake up the thread that waits for the outcome."""
        self.outcome = outcome
        self.done.set()


class Connection:
    """One connection to a server, or to one of a cluster; any thread may use it.

    Replies are received below the subject ``inbox``. With ``tls`` the handshake comes before anything else,
    so that nobody between can talk the client out of it. ``restarts`` counts how often the connection was
    restored; ``changed`` is notified when a message for a subscription came, and when the connection is lost
    or restored.
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
        self._addresses = cycle(
            [(parts.hostname or "localhost", parts.port or _PORT) for parts in map(urlsplit, self.servers)]
        )
        self._numbers = count(_REPLIES + 1)
        self._requests: dict[str, _Request] = {}
        self._listeners: dict[int, tuple[str, Callable[[Message], None]]] = {}
        self._fault: Exception | None = None
        self._closed = False
        self._stream: Stream | None = None
        until = time.monotonic() + patience
        while self._stream is None:
            try:
                self._stream = self._connect(max(until - time.monotonic(), 0.1))
            except OSError as error:
                # A server that is not trusted, or lets nobody in, is not waited for.
                is_final = isinstance(error, ssl.SSLError) or any(
                    text in str(error).lower() for text in ("authorization", "it wants tls", "no nats server")
                )
                if is_final or time.monotonic() + PAUSE > until:
                    raise self.explain(error) from None
                time.sleep(PAUSE)
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
        while (remaining := until - time.monotonic()) > 0:
            try:
                return self.request_once(subject, data, headers=headers, seconds=remaining)
            except OSError as error:
                self._fault = error
                time.sleep(min(PAUSE, max(until - time.monotonic(), 0)))
        raise self.explain(self._fault)

    def request_once(
        self, subject: str, data: bytes, *, headers: Mapping[str, str] | None = None, seconds: float
    ) -> Message:
        """Send a request and return the reply; raise an OSError if there is none within a few seconds."""
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
        if isinstance(request.outcome, Message):
            return request.outcome
        raise request.outcome or ProtocolError("no answer")

    def subscribe(self, listener: Callable[[Message], None]) -> tuple[int, str]:
        """Listen to a new subject of one's own; return the subscription's number and the subject."""
        number = next(self._numbers)
        subject = f"{self._inbox}.{number}.{secrets.token_hex(8)}"
        self._listeners[number] = (subject, listener)
        self._send_line(f"SUB {subject} {number}\r\n".encode())
        return number, subject

    def unsubscribe(self, number: int) -> None:
        """Stop listening."""
        if self._listeners.pop(number, None) is not None:
            self._send_line(f"UNSUB {number}\r\n".encode())

    def _send_line(self, line: bytes) -> None:
        """Send a line that is sent again by itself whenever the connection is restored."""
        with suppress(OSError):
            if (stream := self._stream) is not None:
                stream.write(line)

    def _connect(self, seconds: float) -> Stream:
        seconds = min(seconds, _ATTEMPT)
        stream = Stream(next(self._addresses), tls=self._tls, seconds=seconds)
        try:
            info = introduce(stream, encrypted=self._tls is not None, seconds=seconds)
            self.largest_payload: int = info["max_payload"]
            stream.write(f"SUB {self._inbox}.reply.* {_REPLIES}\r\n".encode())
        except BaseException:
            stream.close()
            raise
        return stream

    def _run(self) -> None:
        """Read until the connection is closed on purpose; restore it whenever it is lost."""
        while not self._closed:
            stream = self._stream
            try:
                if stream is not None:
                    self._read(stream)
                    continue
                self._stream = self._connect(_ATTEMPT)
                # Also for those who began to listen while there was no connection.
                for number, (subject, _) in list(self._listeners.items()):
                    self._send_line(f"SUB {subject} {number}\r\n".encode())
                self.restarts += 1
                self._notify()
            except Exception as error:  # whatever a server sends, this thread goes on
                is_network = isinstance(error, OSError)
                self._fault = error if is_network else ProtocolError("the connection was closed")
                stream, self._stream = self._stream, None
                if stream is not None:
                    stream.close()
                # Nobody waits for a reply that cannot come any more.
                for request in list(self._requests.values()):
                    request.settle(self._fault)
                self._notify()
                if stream is None and not self._closed:
                    time.sleep(PAUSE)
        if (stream := self._stream) is not None:
            stream.close()

    def _read(self, stream: Stream) -> None:
        """Read one line, and the message that it announces, and pass it on."""
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
            error = read_error(line)
            if not error.lower().startswith("permissions violation"):
                raise ProtocolError(error)
            # The server never replies to a request that it does not allow, so nobody must wait for a reply.
            for request in list(self._requests.values()):
                if f'"{request.subject}"' in error:
                    request.settle(CourierError(f"The broker does not allow this party that: {error}."))

    def _dispatch(self, message: Message) -> None:
        if message.sid == _REPLIES:
            request = self._requests.get(message.subject)
            if request is not None and message.status == "503":
                request.settle(ProtocolError("it holds no such exchange"))
            elif request is not None:
                request.settle(message)
        elif (subscription := self._listeners.get(message.sid)) is not None:
            subscription[1](message)
            self._notify()

    def _notify(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def explain(self, fault: Exception | None) -> CourierError:
        """Return the error to raise when there was no answer for too long."""
        if isinstance(fault, ssl.SSLCertVerificationError):
            reason = f"its certificate is not trusted: {fault.verify_message}"
        elif isinstance(fault, ssl.SSLError):
            reason = f"TLS: {fault.reason or 'the handshake failed'}"
        else:
            reason = getattr(fault, "strerror", None) or str(fault or "") or "no answer"
        servers = ", ".join(url.rpartition("//")[2] for url in self.servers)
        return CourierError(
            f"The broker at {servers} cannot be used ({reason}); waited at most {self.patience:g} s."
        )


__all__ = ["PAUSE", "Connection", "Message", "ProtocolError", "Stream", "read_message", "write_message"]
