"""A NATS server for benchmarks, and what nats-py alone does on it: the rivals of an exchange.

A rival's round is a key-value bucket that both sides watch; its large transfer writes and reads one chunk
after the other, the same bytes in the same sizes.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privada.exchange.broker import find_program, stop_server


@contextmanager
def running_nats(folder: Path) -> Iterator[str]:
    """URL of a server without encryption, with its store in a folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [find_program(), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "store")]
    with (folder / "nats.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _await_port(port)
        yield f"nats://127.0.0.1:{port}"
    finally:
        stop_server(server)


def _await_port(port: int) -> None:
    for _ in range(1000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit("nats-server did not start")


async def open_bucket(url: str, name: str) -> tuple[Any, Any]:
    """A client and a key-value bucket on disk."""
    import nats

    client = await nats.connect(url)
    return client, await client.jetstream().create_key_value(bucket=name)


def answer_bare(url: str, size: int, pipe: Any) -> None:
    """The rival's owner: for every question, a release of so many bytes."""

    async def run() -> None:
        client, bucket = await open_bucket(url, "rounds")
        watcher = await bucket.watch("questions.>")
        pipe.send("ready")
        async for entry in watcher:
            if entry is not None:
                await bucket.create(f"releases.{entry.key.split('.')[1]}", bytes(size))
                if entry.value == b"stop":
                    break
        await client.close()

    asyncio.run(run())


class BareLearner:
    """The rival's learner: one round after the other."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._open(url))
        self._number = 0

    async def _open(self, url: str) -> None:
        self._client, self._bucket = await open_bucket(url, "rounds")
        self._watcher = await self._bucket.watch("releases.>")
        await self._watcher.updates(timeout=10)  # nothing is there yet

    def ask(self, question: bytes) -> float:
        """Seconds of a round."""
        return self._loop.run_until_complete(self._ask(question))

    async def _ask(self, question: bytes) -> float:
        start = time.perf_counter()
        self._number += 1
        await self._bucket.create(f"questions.{self._number}", question)
        await self._watcher.updates(timeout=60)
        return time.perf_counter() - start

    def close(self) -> None:
        """Tell the owner to stop, and end the connection."""
        self.ask(b"stop")
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        await self._client.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def send_bare(url: str, source: Path, chunk: int) -> float:
    """Write a file chunk by chunk; seconds."""

    async def run() -> float:
        client, bucket = await open_bucket(url, "transfer")
        start = time.perf_counter()
        with source.open("rb") as file:
            number = 0
            while block := file.read(chunk):
                await bucket.create(f"{source.name}.{number}", block)
                number += 1
        seconds = time.perf_counter() - start
        await client.close()
        return seconds

    return asyncio.run(run())


def receive_bare(url: str, target: Path, name: str, chunks: int) -> float:
    """Read the chunks into a file; seconds."""

    async def run() -> float:
        client, bucket = await open_bucket(url, "transfer")
        start = time.perf_counter()
        with target.open("wb") as file:
            for number in range(chunks):
                file.write((await bucket.get(f"{name}.{number}")).value)
        seconds = time.perf_counter() - start
        await client.close()
        return seconds

    return asyncio.run(run())


__all__ = ["BareLearner", "answer_bare", "receive_bare", "running_nats", "send_bare"]
