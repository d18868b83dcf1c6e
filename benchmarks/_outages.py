"""Outages of what an owner computes with: real servers that are ended and started beside ``owner serve``."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from privada import AskOwner, Mailbox
from privada.parties.owner_file import OwnerFile
from privada.privacy import Question

PATIENCE = 90.0  # seconds for whatever should come; a busy machine may need some


class Part(Protocol):
    """Something that can be ended and started."""

    def start(self) -> None:
        """Start it, and return when it can be reached."""
        ...

    def stop(self) -> None:
        """End it at once."""
        ...


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_port(port: int) -> None:
    """Wait until somebody listens at a port."""
    await_true(lambda: _listens(port), f"somebody at port {port}")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def await_true(happens: Callable[[], Any], what: str) -> None:
    """Wait until something happens."""
    deadline = time.monotonic() + PATIENCE
    while not happens():
        if time.monotonic() > deadline:
            raise RuntimeError(f"Waited {PATIENCE:g} s in vain for {what}.")
        time.sleep(0.05)


class DaskCluster:
    """A scheduler and a worker as processes, on a port that stays the same."""

    def __init__(self) -> None:
        self._port = free_port()
        self.url = f"tcp://127.0.0.1:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start both; the owner waits until the worker is there."""
        self._run("scheduler", "--host", "127.0.0.1", "--port", str(self._port), "--no-dashboard")
        await_port(self._port)
        self.start_worker()

    def start_worker(self) -> None:
        """Start a worker."""
        self._run("worker", self.url, "--nthreads", "1", "--no-dashboard", "--no-nanny")

    def stop(self) -> None:
        """Kill both."""
        while self._processes:
            self.stop_worker()

    def stop_worker(self) -> None:
        """Kill the process that was started last, which is the worker."""
        process = self._processes.pop()
        process.kill()
        process.wait()

    def _run(self, kind: str, *options: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        self._processes.append(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )


@dataclass(frozen=True)
class Case:
    """An owner in a folder of `benchmarks.faults.set_up`, and a part that will be away.

    Attributes
    ----------
    owner : str
        The owner's name in the exchange.
    home : Path
    part : Part
    called : str
        What ``/health`` calls the part.
    """

    owner: str
    home: Path
    part: Part
    called: str

    @property
    def exchange(self) -> Path:
        """The folder of the exchange, which all cases share."""
        return self.home.parent / "exchange"

    def ask(self, question: Question) -> None:
        """Ask a question."""
        with Mailbox.open(self.exchange) as mailbox:
            mailbox.ask(AskOwner(self.owner, question))

    def await_answers(self, number: int) -> None:
        """Wait until there are so many releases."""
        await_true(lambda: len(self._items("release")) >= number, f"{number} releases of {self.owner}")

    def count(self) -> Counter[str]:
        """Questions, releases, signed refusals, and charges beyond one for each question."""
        with OwnerFile.read(self.home / "owner.toml").open_ledger() as ledger:
            lines = [line.kind for line in ledger.lines("patients")]
        asked = len(self._items("question"))
        return +Counter(
            asked=asked,
            answered=len(self._items("release")),
            refusals=len(self._items("refusal")) + lines.count("refusal"),
            extra_charges=max(0, lines.count("charge") - asked),
        )

    def _items(self, kind: str) -> list[Path]:
        return [*(self.exchange / f"{kind}s" / self.owner).glob(f"*.{kind}")]


class Served:
    """A process that serves the owners of some cases through a folder."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.process = subprocess.Popen(serve_command(cases), stderr=subprocess.PIPE, text=True)
        self.log: list[dict[str, Any]] = []
        self.early: list[str] = []
        self.noise: list[str] = []  # lines that are not JSON, once it serves
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        await_true(lambda: self.events("serving"), "the service")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                self.log.append(json.loads(line))
            except ValueError:
                (self.noise if self.log else self.early).append(line)

    def events(self, event: str) -> list[dict[str, Any]]:
        """Lines of the log."""
        if self.process.poll() is not None:
            raise RuntimeError(f"The service ended: {''.join(self.early + self.noise)[-500:]}")
        return [line for line in self.log if line["event"] == event]

    def health(self) -> dict[str, Any]:
        """What ``/health`` says."""
        return json.loads(self.page("health"))

    def page(self, name: str) -> str:
        """The text of a page."""
        (line,) = self.events("publishing metrics")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{line['port']}/{name}", timeout=10) as reply:
                return reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    def await_outage(self, case: Case) -> None:
        """Wait until ``/health`` names what is away."""

        def is_named() -> bool:
            named = {(outage["owner"], outage["part"]) for outage in self.health()["outages"]}
            return (case.owner, case.called) in named

        await_true(is_named, f"an outage of {case.called}")

    def await_health(self) -> None:
        """Wait until ``/health`` is ok."""
        await_true(lambda: self.health()["status"] == "ok", "health")

    def stop(self) -> None:
        """Ask it to end, and wait for it."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=PATIENCE)
        finally:
            self.process.kill()
            self._reader.join(timeout=5)
            assert self.process.stderr is not None
            self.process.stderr.close()


def serve_command(cases: Sequence[Case]) -> list[str]:
    """The command that serves the owners of some cases."""
    owners = [f"{case.owner}={case.home}/owner.toml" for case in cases]
    options = ("--exchange", str(cases[0].exchange), "--metrics-port", "0")
    return [sys.executable, "-m", "privada.cli", "owner", "serve", *owners, *options]


@contextmanager
def served(cases: Sequence[Case]) -> Iterator[Served]:
    """A service that is stopped in the end."""
    service = Served(cases)
    try:
        yield service
    finally:
        service.stop()


def endure(
    cases: Sequence[Case], question: Callable[[str], Question], *, outages: int, seconds: float
) -> Served:
    """Ask before, during and after outages of everything at once; returns the service, which has ended.

    In every other outage the parts are stopped while the owners are at work on a question.
    """
    with served(cases) as service:
        service.await_health()
        for case in cases:
            case.ask(question("before"))
        for case in cases:
            case.await_answers(1)
        for number in range(outages):
            steps = [Case.ask, lambda case, _: case.part.stop()]
            for step in steps if number % 2 else reversed(steps):
                for case in cases:
                    step(case, question(f"outage {number}"))
                time.sleep(random.uniform(0, 0.2))
            for case in cases:
                service.await_outage(case)
            time.sleep(seconds)
            for case in cases:
                case.part.start()
            for case in cases:
                case.await_answers(number + 2)
        service.await_health()
    return service


__all__ = [
    "Case",
    "DaskCluster",
    "Part",
    "Served",
    "await_port",
    "await_true",
    "endure",
    "free_port",
    "serve_command",
    "served",
]
