"""Keys of a JetStream stream as they arrive: headers only, and started anew whenever something was missed.

Items are created once and never removed, so a watch that starts again from the beginning ends with the
same set of keys; nothing has to be remembered or acknowledged.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from privada.exceptions import CourierError
from privada.exchange.couriers.connection import Connection

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
    """

    def __init__(
        self, connection: Connection, stream: str, pattern: str, key_of: Callable[[str], str | None]
    ) -> None:
        self.keys: set[str] = set()
        self._connection, self._stream, self._pattern = connection, stream, pattern
        self._key_of = key_of
        self._subscription: Any = None
        self._arrived, self._restarts, self._heard = 0, -1, 0.0
        self._changed = asyncio.Event()
        self._missed = False

    async def refresh(self) -> None:
        """Start the watch if it is not running or may have missed something."""
        silent = time.monotonic() - self._heard > 3 * _HEARTBEAT
        anew = self._restarts != self._connection.restarts
        if self._missed or silent or anew or not self._connection.is_up:
            await self.start()

    async def start(self) -> None:
        """Listen from the beginning; return when everything that is there was seen."""
        await self.stop()
        self._restarts, self._missed, self._arrived = self._connection.restarts, False, 0
        self._connection.listeners.add(self._changed)
        place, self._subscription = await self._connection.subscribe(self._hear)
        expected = await self._create_consumer(place)
        until = time.monotonic() + self._connection.patience
        while self._arrived < expected:
            await self.news(until - time.monotonic())
            if time.monotonic() > until:
                raise CourierError("The broker does not send the keys that it announced.")

    async def stop(self) -> None:
        """Stop listening; the server forgets the watch by itself."""
        self._connection.listeners.discard(self._changed)
        if self._subscription is not None:
            with suppress(Exception):  # of a connection that is gone: the server then knows
                await self._subscription.unsubscribe()
            self._subscription = None

    async def news(self, seconds: float) -> None:
        """Wait until a message arrives, or for so many seconds, at most until the next heartbeat."""
        self._changed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), max(min(seconds, _HEARTBEAT), 0))

    async def _create_consumer(self, place: str) -> int:
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
        subject = f"$JS.API.CONSUMER.CREATE.{self._stream}.{name}.{self._pattern}"
        answer = json.loads((await self._connection.request(subject, request)).data)
        if fault := answer.get("error"):
            raise CourierError(f"The broker refuses to list keys: {fault.get('description')}.")
        self._heard = time.monotonic()
        return int(answer["num_pending"]) + int(answer["delivered"]["consumer_seq"])

    async def _hear(self, message: Any) -> None:
        self._heard = time.monotonic()
        headers = message.headers or {}
        if headers.get("Status"):
            last = headers.get("Nats-Last-Consumer")
            self._missed = self._missed or (last is not None and int(last) != self._arrived)
        else:
            self._arrived += 1
            if key := self._key_of(message.subject):
                self.keys.add(key)
        self._changed.set()


__all__ = ["Watch"]
