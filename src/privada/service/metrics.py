"""Health and metrics of a service, for its own machine only: ``/health`` and ``/metrics``.

Metrics are counts by owner and outcome, in Prometheus' text form. They hold no data, no digest and no name
of a learner. What is away (the exchange, or a part of the owner) has a gauge and a place in ``/health``.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from privada.exceptions import InputError

HOST = "127.0.0.1"
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
        """Count a question, and how long it took."""
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
        """Owners of which something is away, or that have not looked for questions for a long time."""
        now, away = time.monotonic(), {outage["owner"] for outage in self.outages}
        with self._lock:
            return sorted(
                owner for owner in self._connected if owner in away or now - self._turns[owner] > STALE
            )

    @property
    def ready(self) -> bool:
        """Whether every owner that was heard of is connected, and there is one."""
        return bool(self._connected) and not self.unhealthy

    def to_text(self) -> str:
        """Prometheus' text form."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# HELP privada_questions_total Questions by what became of them."
        yield "# TYPE privada_questions_total counter"
        for (owner, outcome), number in sorted(self._questions.items()):
            yield f'privada_questions_total{{owner="{owner}",outcome="{outcome}"}} {number}'
        for name, kind, about, values in (
            ("answer_seconds_total", "counter", "Seconds spent on questions.", self._seconds),
            (
                "failures_total",
                "counter",
                "Failures of the exchange or of an owner's part.",
                self._failures,
            ),
            ("questions_waiting", "gauge", "Questions that wait for a person.", self._waiting),
            ("connected", "gauge", "Whether the exchange can be reached.", self._connected),
        ):
            yield f"# HELP privada_{name} {about}"
            yield f"# TYPE privada_{name} {kind}"
            for owner, value in sorted(values.items()):
                yield f'privada_{name}{{owner="{owner}"}} {float(value):g}'
        yield "# HELP privada_outage Whether a part that the owner needs is away; questions wait meanwhile."
        yield "# TYPE privada_outage gauge"
        for (owner, part), since in sorted(self._outages.items()):
            yield f'privada_outage{{owner="{owner}",part="{part}"}} {float(since is not None):g}'


class _Handler(BaseHTTPRequestHandler):
    """Two pages, nothing else."""

    metrics: Metrics

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._send(200, "text/plain; version=0.0.4; charset=utf-8", self.metrics.to_text())
        elif self.path == "/health":
            ready = self.metrics.ready
            plain = {
                "status": "ok" if ready else "failing",
                "failing": self.metrics.unhealthy,
                "outages": self.metrics.outages,
            }
            self._send(200 if ready else 503, "application/json", json.dumps(plain) + "\n")
        else:
            self._send(404, "text/plain", "There are /health and /metrics.\n")

    def _send(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the log is the service's."""


@contextmanager
def publish(metrics: Metrics, port: int | None) -> Iterator[int | None]:
    """Serve the pages on this machine while a service runs; yields the port. None publishes nothing."""
    if port is None:
        yield None
        return
    handler = type("Handler", (_Handler,), {"metrics": metrics})
    try:
        server = ThreadingHTTPServer((HOST, port), handler)
    except OSError as error:
        raise InputError(f"--metrics-port: port {port} cannot be used: {error.strerror}.") from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


__all__ = ["Metrics", "publish"]
