"""A NATS server with JetStream: low latency, many owners, many rounds.

One stream holds an exchange, one message per key; a key's segments are the tokens of its subject. The
stream itself refuses a second message of a subject, as well as deletes and purges, so that nobody who may
write can overwrite. Three subjects of JetStream's API are used, each of which names the keys that it is
about, so that a server can allow a party its own keys only (`privada.exchange.broker`).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Container
from contextlib import suppress
from typing import Any

from privada.exceptions import CourierError, WireError
from privada.exchange.courier import Courier, check_key, check_prefix, check_size
from privada.exchange.couriers.connection import Connection
from privada.exchange.couriers.protocol import Message
from privada.exchange.couriers.watching import Watch

_ROOM_FOR_HEADERS = 4096
_KEY_EXISTS = {10071, 10164}  # the subject's last sequence is not 0
_NOT_YET = {10005, 10008}  # a cluster that has no leader, or too few servers, so far
_SECOND = 10**9  # of JetStream's durations


class NatsCourier(Courier):
    """Items as messages of a JetStream stream.

    Parameters
    ----------
    connection : Connection
        To the server; closed with the courier.
    exchange : str, default="exchange"
        Name of the exchange; a server may hold several.
    api : str, default="$JS.API"
        Subject below which the server answers this party's requests to JetStream.

    Notes
    -----
    A message is at most as large as the server allows (usually 1 MB), which bounds what is read of it.
    """

    def __init__(self, connection: Connection, *, exchange: str = "exchange", api: str = "$JS.API") -> None:
        self._connection = connection
        self._exchange = exchange
        self._api = api
        self._watches: dict[str, Watch] = {}
        self.largest = min(Courier.largest, connection.largest_payload) - _ROOM_FOR_HEADERS

    def put(self, key: str, blob: bytes) -> bool:
        check_size(check_key(key), len(blob), self.largest)
        mark = secrets.token_hex(12)
        headers = {
            "Nats-Msg-Id": mark,
            "Nats-Expected-Last-Subject-Sequence": "0",
            "Nats-Expected-Stream": stream_of(self._exchange),
        }
        subject = subject_of(self._exchange, key)
        reply = self._connection.request(subject, blob, headers=headers)
        fault = _answer(reply).get("error")
        if fault is None:
            return True
        if fault.get("err_code") not in _KEY_EXISTS:
            raise CourierError(f"Cannot write {key}: {fault.get('description', 'the broker refuses')}.")
        found = self._fetch(key)  # ours, if it was sent again because the first reply was lost
        return found is not None and found.headers.get("Nats-Msg-Id") == mark

    def check_writable(self, prefix: str) -> None:
        """Send a message that the stream refuses to store, but only after the server has let it through.

        Nobody may remove a message, so one that is stored would stay. This one expects another message of its
        subject before it, and there is none.
        """
        key = f"{check_prefix(prefix)}probe-{secrets.token_hex(12)}"
        headers = {
            "Nats-Expected-Last-Subject-Sequence": str(2**62),
            "Nats-Expected-Stream": stream_of(self._exchange),
        }
        reply = self._connection.request(subject_of(self._exchange, key), b"\n", headers=headers)
        fault = _answer(reply).get("error", {})
        if fault.get("err_code") not in _KEY_EXISTS:
            why = fault.get("description", "the broker does not keep to what a message expects")
            raise CourierError(f"Cannot write to {prefix}: {why}.")

    def get(self, key: str, *, largest: int | None = None) -> bytes | None:
        found = self._fetch(check_key(key))
        until = time.monotonic() + self._connection.patience
        while found is None and self._was_seen(key) and time.monotonic() < until:
            time.sleep(0.02)  # a replica that is behind
            found = self._fetch(key)
        if found is None:
            return None
        check_size(key, len(found.data), self.largest if largest is None else largest)
        return found.data

    def _fetch(self, key: str) -> Message | None:
        """The message of a key, None if there is none."""
        subject = f"{self._api}.DIRECT.GET.{stream_of(self._exchange)}.{subject_of(self._exchange, key)}"
        reply = self._connection.request(subject)
        if reply.status not in ("", "404"):
            raise CourierError(f"Cannot read {key}: the broker answers {reply.status}.")
        return None if reply.status else reply

    def keys(self, prefix: str) -> list[str]:
        watch = self._new_watch(check_prefix(prefix))
        try:
            watch.start()
            return sorted(watch.keys)
        finally:
            watch.stop()

    def wait(self, prefix: str, *, known: Container[str], seconds: float) -> list[str]:
        watch = self._watches.setdefault(prefix, self._new_watch(check_prefix(prefix)))
        until = time.monotonic() + seconds
        while True:
            watch.refresh()
            fresh = sorted(key for key in tuple(watch.keys) if key not in known)
            left = until - time.monotonic()
            if fresh or left <= 0:
                return fresh
            watch.await_news(known, left)

    def close(self) -> None:
        self._connection.close()

    def create_exchange(self, *, replicas: int = 1) -> None:
        """Create the stream of the exchange, if it is not there; an administrator does so once."""
        name = stream_of(self._exchange)
        config = json.dumps(_stream_config(self._exchange, replicas)).encode()
        until = time.monotonic() + self._connection.patience
        while fault := self._ask(f"STREAM.CREATE.{name}", config).get("error"):
            if fault.get("err_code") not in _NOT_YET or time.monotonic() > until:
                raise CourierError(
                    f"Cannot create the exchange {self._exchange}: {fault.get('description')}."
                )
            time.sleep(0.1)

    def _ask(self, what: str, body: bytes) -> dict[str, Any]:
        """What JetStream answers to a request."""
        return _answer(self._connection.request(f"{self._api}.{what}", body))

    def _new_watch(self, prefix: str) -> Watch:
        pattern = subject_of(self._exchange, f"{prefix}>")
        return Watch(self._connection, stream_of(self._exchange), pattern, self._key_of, api=self._api)

    def _key_of(self, subject: str) -> str | None:
        """The key of a subject, None if somebody who needs no key put a message there."""
        tokens = subject.removeprefix(subject_of(self._exchange, "")).split(".")
        with suppress(WireError):
            return check_key("/".join(tokens).replace("=", "."))
        return None

    def _was_seen(self, key: str) -> bool:
        return any(key in watch.keys for watch in self._watches.values())


def stream_of(exchange: str) -> str:
    """Name of an exchange's stream."""
    return f"privada-{exchange}"


def subject_of(exchange: str, key: str) -> str:
    """The subject of a key: slashes are dots, and dots, which keys may have in their names, are ``=``.

    >>> subject_of("trial", "releases/clinic/0b5e.1")
    'privada.trial.releases.clinic.0b5e=1'
    """
    return f"privada.{exchange}." + key.replace(".", "=").replace("/", ".")


def _stream_config(exchange: str, replicas: int) -> dict[str, Any]:
    return {
        "name": stream_of(exchange),
        "subjects": [subject_of(exchange, ">")],
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


def _answer(reply: Message) -> dict[str, Any]:
    """JetStream's answer to a request; what is none counts as a refusal."""
    with suppress(ValueError):
        answer = json.loads(reply.data)
        if isinstance(answer, dict):
            return answer
    return {"error": {"description": "the broker's answer is not JetStream's"}}


__all__ = ["NatsCourier", "stream_of", "subject_of"]
