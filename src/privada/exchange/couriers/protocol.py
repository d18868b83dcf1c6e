"""The NATS client protocol, as far as an exchange needs it: lines, messages with headers, and TLS.

A stream is read by one thread and written to by any; no call on the socket blocks, and calls on it take
turns, because a TLS connection cannot be read and written at the same moment. Lines and messages have a
largest size, whatever the server says.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

LARGEST_MESSAGE = (1 << 20) + (1 << 16)
_LARGEST_LINE = 1 << 16
_PIECE = 1 << 18
_VERSION = b"NATS/1.0"


class ProtocolError(OSError):
    """The other side does not speak NATS, closed the connection, or reports an error that ends it."""


@dataclass(frozen=True)
class Message:
    """What arrived: for which subscription, its subject, headers and bytes; a status if it has no bytes."""

    sid: int
    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    status: str = ""


class Stream:
    """A connected socket, read line by line and message by message.

    Parameters
    ----------
    address : (str, int)
        Host and port.
    tls : ssl.SSLContext, optional
        With it, the TLS handshake comes before anything else.
    seconds : float
        For connecting and for the handshake.
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
        self._turn, self._sending = threading.Lock(), threading.Lock()
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
        with self._sending:
            for block in _blocks(pieces):
                sent = 0
                while sent < len(block):
                    sent += self._send(block[sent:])

    def _send(self, piece: memoryview) -> int:
        try:
            with self._turn:
                return self._socket.send(piece)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            select.select([], [self._socket], [], 1.0)
            return 0

    def _receive_into(self, room: memoryview, seconds: float) -> int:
        """Read what is there, at most until the room is full; wait for some, but not for longer."""
        until = time.monotonic() + seconds
        while True:
            try:
                with self._turn:
                    count = self._socket.recv_into(room)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError("no answer") from None
                select.select([self._socket], [], [], left)
                continue
            if count == 0:
                raise ProtocolError("the connection was closed")
            self.heard = time.monotonic()
            return count

    def read_line(self, seconds: float) -> bytes:
        """The next line, without its end."""
        while (end := self._unread.find(b"\r\n")) < 0:
            if len(self._unread) > _LARGEST_LINE:
                raise ProtocolError("a line is too long")
            room = memoryview(bytearray(_PIECE // 4))
            count = self._receive_into(room, seconds)
            self._unread += room[:count]
        line = bytes(self._unread[:end])
        del self._unread[: end + 2]
        return line

    def read_bytes(self, size: int, seconds: float) -> bytearray:
        """The next so many bytes."""
        found = bytearray(size)
        at = min(size, len(self._unread))
        found[:at] = self._unread[:at]
        del self._unread[:at]
        with memoryview(found) as room:
            while at < size:
                at += self._receive_into(room[at:], seconds)
        return found


def _blocks(pieces: Sequence[bytes]) -> Iterator[memoryview]:
    """All pieces in blocks of one size: a short piece joins its neighbour, a whole block is not copied."""
    begun = bytearray()
    for piece in pieces:
        rest = memoryview(piece)
        while len(begun) + len(rest) >= _PIECE:
            room = _PIECE - len(begun)
            yield memoryview(begun + rest[:room]) if begun else rest[:room]
            begun, rest = bytearray(), rest[room:]
        begun += rest
    if begun:
        yield memoryview(begun)


def write_message(subject: str, reply: str, headers: Mapping[str, str], data: bytes) -> tuple[bytes, ...]:
    """The pieces of a message to the server."""
    if not headers:
        return f"PUB {subject} {reply} {len(data)}\r\n".encode(), data, b"\r\n"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = _VERSION + f"\r\n{lines}\r\n".encode()
    return f"HPUB {subject} {reply} {len(head)} {len(head) + len(data)}\r\n".encode() + head, data, b"\r\n"


def read_message(line: bytes, stream: Stream, seconds: float) -> Message:
    """The message that a ``MSG`` or ``HMSG`` line announces."""
    words = line.decode("utf-8", "replace").split(" ")
    with_head = words[0].upper() == "HMSG"
    try:
        _, subject, number, *_, whole_size = words
        sid, whole = int(number), int(whole_size)
        head = int(words[3:][-2]) if with_head else 0
    except (ValueError, IndexError):
        raise ProtocolError("a line announces no message") from None
    if not 0 <= head <= whole <= LARGEST_MESSAGE:
        raise ProtocolError("a message is too large")
    lines = bytes(stream.read_bytes(head, seconds))
    data = bytes(stream.read_bytes(whole - head, seconds))
    if bytes(stream.read_bytes(2, seconds)) != b"\r\n":
        raise ProtocolError("a message does not end where it should")
    status, headers = _read_headers(lines)
    return Message(sid, subject, data, headers, status)


def _read_headers(block: bytes) -> tuple[str, dict[str, str]]:
    """Status, if any, and headers of a message; what is no header is passed over."""
    first, *lines = block.decode("utf-8", "replace").split("\r\n")
    pairs = (line.partition(":") for line in lines if ":" in line)
    words = first.split()
    return words[1] if len(words) > 1 else "", {name.strip(): value.strip() for name, _, value in pairs}


def introduce(stream: Stream, *, encrypted: bool, seconds: float) -> dict[str, Any]:
    """Greet the server and wait until it lets this party in; what it says of itself."""
    word, _, text = stream.read_line(seconds).partition(b" ")
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if word.upper() != b"INFO" or not isinstance(told, dict):
        raise ProtocolError("it is no NATS server")
    if type(told.setdefault("max_payload", 1 << 20)) is not int:
        raise ProtocolError("it is no NATS server")
    if told.get("tls_required") and not encrypted:
        raise ProtocolError("it wants TLS; expected a tls:// URL with certificates")
    wish: dict[str, Any] = {
        "verbose": False,
        "pedantic": False,
        "protocol": 1,
        "headers": True,
        "no_responders": True,
    }
    wish |= {"lang": "python-privada", "version": "1", "tls_required": encrypted}
    stream.write(b"CONNECT " + json.dumps(wish).encode() + b"\r\nPING\r\n")
    while (line := stream.read_line(seconds)).upper() != b"PONG":
        if line.upper().startswith(b"-ERR"):
            raise ProtocolError(read_error(line))
    return told


def read_error(line: bytes) -> str:
    """What an ``-ERR`` line says."""
    return line[4:].decode("utf-8", "replace").strip().strip("'")


__all__ = [
    "LARGEST_MESSAGE",
    "Message",
    "ProtocolError",
    "Stream",
    "introduce",
    "read_error",
    "read_message",
    "write_message",
]
