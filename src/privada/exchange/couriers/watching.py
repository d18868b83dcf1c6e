"""Keys of a JetStream stream as they arrive: headers only, and started anew whenever something was missed.

Items are created once and never removed, so a watch that starts again from the beginning ends with the
same set of keys; nothing has to be remembered or acknowledged.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Container

from privada._text import printable_line
from privada.exceptions import CourierError
from privada.exchange.couriers.connection import PAUSE, Connection
from privada.exchange.couriers.protocol import Message

_SECOND = 10**9  # of JetStream's durations
_HEARTBEAT = 5  # seconds
_FORGOTTEN = 30  # seconds after which the server drops a watch that nobody listens to


class Watch:
    """The keys of subjects that match a pattern.

    Parameters
    ----------
    connection : Connection
    stream, pattern : str
        The stream, and the subjects of interest in it.
    key_of : callable
        The key of a subject, or None for subjects that are passed over.
    api : str, default="$JS.API"
        As in `NatsCourier`.
    """

    def __init__(
        self,
        connection: Connection,
        stream: str,
        pattern: str,
        key_of: Callable[[str], str | None],
        *,
        api: str = "$JS.API",
    ) -> None:
        self.keys: set[str] = set()
        self._connection, self._stream, self._pattern = connection, stream, pattern
        self._key_of, self._api = key_of, api
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
        """Listen from the beginning; return when everything that is there was seen.

        Every attempt is a new watch at a new place: the server of a cluster that was to keep the last one may
        have died, and what it still sends must not be counted.
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
        """Begin to listen; whether everything that was announced came before the connection was lost."""
        self.stop()
        self._restarts, self._missed, self._arrived = self._connection.restarts, False, 0
        self._subscription, place = self._connection.subscribe(self._hear)
        expected = self._create_consumer(place, until)
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

        def there_are() -> bool:
            return self._is_lost() or any(key not in known for key in tuple(self.keys))

        with self._connection.changed:
            self._connection.changed.wait_for(there_are, timeout=max(min(seconds, _HEARTBEAT), 0))

    def _create_consumer(self, place: str, until: float) -> int:
        """Ask the server to send headers of all messages to a place; how many there are now."""
        name = secrets.token_hex(12)
        config = {
            "name": name,
            "deliver_subject": place,
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
        subject = f"{self._api}.CONSUMER.CREATE.{self._stream}.{name}.{self._pattern}"
        left = max(until - time.monotonic(), PAUSE)
        reply = self._connection.request_once(subject, request, seconds=left).data
        self._heard = time.monotonic()
        try:
            answer = json.loads(reply)
            return int(answer["num_pending"]) + int(answer["delivered"]["consumer_seq"])
        except (ValueError, KeyError, TypeError):
            said = reply[:300].decode("utf-8", "replace")
            raise CourierError(f"The broker refuses to list keys: {printable_line(said)}") from None

    def _hear(self, message: Message) -> None:
        """Called by the connection's thread, which then notifies those who wait."""
        self._heard = time.monotonic()
        if message.status:
            last = message.headers.get("Nats-Last-Consumer")
            self._missed = self._missed or (last is not None and last != str(self._arrived))
            return
        if key := self._key_of(message.subject):
            self.keys.add(key)
        self._arrived += 1


__all__ = ["Watch"]
