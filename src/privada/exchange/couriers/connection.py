"""A connection to a NATS server, used from ordinary threads.

The client library is asynchronous; its loop runs in a thread of its own. A server that goes away is
waited for: requests are sent again until ``patience`` seconds have passed, then one `CourierError` says so.
Every request may therefore arrive twice and must be one that can.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from privada._extras import require
from privada.exceptions import CourierError

T = TypeVar("T")

_ATTEMPT = 5.0  # seconds until a request is sent again although the connection stands
_PAUSE = 0.05
_HARMLESS = "returning true from eof_received() has no effect when using ssl"


class _LostError(Exception):
    """The connection went away while a request was under way."""


class Connection:
    """One connection, which reconnects by itself.

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
    """

    def __init__(
        self,
        servers: Sequence[str],
        *,
        tls: ssl.SSLContext | None = None,
        inbox: str = "_INBOX",
        patience: float = 20.0,
    ) -> None:
        self.servers = list(servers)
        self.patience = patience
        self.restarts = 0  # how often the connection was made anew
        self.listeners: set[asyncio.Event] = set()  # set when the connection is lost, and when it is back
        self._tls, self._inbox = tls, inbox
        self._waiting: dict[asyncio.Future[None], str] = {}
        self._fault: Exception | None = None
        self._client = _load_nats().NATS()
        logging.getLogger("asyncio").addFilter(_is_worth_saying)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="privada-nats", daemon=True)
        self._thread.start()
        try:
            self.run(self._connect())
        except BaseException:
            self.close()
            raise

    @property
    def is_up(self) -> bool:
        """Whether the server is connected now."""
        return bool(self._client.is_connected)

    @property
    def largest_payload(self) -> int:
        """The most bytes of one message that the server takes."""
        return int(self._client.max_payload)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the connection's loop and wait for its result."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close the connection and end its thread."""
        if not self._thread.is_alive():
            return
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._loop.close()

    async def _end(self) -> None:
        """Close the client and end what it, or somebody who was interrupted, left running."""
        with suppress(Exception):  # of a server that is away
            await asyncio.wait_for(self._client.close(), 2)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Send a request, again if it must be, and return the reply."""
        until = self._loop.time() + self.patience
        while (left := until - self._loop.time()) > 0:
            try:
                return await self._attempt(subject, payload, dict(headers or {}), min(left, _ATTEMPT))
            except _passing_faults() as error:
                self._fault = error
                await asyncio.sleep(_PAUSE)
        raise self._gave_up()

    async def subscribe(self, hear: Callable[[Any], Awaitable[None]]) -> tuple[str, Any]:
        """Listen at a new place of one's own: its subject, and what ends it."""
        place = self._client.new_inbox()
        return place, await self._client.subscribe(place, cb=hear)

    async def _connect(self) -> None:
        connecting = self._client.connect(
            self.servers,
            tls=self._tls,
            tls_handshake_first=self._tls is not None,
            inbox_prefix=self._inbox,
            error_cb=self._hear_fault,
            disconnected_cb=self._lose,
            reconnected_cb=self._count_restart,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,
            connect_timeout=min(5.0, self.patience),
            ping_interval=10,
        )
        try:
            await asyncio.wait_for(self._unless_refused("", connecting), self.patience)
        except (OSError, _load_nats().errors.Error, TimeoutError) as error:
            self._fault = self._fault or error
            raise self._gave_up() from None

    async def _attempt(self, subject: str, payload: bytes, headers: dict[str, str], seconds: float) -> Any:
        if not self.is_up:
            raise _LostError
        sending = self._client.request(subject, payload, timeout=seconds, headers=headers or None)
        return await self._unless_refused(subject, sending)

    async def _unless_refused(self, subject: str, work: Coroutine[Any, Any, T]) -> T:
        """The result of some work, or the fault that the server reports of its subject meanwhile."""
        broken: asyncio.Future[None] = self._loop.create_future()
        self._waiting[broken] = subject.lower()
        task = self._loop.create_task(work)
        try:
            both: list[asyncio.Future[Any]] = [task, broken]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                broken.result()
            return await task
        finally:
            del self._waiting[broken]
            broken.cancel()
            task.cancel()

    async def _hear_fault(self, error: Exception) -> None:
        """Tell those whose request the server refuses; it answers such requests with silence."""
        self._fault, said = error, str(error).lower()
        if "permissions violation" in said:
            refusal = CourierError(f"The broker does not allow this party that: {error}.")
            self._break(refusal, lambda subject: bool(subject) and f'"{subject}"' in said)
        elif isinstance(error, ssl.SSLError) or "authorization violation" in said:
            self._break(self._gave_up(), lambda subject: not subject)

    async def _lose(self) -> None:
        self._break(_LostError(), bool)
        self._wake()

    async def _count_restart(self) -> None:
        self.restarts += 1
        self._wake()

    def _wake(self) -> None:
        for listener in self.listeners:
            listener.set()

    def _break(self, error: Exception, concerns: Callable[[str], bool]) -> None:
        for future, subject in self._waiting.items():
            if concerns(subject) and not future.done():
                future.set_exception(error)

    def _gave_up(self) -> CourierError:
        where = ", ".join(url.rpartition("//")[2] for url in self.servers)
        why = _reason(self._fault)
        return CourierError(
            f"The broker at {where} cannot be used ({why}); waited at most {self.patience:g} s."
        )


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """Not what asyncio says whenever a TLS connection of this client ends."""
    return record.getMessage() != _HARMLESS


def _reason(fault: Exception | None) -> str:
    """What a fault says, in a few words."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {fault.verify_message}"
    if isinstance(fault, _load_nats().errors.NoRespondersError):
        return "it holds no such exchange"
    if fault is None or isinstance(fault, (_LostError, TimeoutError)) or not str(fault):
        return "no answer"
    return str(fault).removeprefix("nats: ")


def _passing_faults() -> tuple[type[Exception], ...]:
    errors = _load_nats().errors
    return (_LostError, OSError, TimeoutError, errors.Error)


def _load_nats() -> Any:
    require("network", "nats", purpose="A NATS exchange")
    import nats

    return nats


__all__ = ["Connection"]
