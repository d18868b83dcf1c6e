"""An owner's process whose local ports are crowded by slow clients.

A real `privada owner serve`, which may have 1,024 descriptors, has its metrics port and its console's port
filled by clients that never finish a request: they connect and say nothing, stop in the middle of a header,
send a header byte by byte, or a form's body byte by byte. Who is dropped comes again. Meanwhile health and
console are asked for every second, and questions are asked one after another; each of these has `PATIENCE`
seconds.

Run as a program, with a port and a number, it is the clients of one port; it says so when they are connected.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from privada.service.console.users import User, Users

CONNECTIONS = 1200  # on each port
DESCRIPTORS = 1024  # of the owner's process
PATIENCE = 2.0  # seconds
LOG_BYTES = 20_000  # as many as the owner may write about it
_BEGINNINGS = (
    b"",
    b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Padding: ",
    b"GET /sign-in HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Padding: ",
    b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: http://127.0.0.1:%d\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 60000\r\n\r\nname=",
)


def crowd_ports(home: Path, *, seconds: float, ask: Callable[[int], Callable[[], bool]]) -> Counter[str]:
    """Crowd the ports of the owner in a folder, and count what it left unanswered.

    Parameters
    ----------
    home : path
        Where its ``owner.toml`` is; its exchange is made here.
    seconds : float
        How long the clients stay.
    ask : callable
        ``ask(number)`` asks one more question and returns what tells whether it has its release.
    """
    Users(home / "console-users.json").put(User.create("Grace", "viewer", "correct horse"))
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        owner, metrics, console = stack.enter_context(_serving(home))
        _wait(lambda: _answers(f"http://127.0.0.1:{metrics}/health", 10.0), 60.0)
        if not _wait(ask(0), 60.0):  # the first answer loads libraries
            raise RuntimeError("The owner does not answer before anybody crowds it.")
        for port in (metrics, console):
            stack.enter_context(_clients(port))
            counts["connections"] += CONNECTIONS
        end, number = time.monotonic() + seconds, 1
        while time.monotonic() < end:
            is_answered = ask(number)
            pages = {
                "health": f"http://127.0.0.1:{metrics}/health",
                "pages": f"http://127.0.0.1:{console}/sign-in",
            }
            for what, url in pages.items():
                counts[f"{what}_unanswered"] += not _answers(url, PATIENCE)
            counts["questions_unanswered"] += not _wait(is_answered, PATIENCE)
            counts["descriptors"] = max(counts["descriptors"], _count_descriptors(owner.pid))
            number += 1
            time.sleep(max(0.0, min(1.0, end - time.monotonic())))
        counts["tries"] = number - 1
    log = (home / "serve.log").read_bytes()
    counts["log_bytes"] = len(log)
    for line in log.splitlines():
        json.loads(line)  # an error of a line that is not JSON, such as a traceback
    return counts


@contextmanager
def _serving(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """The owner's process, and the ports of its metrics and its console."""
    metrics, console = _free_port(), _free_port()
    command = [sys.executable, "-m", "privada.cli", "owner", "serve", f"clinic={home / 'owner.toml'}"]
    options = [
        "--exchange",
        home / "exchange",
        "--metrics-port",
        metrics,
        "--console",
        "--console-port",
        console,
    ]
    with (home / "serve.log").open("wb") as log:
        owner = subprocess.Popen(
            [*command, *map(str, options)],
            stderr=log,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)),  # noqa: PLW1509
        )
        try:
            yield owner, metrics, console
        finally:
            owner.terminate()
            try:
                owner.wait(30.0)
            except subprocess.TimeoutExpired:
                owner.kill()
                owner.wait()


@contextmanager
def _clients(port: int) -> Iterator[None]:
    """The slow clients of a port, in a process of their own, all of them connected."""
    command = [sys.executable, "-m", "benchmarks._slow_clients", str(port), str(CONNECTIONS)]
    clients = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])
    try:
        assert clients.stdout is not None
        clients.stdout.readline()
        yield
    finally:
        clients.kill()
        clients.communicate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _answers(url: str, patience: float) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=patience) as reply:
        return bool(reply.read())
    return False


def _wait(holds: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def _count_descriptors(process: int) -> int:
    folder = Path(f"/proc/{process}/fd")
    return len([*folder.iterdir()]) if folder.is_dir() else 0


async def _crowd(port: int, number: int) -> None:
    """Be the clients of a port until this process is ended."""
    connected: set[int] = set()
    ready = asyncio.Event()

    async def client(index: int) -> None:
        beginning = _BEGINNINGS[index % len(_BEGINNINGS)]
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                connected.add(index)
                if len(connected) == number:
                    ready.set()
                with suppress(OSError):
                    await _say_slowly(reader, writer, beginning.replace(b"%d", str(port).encode()))
                writer.transport.abort()
            await asyncio.sleep(1.0)

    clients = [asyncio.create_task(client(index)) for index in range(number)]
    with suppress(TimeoutError):  # where the port takes no more, they keep trying
        await asyncio.wait_for(ready.wait(), 10.0)
    print("connected", flush=True)
    await asyncio.gather(*clients)


async def _say_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, beginning: bytes) -> None:
    """Send the beginning of a request, and of two out of three one more byte now and then, until dropped."""
    writer.write(beginning)
    goes_on = bool(beginning) and id(writer) % 3 > 0
    while True:
        with suppress(TimeoutError):
            if not await asyncio.wait_for(reader.read(1024), 0.5):
                return
        if goes_on:
            writer.write(b"x")
            await writer.drain()


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needs = int(sys.argv[2]) + 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (needs if hard < 0 else min(hard, needs), hard))
    asyncio.run(_crowd(int(sys.argv[1]), int(sys.argv[2])))
