"""An owner, a learner and a broker over NATS, one of which is ended by SIGKILL at a random instant.

Each run has a learner that asks two rounds. Its owner's process, the learner's or the broker is killed while
they work and started again; the learner is started again until it has its result. At the end every release in
the exchange must be paid for by a line of the ledger (`exchange_unpaid_releases`), no question may be charged
twice (`exchange_extra_charges`), and every learner must have ended with its result, or with one sentence that
says why not and be able to go on (`exchange_unfinished_runs`, `exchange_unclear_ends`).

The same with a folder, where owner or learner is killed: what they were writing is hidden until it is
complete, and whoever was killed removes it when it starts again (`hidden_files_left`).

``python -m benchmarks.kills --runs 200`` is the default; ``--quick`` makes 20 runs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from benchmarks._figures import Figure, main
from benchmarks.faults import NAME, charged_questions, question, set_up
from privada import AskOwner, Mailbox, Owner
from privada.exceptions import PrivadaError
from privada.exchange import open_courier
from privada.exchange.broker import find_program
from privada.exchange.posting import read_payload
from privada.parties.protocol import Learner
from privada.privacy import Release
from privada.service.serving import Desk, Service

RUNS, QUICK_RUNS = 200, 20
VICTIMS = ("owner", "learner", "broker")
MOST_STARTS = 5  # of one learner: a person would not try more often
EPSILON = 0.001
PATIENCE = 20.0
UNCLEAR = 3  # exit code of a process that ended by anything but a privada error
COUNTS = ("unpaid_releases", "extra_charges", "unfinished_runs", "unclear_ends")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Broker:
    """A NATS server on a port of its own, with a store that survives it."""

    def __init__(self, home: Path) -> None:
        self._home, self._port = home, _free_port()
        self.url = f"nats://127.0.0.1:{self._port}/kills"
        self.start()

    def start(self) -> None:
        """Start it; couriers wait until it can be reached."""
        command = [find_program(), "-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(self._home)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> bool:
        """End it at once; whether it was running."""
        alive = self._process.poll() is None
        self._process.kill()
        self._process.wait()
        return alive


class Child:
    """A forked process that does some work."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.start()

    def start(self) -> None:
        """Fork, and work."""
        self._number = os.fork()
        if self._number == 0:
            _work_and_end(self._work)

    def kill(self) -> bool:
        """End it at once; whether it was still at work."""
        os.kill(self._number, signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    def wait(self) -> int:
        """Its exit code."""
        return os.waitstatus_to_exitcode(os.waitpid(self._number, 0)[1])


def _work_and_end(work: Callable[[], object]) -> NoReturn:
    code = UNCLEAR
    try:
        work()
        code = 0
    except PrivadaError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        code = 1
    finally:
        os._exit(code)


def measure(quick: bool, runs: int = RUNS) -> Iterator[Figure]:
    """All runs, one after the other."""
    runs = QUICK_RUNS if quick else runs
    with TemporaryDirectory() as folder:
        counts = kill_parties(Path(folder), runs)
    yield Figure(
        "exchange_kills", counts["kills"], runs * 0.6, "higher", "runs whose victim was at work", runs
    )
    for name in COUNTS:
        yield Figure(f"exchange_{name}", counts[name], 0, "lower", "NATS JetStream", runs)
    with TemporaryDirectory() as folder:
        counts = kill_writers(Path(folder), runs)
    yield Figure("folder_kills", counts["kills"], runs * 0.6, "higher", "runs whose victim was at work", runs)
    for name in (*COUNTS, "hidden_files_left"):
        label = name if name == "hidden_files_left" else f"folder_{name}"
        yield Figure(label, counts[name], 0, "lower", "a folder", runs)


def kill_parties(folder: Path, runs: int, *, seed: int | None = None) -> Counter[str]:
    """Run studies of two rounds while one of three is killed, and count what went wrong."""
    chance = random.Random(seed)
    home = set_up(folder, "ledger.sqlite", budget=9000.0)
    _warm(home)
    broker = Broker(folder / "store")
    try:
        if Child(partial(_create_exchange, broker.url)).wait():
            raise RuntimeError("The broker did not start.")
        owner = Child(partial(_serve, home, broker.url))
        usual = _time_a_run(home, broker.url)
        counts = Counter[str]()
        for number in range(runs):
            others: dict[str, Broker | Child] = {"owner": owner, "broker": broker}
            counts += _run(home, broker.url, others, number, chance.uniform(0, 1.1 * usual))
        owner.kill()
        Child(partial(_collect, home, broker.url)).wait()
    finally:
        broker.kill()
    return counts + _count_wrongs(home)


def kill_writers(folder: Path, runs: int, *, seed: int | None = None) -> Counter[str]:
    """The same in a folder, without a broker; count also the hidden files that are there at the end."""
    chance = random.Random(seed)
    home, exchange = set_up(folder, "ledger.sqlite", budget=9000.0), str(folder / "exchange")
    _warm(home)
    owner = Child(partial(_serve, home, exchange))
    usual = _time_a_run(home, exchange)
    counts = Counter[str]()
    for number in range(runs):
        counts += _run(home, exchange, {"owner": owner}, number, chance.uniform(0, 1.1 * usual))
    owner.kill()
    Child(partial(_collect, home, exchange)).wait()
    hidden = [path for path in Path(exchange).rglob(".*") if path.is_file()]
    return counts + _count_wrongs(home) + Counter(hidden_files_left=len(hidden))


def _warm(home: Path) -> None:
    """Answer once in this process, from which all others are forked, so that they start at once."""
    owner = Owner.from_toml(home / "owner.toml")
    owner.answer(question("warm", epsilon=EPSILON))
    owner.ledger.close()


def _time_a_run(home: Path, url: str) -> float:
    """Seconds of a run that nobody harms, after one that warms the owner."""
    for name in ("warm", "unharmed"):
        started = time.monotonic()
        if Child(partial(_learn, home, url, name)).wait():
            raise RuntimeError("A run that nobody harmed failed.")
    return time.monotonic() - started


def _run(
    home: Path, url: str, others: Mapping[str, Broker | Child], number: int, instant: float
) -> Counter[str]:
    """One run: its victim, the learner or another party, is killed at an instant, and everybody goes on."""
    learner = Child(partial(_learn, home, url, str(number)))
    parties = {**others, "learner": learner}
    victims = [name for name in VICTIMS if name in parties]
    victim = parties[victims[number % len(victims)]]
    time.sleep(instant)
    counts = Counter[str](kills=int(victim.kill()))
    if victim is not learner:
        victim.start()
    code = 1 if victim is learner else learner.wait()
    for _ in range(MOST_STARTS):
        if code == 0:
            return counts
        counts["unclear_ends"] += code == UNCLEAR
        learner.start()
        code = learner.wait()
    return counts + Counter(unfinished_runs=int(code != 0))


def _create_exchange(url: str) -> None:
    with open_courier(url) as administrator:
        administrator.create_exchange()  # type: ignore[attr-defined]


def _serve(home: Path, url: str) -> None:
    Service([Desk(NAME, Owner.from_toml(home / "owner.toml"))], lambda: open_courier(url)).run()


def _learn(home: Path, url: str, name: str) -> None:
    """Ask two rounds, and write down which releases came."""
    with Mailbox.open(url) as mailbox:
        digests = mailbox.learn(_two_rounds(name), patience=PATIENCE)
    (home / f"result-{name}").write_text(" ".join(digests))


def _two_rounds(name: str) -> Learner[list[str]]:
    first = yield AskOwner(NAME, question(f"{name}, first", epsilon=EPSILON))
    second = yield AskOwner(NAME, question(f"{name}, then {first.digest}", epsilon=EPSILON))
    return [first.question, second.question]


def _collect(home: Path, url: str) -> None:
    """Copy all releases of the exchange into files."""
    with open_courier(url) as courier:
        for key in courier.keys(f"releases/{NAME}/"):
            if key.endswith(".release"):
                item = courier.get(key)
                assert item is not None
                (home / key.rpartition("/")[2]).write_bytes(item)


def _count_wrongs(home: Path) -> Counter[str]:
    """Compare releases, results and charges; a forged or foreign release raises an error."""
    releases = [Release.from_bytes(read_payload(path)) for path in home.glob("*.release")]
    charged = Counter(charged_questions(home, [release.receipt for release in releases]))
    given = {release.question for release in releases}
    results = {digest for path in home.glob("result-*") for digest in path.read_text().split()}
    if results - given:
        raise RuntimeError("A learner has a release that is not in the exchange.")
    return Counter(unpaid_releases=len(given - charged.keys()), extra_charges=charged.total() - len(charged))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--runs", type=int, default=RUNS)
    options, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    main(partial(measure, runs=options.runs), "Kills of owner, learner and broker (--runs N, default 200)")
