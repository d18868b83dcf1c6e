"""Questions and releases over NATS beside bare NATS, and rounds over NATS beside rounds over a folder.

All servers and parties are on this machine; owners are processes of their own. *Question to release*: a
signed question goes to an owner, which checks it and sends a signed release of 1 MB that the learner
checks. The answer's own work and its charge are left out, as bare NATS has none; *rounds per second* have
both, on a ledger that is synced to disk. *200 MB*: seconds of writing and reading a release in parts beside
the same chunks by nats-py alone, and the largest resident memory of either side while it does so, in
chunks above what it had before. *64 owners* answer one `summarization` run from two processes, each over a
connection of its own. An idle owner is a process that holds 1,000 rows and waits for questions.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks._figures import Figure, main
from benchmarks._nats import BareLearner, answer_bare, receive_bare, running_nats, send_bare
from privada.exchange.courier import Courier, open_courier
from privada.exchange.envelope import Envelope
from privada.exchange.mailbox import Mailbox
from privada.exchange.nats import NatsCourier
from privada.exchange.nats_client import Connection
from privada.exchange.posting import key_of, post, receive
from privada.methods.cells import CellStatistics, NearestCells
from privada.methods.summarization.learner.learn import Matching, match
from privada.methods.summarization.questions.matching import FourierEmbedding
from privada.parties.owner import Owner
from privada.parties.protocol import AskOwner
from privada.parties.schema import Schema
from privada.privacy import ZCDP, LearnerKey, Ledger, OwnerKey, Relation
from privada.privacy.guarantee import ApproxDP
from privada.privacy.release import Release

SPAWN = multiprocessing.get_context("spawn")
RELEASE, QUESTION = 10**6, 4096  # bytes
LEARNER = LearnerKey.generate()
MANY = 64
BUDGET = ApproxDP(epsilon=2.0, delta=1e-6, relation=Relation.REPLACE_ONE)


def measure(quick: bool) -> Iterator[Figure]:
    """Everything on one server and in one folder."""
    with tempfile.TemporaryDirectory() as folder, running_nats(Path(folder)) as url:
        with NatsCourier(Connection([url])) as administrator:
            administrator.create_exchange()
        home, bare = Path(folder), f"nats-py {version('nats-py')}"
        yield from _question_to_release(url, 150 if quick else 600, bare)
        yield from _large_release(url, home, 50 if quick else 200, 1 if quick else 3, bare)
        yield from _rounds(url, home, 30 if quick else 200)
        yield from _many_owners(url, home)
        yield Figure("idle_owner_mb", _idle_owner(url, home), None, "lower", "a process with 1,000 rows", 1)


@contextmanager
def _process(work: Callable[..., None], *given: Any) -> Iterator[Any]:
    """A process that says when it is ready; ended at the end if it has not ended by itself."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=work, args=(*given, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        assert ours.recv() == "ready"
        yield ours
    finally:
        ours.close()
        process.join(timeout=2)
        process.terminate()
        process.join()


def _question_to_release(url: str, rounds: int, bare: str) -> Iterator[Figure]:
    """A round of each in turn, so that what else the machine does meets both alike."""
    theirs, ours = [], []
    owners = _process(answer_bare, url, RELEASE), _process(_answer_envelopes, url, "clinic")
    with owners[0], owners[1], open_courier(url) as courier, closing(BareLearner(url)) as rival:
        for _ in range(rounds):
            theirs.append(rival.ask(bytes(QUESTION)))
            ours.append(_ask_envelope(courier, "clinic"))
    ratio = median(ours[5:]) / median(theirs[5:])
    yield Figure("question_to_release_vs_bare_nats", ratio, 1.5, "lower", f"{bare}, 1 MB", rounds)
    yield Figure("question_to_release_ms", 1000 * median(ours[5:]), None, "lower", "1 MB", rounds)


def _answer_envelopes(url: str, name: str, pipe: Any) -> None:
    """An owner without data: checks each question's envelope and sends a signed release of 1 MB."""
    key, known = OwnerKey.generate(), set[str]()
    with open_courier(url) as courier:
        courier.wait(f"questions/{name}/", known=known, seconds=0)
        pipe.send("ready")
        while not pipe.poll():
            for item in courier.wait(f"questions/{name}/", known=known, seconds=0.5):
                known.add(item)
                asked, _ = Envelope.split(courier.get(item) or b"")
                told = Envelope(kind="release", owner=name, owner_key=key.public, question=asked.question)
                post(courier, told, bytes(RELEASE), key)


def _ask_envelope(courier: Courier, name: str) -> float:
    """Seconds from a question to its release, signatures and digests made and checked."""
    start = time.perf_counter()
    key, digest = LEARNER, secrets.token_hex(32)
    told = Envelope(kind="question", owner=name, learner="alice", learner_key=key.public, question=digest)
    post(courier, told, bytes(QUESTION), key)
    place = key_of("release", name, digest)
    courier.wait(f"releases/{name}/", known=_AllBut(place), seconds=60)
    _receive(courier, name, place, Path(os.devnull))
    return time.perf_counter() - start


class _AllBut:
    """Every key but one, as `Asking` waits."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted

    def __contains__(self, key: object) -> bool:
        return key != self._wanted


def _receive(courier: Courier, name: str, place: str, target: Path) -> None:
    envelope, rest = Envelope.split(courier.get(place) or b"")
    with target.open("wb") as file:
        receive(courier, f"releases/{name}", envelope, rest, file)


def _large_release(url: str, home: Path, megabytes: int, turns: int, bare: str) -> Iterator[Figure]:
    """Write and read one release in parts, and the same bytes by the rival."""
    ratios, memory = [], []
    for turn in range(turns):
        source = home / f"source-{turn}"
        with source.open("wb") as file:
            for _ in range(megabytes):
                file.write(secrets.token_bytes(10**6))
        with open_courier(url) as courier:
            chunk = courier.largest
        chunks = -(-megabytes * 10**6 // chunk)
        theirs = send_bare(url, source, chunk) + receive_bare(url, home / "target", source.name, chunks)
        sent = _in_process(_send_file, url, source)
        got = _in_process(_receive_file, url, home / "target", sent[2])
        assert (home / "target").read_bytes() == source.read_bytes()
        source.unlink()
        ratios.append((sent[0] + got[0]) / theirs)
        memory.append(max(sent[1], got[1]) / chunk)
    beside = f"{bare}, {megabytes} MB, chunk by chunk"
    yield Figure("large_release_vs_bare_chunks", median(ratios), 2.0, "lower", beside, turns)
    yield Figure("large_release_peak_chunks", max(memory), 3.0, "lower", "the same side when idle", turns)


def _in_process(work: Callable[..., None], *given: Any) -> Any:
    with _process(work, *given) as pipe:
        return pipe.recv()


def _send_file(url: str, source: Path, pipe: Any) -> None:
    key = OwnerKey.generate()
    told = Envelope(kind="release", owner="lab", owner_key=key.public, question=secrets.token_hex(32))
    with open_courier(url) as courier, source.open("rb") as file:
        _warm_up(courier, key)
        pipe.send("ready")
        before, start = _reset_peak(), time.perf_counter()
        place = post(courier, told, file, key)
        pipe.send((time.perf_counter() - start, _peak() - before, place))


def _receive_file(url: str, target: Path, place: str, pipe: Any) -> None:
    with open_courier(url) as courier:
        _warm_up(courier, OwnerKey.generate())
        pipe.send("ready")
        before, start = _reset_peak(), time.perf_counter()
        _receive(courier, "lab", place, target)
        pipe.send((time.perf_counter() - start, _peak() - before))


def _warm_up(courier: Courier, key: OwnerKey) -> None:
    """One small release there and back, so that what is loaded once does not count."""
    told = Envelope(kind="release", owner="lab", owner_key=key.public, question=secrets.token_hex(32))
    _receive(courier, "lab", post(courier, told, bytes(1000), key), Path(os.devnull))


def _reset_peak() -> int:
    """Let the system forget the largest resident memory so far; what is resident now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def _rounds(url: str, home: Path, rounds: int) -> Iterator[Figure]:
    """One owner with a ledger on disk answers one question after the other."""
    found = {}
    for name, place in (("nats", url), ("folder", str(home / "exchange"))):
        with _process(_serve, place, home, (f"one-{name}",)), Mailbox.open(place) as mailbox:
            mailbox.learn(_ask_in_rounds(f"one-{name}", 3, "warm"), patience=60)
            start = time.perf_counter()
            mailbox.learn(_ask_in_rounds(f"one-{name}", rounds, "timed"), patience=60)
            found[name] = rounds / (time.perf_counter() - start)
    yield Figure("rounds_per_second_nats", found["nats"], None, "higher", "one owner, one learner", rounds)
    yield Figure("rounds_per_second_folder", found["folder"], None, "higher", "the same", rounds)


def _ask_in_rounds(owner: str, rounds: int, salt: str) -> Any:
    for number in range(rounds):
        cells = (NearestCells(centers=np.eye(4)),)
        tiny = ZCDP(rho=1e-6, relation=Relation.REPLACE_ONE)
        yield AskOwner(owner, CellStatistics(tables=cells, guarantee=tiny, salt=f"{salt} {number}"))
    return rounds


def _make_owner(home: Path, name: str) -> Owner:
    ledger = Ledger.open(home / f"{name}.sqlite", OwnerKey.generate())
    ledger.open_budget(name, BUDGET, accounting="gaussian")
    rows = np.random.default_rng(len(name)).normal(size=(1000, 4)).clip(-3, 3)
    schema = Schema.of_numbers(bounds=(-3.0, 3.0), width=4, size=1000)
    return Owner(rows, schema=schema, dataset=name, budget=BUDGET, ledger=ledger, accounting="gaussian")


def _serve(place: str, home: Path, names: tuple[str, ...], pipe: Any) -> None:
    """Answer for owners until told to stop."""
    desks = [(open_courier(place), name, _make_owner(home, name)) for name in names]
    known: dict[str, set[str]] = {name: set() for name in names}
    sides = [Mailbox(courier).for_owner(name, owner) for courier, name, owner in desks]
    pipe.send("ready")
    while not pipe.poll():
        for (courier, name, _), side in zip(desks, sides, strict=True):
            pause = 0.5 if len(names) == 1 else 0.0
            if come := courier.wait(f"questions/{name}/", known=known[name], seconds=pause):
                known[name].update(come)
                side.answer()
        if len(names) > 1:
            time.sleep(0.001)
    for courier, _, _ in desks:
        courier.close()


def _many_owners(url: str, home: Path) -> Iterator[Figure]:
    """A consumer and 64 owners in two processes."""
    names = [f"owner-{number:02d}" for number in range(MANY)]
    embedding = FourierEmbedding.of(width=4, n_features=40, gamma=0.5, random_state=0)
    matching = Matching(embedding=embedding, size=400, validation=BUDGET, owners=BUDGET)
    first, second = (*names[: MANY // 2], "consumer"), tuple(names[MANY // 2 :])
    with (
        _process(_serve, url, home, first),
        _process(_serve, url, home, second),
        Mailbox.open(url) as mailbox,
    ):
        releases: list[Release] = []
        start = time.perf_counter()
        learner = match("consumer", 1000, dict.fromkeys(names, 1000), matching)
        mailbox.learn(learner, patience=120, witness=releases.append)
        seconds = time.perf_counter() - start
    answered = len({release.receipt.dataset for release in releases} - {"consumer"})
    yield Figure("owners_in_one_summarization", answered, MANY, "higher", f"{len(releases)} releases", 1)
    yield Figure("seconds_of_64_owners", seconds, None, "lower", "one summarization run over NATS", 1)


def _idle_owner(url: str, home: Path) -> float:
    with _process(_idle, url, home) as pipe:
        return float(pipe.recv()) / 1e6


def _idle(url: str, home: Path, pipe: Any) -> None:
    side = Mailbox.open(url).for_owner("idle", _make_owner(home, "idle"))
    side.answer()
    side.courier.wait("questions/idle/", known=(), seconds=0.2)
    pipe.send("ready")
    pipe.send(_status("VmRSS"))


if __name__ == "__main__":
    main(measure, "Questions and releases over NATS, folders and bare NATS")
