"""Health and metrics of a service, for its own machine only: ``/health`` and ``/metrics``.

Metrics are counts by owner and outcome, in Prometheus' text form. They contain no data, no digest and no
name of a learner. What is away (the exchange, or a part of the owner) has a gauge and is listed in
``/health``.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus

from privada.service.ports import STOP, Gate, LocalPort, listen, local_hosts

STALE = 700.0  # seconds without a turn after which a service is not healthy: one answer takes up to 600


class Metrics:
    """Counts what a service does; any thread may write and read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failures: Counter[str] = Counter()
        self._waiting: dict[str, int] = {}
        self._turns: dict[str, float] = {}
        self._connected: dict[str, bool] = {}
        self._outages: dict[tuple[str, str], str | None] = {}  # since when, None for what is over

    def count(self, owner: str, outcome: str, seconds: float) -> None:
        """Count a question, and the time that it took."""
        with self._lock:
            self._questions[owner, outcome] += 1
            self._seconds[owner] += seconds

    def connect(self, owner: str) -> None:
        """Note that an owner can read and write in the exchange, and that nothing of its own is away."""
        with self._lock:
            self._connected[owner] = True
            self._turns[owner] = time.monotonic()
            self._end_outages(owner)

    def fail(self, owner: str, part: str = "exchange") -> None:
        """Count a failure, of the exchange or of another part; it lasts until `connect` or another one."""
        with self._lock:
            self._failures[owner] += 1
            self._connected[owner] = part != "exchange"
            # A part that is away already is away since then; another part ends that outage.
            if self._outages.get((owner, part)) is None:
                self._end_outages(owner)
                self._outages[owner, part] = datetime.now(UTC).isoformat(timespec="seconds")

    def _end_outages(self, owner: str) -> None:
        for of, part in self._outages:
            if of == owner:
                self._outages[of, part] = None

    @property
    def outages(self) -> list[dict[str, str]]:
        """What is away now: owner, part, and since when."""
        with self._lock:
            return [
                {"owner": owner, "part": part, "since": since}
                for (owner, part), since in sorted(self._outages.items())
                if since is not None
            ]

    def note_turn(self, owner: str, *, waiting: int) -> None:
        """Note that an owner is at work, and how many questions wait."""
        with self._lock:
            self._turns[owner], self._waiting[owner] = time.monotonic(), waiting

    @property
    def unhealthy(self) -> list[str]:
        """Owners that lack something, or that have not looked for questions for a long time."""
        now, away = time.monotonic(), {outage["owner"] for outage in self.outages}
        with self._lock:
            return sorted(
                owner for owner in self._connected if owner in away or now - self._turns[owner] > STALE
            )

    @property
    def ready(self) -> bool:
        """Whether there is an owner, and every one is connected and healthy."""
        return bool(self._connected) and not self.unhealthy

    def to_text(self) -> str:
        """Return the counts in Prometheus' text form."""
        tables: tuple[tuple[str, str, str, Mapping[str, float]], ...] = (
            ("answer_seconds_total", "counter", "Seconds spent on questions.", self._seconds),
            ("failures_total", "counter", "Failures of the exchange or of an owner's part.", self._failures),
            ("questions_waiting", "gauge", "Questions that wait for a person.", self._waiting),
            ("connected", "gauge", "Whether the exchange can be reached.", self._connected),
        )
        lines = ["# HELP privada_questions_total Questions by what became of them."]
        lines.append("# TYPE privada_questions_total counter")
        with self._lock:
            for (owner, outcome), number in sorted(self._questions.items()):
                lines.append(f'privada_questions_total{{owner="{owner}",outcome="{outcome}"}} {number}')
            for name, kind, about, values in tables:
                lines += [f"# HELP privada_{name} {about}", f"# TYPE privada_{name} {kind}"]
                for owner, value in sorted(values.items()):
                    lines.append(f'privada_{name}{{owner="{owner}"}} {float(value):g}')
            lines.append(
                "# HELP privada_outage Whether a part that the owner needs is away; questions wait meanwhile."
            )
            lines.append("# TYPE privada_outage gauge")
            for (owner, part), since in sorted(self._outages.items()):
                lines.append(f'privada_outage{{owner="{owner}",part="{part}"}} {float(since is not None):g}')
        return "\n".join(lines) + "\n"


class _Page(Gate):
    """One connection: a request for one of two pages, and its reply."""

    def __init__(self, metrics: Metrics, port: LocalPort) -> None:
        super().__init__(port)
        self._metrics = metrics

    def go_on(self) -> None:
        """Send the reply; there is one for each connection."""
        status, kind, text = self._find_page()
        body = text.encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "Connection: close",
        )
        self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        self.transport.close()

    def _find_page(self) -> tuple[int, str, str]:
        """Status, media type and text of what is asked for."""
        head, ended, _ = self.head.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        fields = [line.partition(b":") for line in lines]
        hosts = [value.strip().decode("latin-1") for name, _, value in fields if name.lower() == b"host"]
        own = local_hosts(self._port.number)
        parts = first.split(b" ")
        if not ended or len(parts) != 3:
            self._port.note("not HTTP")
            return 400, "text/plain", "This is not a request, or its head is too large.\n"
        # A web page can make a name of its own point to this machine, and read what is served under it.
        if len(hosts) != 1 or hosts[0] not in own:
            return 421, "text/plain", f"Ask for it by the name {own[0]} or {own[1]}.\n"
        if parts[0] != b"GET":
            return 405, "text/plain", "There is only GET.\n"
        if parts[1] == b"/metrics":
            return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.to_text()
        if parts[1] == b"/health":
            ready = self._metrics.ready
            plain: dict[str, object] = {"status": "ok" if ready else "failing"}
            plain |= {"failing": self._metrics.unhealthy, "outages": self._metrics.outages}
            return 200 if ready else 503, "application/json", json.dumps(plain) + "\n"
        return 404, "text/plain", "There are /health and /metrics.\n"


@contextmanager
def publish(metrics: Metrics, port: int | None) -> Iterator[int | None]:
    """Serve the pages on this machine while a service runs; yields the port. None publishes nothing."""
    if port is None:
        yield None
        return
    local = LocalPort(listen("--metrics-port", port))
    running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await loop.create_server(
            lambda: _Page(metrics, local), sock=local.listening, backlog=local.at_once
        )
        local.widen_queue()
        running.set_result((loop, stopped))
        await stopped.wait()
        server.close()

    def stop() -> None:
        loop, stopped = running.result(timeout=STOP)
        loop.call_soon_threadsafe(stopped.set)

    with local.run(serve, stop):
        yield local.number


__all__ = ["Metrics", "publish"]
