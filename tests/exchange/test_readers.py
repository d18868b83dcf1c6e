"""What somebody sees who reads all of a courier: nothing that follows from private rows but releases.

Whole runs of `summarization` over real couriers, in two worlds that differ in one row of one owner, with the
same keys and the same seeded noise. Everything that a reader sees must be the same, but for what is random
anyway: times, signatures, digests, and the content of what is encrypted, never its length.
"""

import asyncio
import itertools
import json
import re
import secrets
import threading
import zlib
from collections import defaultdict

import numpy as np
import pytest

from privada import Mailbox, Owner, Policy, Schema
from privada.exceptions import PrivadaError
from privada.exchange import Sender, open_courier
from privada.exchange.envelope import Envelope
from privada.exchange.folder import FolderCourier
from privada.methods.summarization import (
    Allocation,
    CuratorNoise,
    FourierEmbedding,
    Matching,
    RoundPoints,
    gather,
    greedy_rounds,
    supply_noise,
)
from privada.parties.permissions import KnownLearner
from privada.parties.protocol import Inquiry
from privada.parties.schema import Category
from privada.privacy import ZCDP, Ledger, OwnerKey, Question, Rehearsal, Release
from privada.privacy.keys import LearnerKey
from privada.service import serving
from privada.service.serving import Desk, Service

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")

NAMES = ("consumer", "east", "north", "west")
KEYS = {name: OwnerKey.generate() for name in NAMES}
CURATOR = LearnerKey.generate()
ILL = Category(name="ill", values=(0, 1))
BUDGET = ZCDP(rho=50.0, relation="replace-one")
MATCHING = Matching(
    embedding=FourierEmbedding.of(width=2, n_features=8, gamma=0.5, random_state=0),
    size=16,
    validation=BUDGET,
    owners=BUDGET,
    salt="start 0123456789abcdef",
)
HEX = re.compile("[0-9a-f]{32,}")


def rows_of(world):
    """Rows of all; in other worlds, one row of east is a copy of another one, or is far away."""
    rng = np.random.default_rng(4)
    rows = {name: rng.normal(1, 0.5, size=(40 if name == "consumer" else 6, 2)) for name in NAMES}
    rows["north"][3:] = rows["north"][:3]  # different points run out before the summary is full
    if world == 1:
        rows["east"][5] = rows["east"][2]
    if world == 2:
        rows["east"][5] = (-3.5, 3.9)
    return rows


def owners_of(rows):
    owners = {}
    for number, (name, X) in enumerate(rows.items()):
        ledger = Ledger.open(":memory:", KEYS[name])
        ledger.open_budget(name, BUDGET, accounting=None)
        owners[name] = Owner(
            X,
            y=np.arange(len(X)) % 2,
            schema=Schema.of_numbers(bounds=(-4, 4), width=2, size=len(X), label=ILL),
            dataset=name,
            budget=BUDGET,
            ledger=ledger,
            policy=Policy(curators=("curator",)),
            learners=[KnownLearner(name="curator", key=CURATOR.public)],
            insecure_seed=number,
        )
    return owners


def rounds(ask_share):
    sizes = dict.fromkeys(NAMES[1:], 6)
    learner = greedy_rounds("consumer", 40, sizes, MATCHING, batch=2, ask_share=ask_share)
    return supply_noise(learner, CuratorNoise(Rehearsal(11)).draw)


def matched_rows():
    """The last step of local matching: an allocation, which follows from releases, is gathered."""
    names = NAMES[1:]
    return gather(
        Allocation(
            rows=dict.fromkeys(names, 6),
            sizes=dict.fromkeys(names, 6),
            suitable=dict.fromkeys(names, 1.0),
            target=MATCHING.embedding.mean(np.ones((1, 2))),
            variance=0.01,
            releases=(),
        ),
        MATCHING,
    )


LEARNERS = {
    "everyone is asked": lambda: rounds(0.0),
    "few are asked": lambda: rounds(0.9),
    "rows are gathered": matched_rows,
}


class FolderReader:
    """Reads a shared folder: names and bytes of all files, in the order of their times."""

    is_ordered = True

    def __init__(self, request):
        self.path = request.getfixturevalue("tmp_path") / secrets.token_hex(4)

    def place(self):
        return FolderCourier(self.path)

    def items(self):
        files = sorted(
            (path for path in self.path.rglob("*") if path.is_file()),
            key=lambda path: path.stat().st_mtime_ns,
        )
        return [(path.relative_to(self.path).as_posix(), path.read_bytes()) for path in files]


class BucketReader:
    """Reads a bucket with another program: names and bytes of all objects."""

    is_ordered = False  # a store says only in which second an object was written

    def __init__(self, request):
        self.endpoint, self.name = request.getfixturevalue("s3_server"), secrets.token_hex(4)

    def place(self):
        return open_courier(f"s3://exchange/{self.name}")

    def items(self):
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="tests",
            aws_secret_access_key="tests-secret",
        )
        pages = client.get_paginator("list_objects_v2").paginate(Bucket="exchange", Prefix=f"{self.name}/")
        keys = [entry["Key"] for page in pages for entry in page["Contents"]]
        objects = [(key, client.get_object(Bucket="exchange", Key=key)["Body"].read()) for key in keys]
        return [(key.removeprefix(f"{self.name}/"), body) for key, body in objects]


class NatsReader:
    """Subscribes to all of an exchange with another program, and hears every message as it is sent."""

    is_ordered = True

    def __init__(self, request):
        self.server = request.getfixturevalue("nats_server").url
        self.name, self.heard = secrets.token_hex(4), list[tuple[str, bytes]]()
        with open_courier(f"{self.server}/{self.name}") as administrator:
            administrator.create_exchange()
        self.ready, self.stop = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.listen()))
        self.thread.start()
        assert self.ready.wait(10)

    async def listen(self):
        nats = pytest.importorskip("nats")
        client = await nats.connect(self.server)

        async def hear(message):
            self.heard.append((message.subject, message.data))

        for subject in (f"privada.{self.name}.>", "$JS.API.>"):
            await client.subscribe(subject, cb=hear)
        await client.flush()
        self.ready.set()
        while not self.stop.is_set():
            await asyncio.sleep(0.05)
        await client.drain()

    def place(self):
        return open_courier(f"{self.server}/{self.name}")

    def items(self):
        self.stop.set()
        self.thread.join()
        place = f"privada.{self.name}."
        return [(name.removeprefix(place), data) for name, data in self.heard if name.startswith(place)]

    def requests(self):
        """The items that anybody looked for, whether they were there or not."""
        place = f"$JS.API.DIRECT.GET.privada-{self.name}.privada.{self.name}."
        return {name.removeprefix(place) for name, _ in self.heard if name.startswith(place)}


READERS = {"folder": FolderReader, "bucket": BucketReader, "nats": NatsReader}


def run(reader, world, learner, monkeypatch):
    """A whole run; what the curator got, and what the reader saw."""
    monkeypatch.setattr(serving, "SLICE", 0.2)
    rows = rows_of(world)
    owners = owners_of(rows)
    service = Service([Desk(name, owner) for name, owner in owners.items()], reader.place)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        with reader.place() as courier:
            sender = Sender(learner="curator", key=CURATOR)
            mailbox = Mailbox(courier, keys={name: key.public for name, key in KEYS.items()}, sender=sender)
            asking = Inquiry((), learner, frozenset(NAMES[1:]))
            summary = mailbox.learn(asking, patience=60)
    finally:
        service.stop()
        thread.join()
    items = reader.items()
    for X in rows.values():
        for number in X.ravel():
            assert not any(number.tobytes() in item for _, item in items)
    return summary, items


def describe(name, item):
    """What one item says in the clear, and how long everything is."""
    if name.endswith("probe"):
        return item
    envelope, rest = Envelope.split(item)
    statement = {**envelope._statement(), "time": "", "payload": len(rest)}
    return {**statement, **describe_payload(envelope.kind, bytes(rest))}


def describe_payload(kind, payload):
    """Everything in a question or a release that can be read; nothing of what is encrypted."""
    try:
        if kind == "question":
            question = Question.from_bytes(payload)
            arrays = {key: value.tolist() for key, value in question.parts()[1].items()}
            return {"header": question.header(), "arrays": arrays}
        if kind == "release":
            release = Release.from_bytes(payload)
            header, arrays = release._split()
            receipt = header["receipt"] | {"time": "", "signature": ""}
            return header | {"receipt": receipt, "arrays": {key: x.tolist() for key, x in arrays.items()}}
    except PrivadaError:
        pass
    assert len(zlib.compress(payload)) > len(payload) - 60, "what cannot be read is encrypted"
    return {}


def view(items, *, is_ordered):
    """What a reader saw: of the learner, and of each owner, in the order in which each wrote.

    Long hexadecimal numbers (digests, keys) are replaced by the order in which they first appear, or, if
    there is no order, by one mark.
    """
    written = defaultdict(list)
    for name, item in items:
        if "probe-" in name:  # sent once a second at most, and the same for everybody
            assert item == b"\n"
            continue
        writer = "learner" if name.startswith("questions") else re.split("[./]", name)[1]
        written[writer].append((name, describe(name, item)))
    numbers = {}

    def mark(match):
        return f"<{numbers.setdefault(match[0], len(numbers)) if is_ordered else ''}>"

    texts = {
        writer: [HEX.sub(mark, json.dumps(said, default=repr, sort_keys=True)) for said in written[writer]]
        for writer in ("learner", *NAMES)
    }
    return texts if is_ordered else {writer: sorted(said) for writer, said in texts.items()}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_a_reader_sees_the_same_whatever_one_row_is(reader, learner, request, monkeypatch):
    """All names, lengths, clear texts, counts and orders of whole runs, of which points run out."""
    summaries, views, requests = [], [], []
    for world in range(3):
        reading = reader(request)
        summary, items = run(reading, world, learner, monkeypatch)
        summaries.append(summary)
        views.append(view(items, is_ordered=reading.is_ordered))
        if isinstance(reading, NatsReader):
            requests.append(sorted(HEX.sub("<>", name) for name in reading.requests()))
    first = views[0]
    for other in views[1:]:
        assert {writer: len(said) for writer, said in first.items()} == {
            writer: len(said) for writer, said in other.items()
        }
        for writer in first:
            for here, there in zip(first[writer], other[writer], strict=True):
                assert here == there
    assert all(said == requests[0] for said in requests), "what is looked for names items, too"
    assert len({summary.X.tobytes() for summary in summaries}) == 3, "the worlds do differ"
    assert not any(summary.faults for summary in summaries)


@pytest.mark.parametrize("ask_share", [0.0, 0.9])
def test_a_reader_cannot_try_out_which_points_were_asked_for(ask_share, tmp_path, monkeypatch, request):
    """The digest of a question is in the clear: it must not confirm a guess of what the question asks for."""
    _, items = run(FolderReader(request), 0, lambda: rounds(ask_share), monkeypatch)
    envelopes = [Envelope.split(item)[0] for name, item in items if name.endswith(".question")]
    salts = {MATCHING.salt, *(f"{MATCHING.salt} points {number}" for number in range(1, 20))}
    fillings = [(), (2**62,), (2**62, 2**62)]
    guesses = [
        (*points, *filling)
        for size in range(3)
        for points in itertools.permutations(range(6), size)
        for filling in fillings
    ]
    digests = {
        RoundPoints(index=index, guarantee=BUDGET, salt=salt).digest for index in guesses for salt in salts
    }
    assert not digests & {envelope.question for envelope in envelopes}
    assert len({envelope.question for envelope in envelopes}) > 3 * 8
