"""A NATS server with JetStream: low latency, many owners, many rounds.

One stream holds an exchange, one message per key; a key's segments are the tokens of its subject. The
stream itself refuses a second message of a subject, as well as deletes and purges, so that nobody who may
write can overwrite. Three subjects of JetStream's API are used. Each of them names the keys that it is
about, so that a server can allow a party its own keys only (`privada.exchange.broker_plan`).

The server's administrator gives each party a folder with a ``link.toml``::

    servers = ["tls://broker.example.org:4222"]
    exchange = "trial"
    ca = "ca.pem"
    certificate = "certificate.pem"
    key = "key.pem"
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from privada import _files
from privada._text import printable_line, quoted
from privada._toml import Section
from privada.exceptions import CourierError, InputError, WireError
from privada.exchange.courier import Courier, check_key, check_prefix, check_size, is_segment
from privada.exchange.nats_client import PAUSE, Connection, Message

DEFAULT_EXCHANGE = "exchange"
JETSTREAM_API = "$JS.API"
_FILES = ("ca", "certificate", "key")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_LARGEST_CERTIFICATE = 1 << 16
_HEADER_BYTES = 4096  # that a message may have beside its item
_KEY_EXISTS = {10071, 10164}  # the subject's last sequence is not 0
_NOT_YET = {10005, 10008}  # a cluster that has no leader, or too few servers, so far
_SECOND = 10**9  # of JetStream's durations
_HEARTBEAT = 5  # seconds
_FORGOTTEN = 30  # seconds after which the server drops a watch to which nobody listens


@dataclass(frozen=True, kw_only=True)
class Link:
    """How a party reaches a NATS server: where it is, whom to trust, and which certificate to show.

    The servers, one or those of a cluster, are all ``tls://``, or ``nats://`` on this machine. The PEM files
    are needed with ``tls://`` and refused without.
    """

    servers: tuple[str, ...]
    exchange: str = DEFAULT_EXCHANGE
    ca: Path | None = None  # the authority that is trusted
    certificate: Path | None = None  # this party's
    key: Path | None = None
    # Subject below which the server answers this party's requests to JetStream; a broker that gives each
    # party an account of its own has another one.
    api: str = JETSTREAM_API

    def __post_init__(self) -> None:
        if not all(map(is_segment, self.api.removeprefix("$").split("."))):
            raise InputError(f"Expected api to be a subject such as {JETSTREAM_API}, got {quoted(self.api)}.")
        if not is_segment(self.exchange) or "." in self.exchange:
            raise InputError(
                f"Expected exchange to be letters, digits, - and _, got {quoted(self.exchange)}."
            )
        if not self.servers:
            raise InputError("Expected servers to hold at least one URL.")
        schemes = {_check_server(server) for server in self.servers}
        missing = [name for name in _FILES if getattr(self, name) is None]
        if schemes != {"tls"} and len(missing) < len(_FILES):
            raise InputError("Certificates are for tls:// servers; expected all servers to be such.")
        if "tls" in schemes and missing:
            raise InputError(f"A tls:// server needs ca, certificate and key; missing: {', '.join(missing)}.")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Link:
        """Read a ``link.toml``; the files that it names are in its folder."""
        section, home = Section.read(path), Path(path).parent
        with section.blaming("servers", "exchange", "api", *_FILES):
            link = cls(
                servers=tuple(map(str, section.array("servers"))),
                exchange=section.string("exchange", DEFAULT_EXCHANGE),
                api=section.string("api", JETSTREAM_API),
                **{name: home / section.string(name) for name in _FILES if name in section},
            )
        section.done()
        return link

    @classmethod
    def from_url(cls, url: str) -> Link:
        """Read a URL such as ``tls://one:4222,two:4222/trial?ca=ca.pem&certificate=me.pem&key=me.key``."""
        parts = urlsplit(url)
        options = parse_qs(parts.query, keep_blank_values=True)
        if unknown := set(options) - {*_FILES, "api"}:
            raise InputError(f"Expected ca, certificate and key in the URL, got {quoted(min(unknown))}.")
        return cls(
            servers=tuple(f"{parts.scheme}://{host}" for host in parts.netloc.split(",")),
            exchange=parts.path.strip("/") or DEFAULT_EXCHANGE,
            api=options.get("api", [JETSTREAM_API])[-1],
            **{name: Path(options[name][-1]) for name in _FILES if name in options},
        )

    def open(self, *, patience: float = 20.0) -> NatsCourier:
        """Connect; a server that is away is waited for, here and later, for ``patience`` seconds."""
        tls, inbox = None, "_INBOX"
        if self.ca is not None and self.certificate is not None and self.key is not None:
            from cryptography import x509

            tls = _make_tls_context(self.ca, self.certificate, self.key)
            # Replies are received below the name in the certificate, where nobody else may listen.
            blob = _files.read_bytes(self.certificate, largest=_LARGEST_CERTIFICATE)
            subject = x509.load_pem_x509_certificate(blob).subject
            names = subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
            name = str(names[0].value) if names else ""
            inbox = f"_INBOX.{name}" if is_segment(name) and "." not in name else inbox
        connection = Connection(self.servers, tls=tls, inbox=inbox, patience=patience)
        return NatsCourier(connection, exchange=self.exchange, api=self.api)


def _check_server(url: str) -> str:
    """Check the URL of a server, and return its scheme."""
    parts = urlsplit(url)
    try:
        valid = bool(parts.hostname) and parts.scheme in ("nats", "tls") and (parts.port or 4222) > 0
    except ValueError:  # the port is no number
        valid = False
    if not valid or parts.path or parts.query or parts.fragment:
        raise InputError(f"Expected a server such as tls://broker.example.org:4222, got {quoted(url)}.")
    if "@" in parts.netloc:
        raise InputError("A URL with a user or password in it would be logged; give none.")
    if parts.scheme == "nats" and parts.hostname not in _LOOPBACK:
        raise InputError("Expected tls:// for a server on another machine; nats:// is not encrypted.")
    return parts.scheme


def _make_tls_context(ca: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    for file in (ca, certificate, key):
        _files.plain_file(file, largest=_LARGEST_CERTIFICATE)
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=ca)
        context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or "they are not PEM files"
        raise InputError(f"The files of {certificate.name} cannot be used: {reason}.") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


class NatsCourier(Courier):
    """Items as messages of a JetStream stream, over a connection that is closed with the courier.

    ``exchange`` and ``api`` are those of a `Link`. A message is at most as large as the server allows
    (usually 1 MB), which bounds what is read of it.
    """

    def __init__(
        self, connection: Connection, *, exchange: str = DEFAULT_EXCHANGE, api: str = JETSTREAM_API
    ) -> None:
        self._connection, self._exchange, self._api = connection, exchange, api
        self._watches: dict[str, Watch] = {}
        self.largest = min(Courier.largest, connection.largest_payload) - _HEADER_BYTES

    @classmethod
    def from_url(cls, url: str) -> NatsCourier:
        """Connect to the server of a URL, or of a ``link.toml``."""
        return (Link.from_url(url) if "://" in url else Link.read(url)).open()

    def put(self, key: str, blob: bytes) -> bool:
        check_size(check_key(key), len(blob), self.largest)
        message_id = secrets.token_hex(12)
        fault = self._publish(key, blob, {"Nats-Msg-Id": message_id}, after=0)
        if fault is None:
            return True
        if fault.get("err_code") not in _KEY_EXISTS:
            raise CourierError(f"Cannot write {key}: {fault.get('description', 'the broker refuses')}.")
        # The message is ours if the first reply was lost and the request was sent again.
        message = self._fetch(key)
        return message is not None and message.headers.get("Nats-Msg-Id") == message_id

    def check_writable(self, prefix: str) -> None:
        """Send a message that the stream refuses to store, but only after the server has let it through.

        Nobody may remove a message, so one that is stored would stay. This one expects another message of its
        subject before it, and there is none.
        """
        key = f"{check_prefix(prefix)}probe-{secrets.token_hex(12)}"
        fault = self._publish(key, b"\n", {}, after=2**62) or {}
        if fault.get("err_code") not in _KEY_EXISTS:
            why = fault.get("description", "the broker does not keep to what a message expects")
            raise CourierError(f"Cannot write to {prefix}: {why}.")

    def _publish(
        self, key: str, data: bytes, headers: dict[str, str], *, after: int
    ) -> dict[str, Any] | None:
        """Send a message that is stored only after another one of its subject; return the error, if any."""
        headers["Nats-Expected-Last-Subject-Sequence"] = str(after)
        headers["Nats-Expected-Stream"] = stream_of(self._exchange)
        reply = self._connection.request(subject_of(self._exchange, key), data, headers=headers)
        return _parse_answer(reply).get("error")

    def get(self, key: str, *, largest: int | None = None) -> bytes | None:
        message = self._fetch(check_key(key))
        until = time.monotonic() + self._connection.patience
        # A replica can lag behind: a key that a watch has listed is there.
        while message is None and time.monotonic() < until:
            if not any(key in watch.keys for watch in self._watches.values()):
                return None
            time.sleep(0.02)
            message = self._fetch(key)
        if message is None:
            return None
        check_size(key, len(message.data), self.largest if largest is None else largest)
        return message.data

    def _fetch(self, key: str) -> Message | None:
        """The message of a key, None if there is none."""
        subject = f"{self._api}.DIRECT.GET.{stream_of(self._exchange)}.{subject_of(self._exchange, key)}"
        reply = self._connection.request(subject)
        if reply.status not in ("", "404"):
            raise CourierError(f"Cannot read {key}: the broker answers {reply.status}.")
        return None if reply.status else reply

    def keys(self, prefix: str) -> list[str]:
        watch = self._make_watch(prefix)
        try:
            watch.start()
            return sorted(watch.keys)
        finally:
            watch.stop()

    def wait(self, prefix: str, *, known: Container[str], seconds: float) -> list[str]:
        watch = self._watches.setdefault(prefix, self._make_watch(prefix))
        until = time.monotonic() + seconds
        while True:
            watch.refresh()
            fresh = sorted(key for key in tuple(watch.keys) if key not in known)
            remaining = until - time.monotonic()
            if fresh or remaining <= 0:
                return fresh
            watch.await_news(known, remaining)

    def close(self) -> None:
        self._connection.close()

    def create_exchange(self, *, replicas: int = 1) -> None:
        """Create the stream of the exchange, if it is not there; an administrator does so once."""
        config = {
            "name": stream_of(self._exchange),
            "subjects": [subject_of(self._exchange, ">")],
            "storage": "file",
            "retention": "limits",
            "max_msgs_per_subject": 1,
            "discard": "new",
            "discard_new_per_subject": True,
            "deny_delete": True,
            "deny_purge": True,
            "allow_direct": True,
            "max_msg_size": Courier.largest,
            "duplicate_window": 120 * _SECOND,
            "num_replicas": replicas,
        }
        subject, request = f"{self._api}.STREAM.CREATE.{config['name']}", json.dumps(config).encode()
        until = time.monotonic() + self._connection.patience
        while fault := _parse_answer(self._connection.request(subject, request)).get("error"):
            if fault.get("err_code") not in _NOT_YET or time.monotonic() > until:
                raise CourierError(
                    f"Cannot create the exchange {self._exchange}: {fault.get('description')}."
                )
            time.sleep(0.1)

    def _make_watch(self, prefix: str) -> Watch:
        """A watch of the keys below a prefix."""
        subjects = subject_of(self._exchange, "")

        def key_of(subject: str) -> str | None:
            # Somebody who needs no key may have put a message there; it is passed over.
            with suppress(WireError):
                return check_key(subject.removeprefix(subjects).replace(".", "/").replace("=", "."))
            return None

        pattern = subject_of(self._exchange, f"{check_prefix(prefix)}>")
        return Watch(self._connection, self._api, stream_of(self._exchange), pattern, key_of)


class Watch:
    """Keys of a JetStream stream as they arrive.

    Only headers of messages whose subjects match a pattern are received. Items are created once and never
    removed, so a watch that starts again from the beginning ends with the same set of keys; nothing has to
    be remembered or acknowledged. ``key_of`` returns the key of a subject, or None if it is passed over.
    """

    def __init__(
        self, connection: Connection, api: str, stream: str, pattern: str, key_of: Callable[[str], str | None]
    ) -> None:
        self.keys: set[str] = set()
        self._connection, self._api = connection, api
        self._stream, self._pattern, self._key_of = stream, pattern, key_of
        self._starting = threading.Lock()
        self._subscription: int | None = None
        self._arrived, self._restarts, self._heard = 0, -1, 0.0
        self._missed = False

    def refresh(self) -> None:
        """Start the watch if it is not running or may have missed something."""
        with self._starting:
            if time.monotonic() - self._heard > 3 * _HEARTBEAT or self._is_lost():
                self.start()

    def start(self) -> None:
        """Listen from the beginning; return when every key that exists has arrived.

        Every attempt is a new watch with a new subject: the server of a cluster that was to keep the last one
        may have died, and what it still sends must not be counted.
        """
        until = time.monotonic() + self._connection.patience
        while True:
            try:
                if self._listen(until):
                    return
                fault = CourierError("The broker does not send the keys that it announced.")
            except OSError as error:
                fault = self._connection.explain(error)
                time.sleep(PAUSE)
            if time.monotonic() >= until:
                raise fault

    def _listen(self, until: float) -> bool:
        """Begin to listen; whether every announced key came before the connection was lost."""
        self.stop()
        self._restarts, self._missed, self._arrived = self._connection.restarts, False, 0
        self._subscription, subject = self._connection.subscribe(self._receive)
        expected = self._create_consumer(subject, until)
        with self._connection.changed:
            self._connection.changed.wait_for(
                lambda: self._arrived >= expected or self._is_lost(), timeout=until - time.monotonic()
            )
        return self._arrived >= expected

    def _is_lost(self) -> bool:
        return self._missed or self._restarts != self._connection.restarts or not self._connection.is_up

    def stop(self) -> None:
        """Stop listening; the server forgets the watch by itself."""
        if self._subscription is not None:
            self._connection.unsubscribe(self._subscription)
            self._subscription = None

    def await_news(self, known: Container[str], seconds: float) -> None:
        """Wait until there is a key that is not known, or for so many seconds, or until it must restart."""

        def has_news() -> bool:
            return self._is_lost() or any(key not in known for key in tuple(self.keys))

        with self._connection.changed:
            self._connection.changed.wait_for(has_news, timeout=max(min(seconds, _HEARTBEAT), 0))

    def _create_consumer(self, subject: str, until: float) -> int:
        """Ask the server to send the headers of all messages to a subject; return how many exist now."""
        name = secrets.token_hex(12)
        config = {
            "name": name,
            "deliver_subject": subject,
            "deliver_policy": "all",
            "filter_subject": self._pattern,
            "ack_policy": "none",
            "max_deliver": 1,
            "headers_only": True,
            "mem_storage": True,
            "num_replicas": 1,
            "idle_heartbeat": _HEARTBEAT * _SECOND,
            "inactive_threshold": _FORGOTTEN * _SECOND,
        }
        request = json.dumps({"stream_name": self._stream, "config": config, "action": "create"}).encode()
        api = f"{self._api}.CONSUMER.CREATE.{self._stream}.{name}.{self._pattern}"
        reply = self._connection.request_once(api, request, seconds=max(until - time.monotonic(), PAUSE)).data
        self._heard = time.monotonic()
        try:
            answer = json.loads(reply)
            return int(answer["num_pending"]) + int(answer["delivered"]["consumer_seq"])
        except (ValueError, KeyError, TypeError):
            text = printable_line(reply[:300].decode("utf-8", "replace"))
            raise CourierError(f"The broker refuses to list keys: {text}") from None

    def _receive(self, message: Message) -> None:
        """Called by the connection's thread, which then notifies those who wait."""
        self._heard = time.monotonic()
        if message.status:
            # A heartbeat says how many messages were sent.
            last = message.headers.get("Nats-Last-Consumer")
            self._missed = self._missed or (last is not None and last != str(self._arrived))
            return
        if key := self._key_of(message.subject):
            self.keys.add(key)
        self._arrived += 1


def stream_of(exchange: str) -> str:
    """Return the name of an exchange's stream."""
    return f"privada-{exchange}"


def subject_of(exchange: str, key: str) -> str:
    """Return the subject of a key: slashes become dots, and dots, which a segment may contain, ``=``.

    >>> subject_of("trial", "releases/clinic/0b5e.1")
    'privada.trial.releases.clinic.0b5e=1'
    """
    return f"privada.{exchange}." + key.replace(".", "=").replace("/", ".")


def _parse_answer(reply: Message) -> dict[str, Any]:
    """JetStream's answer to a request; anything else counts as a refusal."""
    with suppress(ValueError):
        answer = json.loads(reply.data)
        if isinstance(answer, dict):
            return answer
    return {"error": {"description": "the broker's answer is not JetStream's"}}


__all__ = ["DEFAULT_EXCHANGE", "JETSTREAM_API", "Link", "NatsCourier", "stream_of", "subject_of"]
