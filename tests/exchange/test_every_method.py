"""Every method over every courier: the same releases, disclosures and results as in one process."""

import json
import secrets
import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from privada.exchange import Mailbox, Sender, open_courier
from privada.exchange.envelope import Envelope
from privada.exchange.folder import FolderCourier
from privada.exchange.local import LocalCourier
from privada.methods.evaluation import as_hypothesis
from privada.methods.method import methods
from privada.parties.owner import Owner
from privada.parties.owner_file import OwnerFile
from privada.parties.running import run
from privada.privacy import Release
from privada.privacy.keys import LearnerKey
from privada.service import serving
from privada.service.serving import Desk, Service
from privada.studies import Study
from privada.studies.example import write_example

pytestmark = [
    pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning"),
    pytest.mark.filterwarnings("ignore::privada.exceptions.PrivacyLeakWarning"),
]

CURATOR, SEED = LearnerKey.generate(), 7
LISTED = f'\n[[learners]]\nname = "curator"\nkey = "{CURATOR.public}"\n'


EVALUATION = """\
[study]
title = "How well does a model do at the clinic?"

[owners.clinic]
owner = "clinic/owner.toml"

[budget]
epsilon = 1.0

[method]
name = "evaluation"
model = "model.onnx"
bins = 4
positive = "ill"
"""


def write_study(folder, method):
    """The example study of a method; for evaluation, of an ONNX model at the clinic of `cells`."""
    if method != "evaluation":
        write_example(folder, name=method)
        return
    from sklearn.linear_model import LogisticRegression

    write_example(folder, name="cells")
    classes, X = ("well", "ill"), np.random.default_rng(2).uniform(0, 10, size=(80, 2))
    model = LogisticRegression().fit(X, np.where(X.sum(axis=1) > 11, "ill", "well"))
    onnx = as_hypothesis(model, width=2, classes=classes).model.tobytes()
    (folder / "model.onnx").write_bytes(onnx)
    (folder / "study.toml").write_text(EVALUATION)
    for file in folder.glob("*/owner.toml"):
        file.write_text(file.read_text().replace('"cells"', '"evaluation"'))


class Case:
    """An example study, its owners with seeded noise, and what it comes to in one process."""

    def __init__(self, method, folder):
        self.method = method
        write_study(folder, method)
        self.study_file = folder / "study.toml"
        for file in folder.glob("*/owner.toml"):
            file.write_text(file.read_text() + LISTED)
        self.releases = []
        owners = self.owners(learners=None)
        self.result = run(self.study().inquiry, owners, witness=self.releases.append)
        self.rows = self.summary_rows()

    def study(self):
        """The study; a summary of rows that an earlier run wrote is removed."""
        (self.study_file.parent / "summary.npz").unlink(missing_ok=True)
        return Study.read(self.study_file)

    def summary_rows(self):
        """The rows that a curator wrote, if the method is one that gathers rows."""
        file = self.study_file.parent / "summary.npz"
        if not file.exists():
            return {}
        with np.load(file) as saved:
            return {name: saved[name].tolist() for name in saved.files}

    def owners(self, **more):
        """Owners with ledgers in memory, each with its noise from the beginning."""
        files = {name: OwnerFile.read(self.study_file.parent / name / "owner.toml") for name in self.names}
        return {
            name: Owner.from_file(file, insecure_seed=SEED, ledger=None, **more)
            for name, file in files.items()
        }

    @property
    def names(self):
        return [path.parent.name for path in sorted(self.study_file.parent.glob("*/owner.toml"))]


@pytest.fixture(scope="module", params=sorted(methods()))
def case(request, tmp_path_factory):
    return Case(request.param, tmp_path_factory.mktemp(request.param))


def open_place(request, kind):
    if kind == "nats":
        url = f"{request.getfixturevalue('nats_server').url}/{secrets.token_hex(8)}"
        with open_courier(url) as administrator:
            administrator.create_exchange()
        return lambda: open_courier(url)
    if kind == "s3":
        request.getfixturevalue("s3_server")
        name = secrets.token_hex(8)
        return lambda: open_courier(f"s3://exchange/{name}")
    if kind == "folder":
        path = request.getfixturevalue("tmp_path") / "exchange"
        return lambda: FolderCourier(path)
    name = secrets.token_hex(8)
    return lambda: open_courier(f"memory://{name}")


class Captured(LocalCourier):
    """Keeps everything that its user puts."""

    def __init__(self, name, sent):
        super().__init__(name)
        self.sent = sent

    def put(self, key, blob):
        self.sent.append((key, bytes(blob)))
        return super().put(key, blob)


@contextmanager
def served(owners, place):
    service = Service([Desk(name, owner) for name, owner in owners.items()], place)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        yield
    finally:
        service.stop()
        thread.join()


@pytest.mark.parametrize("kind", ["memory", "folder", "s3", "nats"])
def test_the_same_bits_over_every_courier(case, kind, request, monkeypatch):
    monkeypatch.setattr(serving, "SLICE", 0.2)
    place, owners = open_place(request, kind), case.owners()
    keys = {name: owner.public_key for name, owner in owners.items()}
    releases, study = [], case.study()
    with served(owners, place), place() as courier:
        mailbox = Mailbox(courier, keys=keys, sender=Sender(learner="curator", key=CURATOR))
        result = mailbox.learn(study.inquiry, patience=60, witness=releases.append)
    assert json.dumps(result.to_dict()) == json.dumps(case.result.to_dict())
    assert case.summary_rows() == case.rows
    assert bool(case.rows) == (case.method == "summarization")
    assert len(releases) == len(case.releases)
    for here, there in zip(case.releases, releases, strict=True):
        assert here.question == there.question
        assert here.payload.keys() == there.payload.keys()
        for name, value in here.payload.items():
            assert np.array_equal(value, there.payload[name])


def test_owners_send_nothing_but_signed_releases_refusals_and_sealed_rows(case, monkeypatch):
    """A capture of all that owners put: each item is signed, and no row's bytes are in any of them."""
    monkeypatch.setattr(serving, "SLICE", 0.2)
    name, owners, sent = secrets.token_hex(8), case.owners(), []
    courier = LocalCourier(name)
    courier.put(f"questions/{case.names[0]}/{'ab' * 32}-{'cd' * 16}.question", b"planted")
    mailbox = Mailbox(courier, sender=Sender(learner="curator", key=CURATOR))
    stranger = Mailbox(courier, sender=Sender(learner="curator", key=LearnerKey.generate()))
    study = case.study()
    first = study.first_asks[0]
    stranger.ask(replace(first, question=replace(first.question, salt="a stranger's")))
    with served(owners, lambda: Captured(name, sent)):
        mailbox.learn(study.inquiry, patience=60)
        refusals = f"refusals/{first.owner}/"
        assert courier.wait(refusals, known={f"{refusals}probe"}, seconds=20), "the stranger is told"
    kinds = set()
    for key, item in sent:
        if key.endswith("/probe"):
            assert item == b"\n"
            continue
        envelope, rest = Envelope.split(item)
        assert envelope.owner_key == owners[envelope.owner].public_key
        assert key.startswith((f"releases/{envelope.owner}/", f"refusals/{envelope.owner}/"))
        kinds.add(envelope.kind)
        if envelope.kind == "release":
            assert Release.from_bytes(bytes(rest)).question == envelope.question
    assert kinds == {"release", "refusal"} | ({"disclosure"} if case.method == "summarization" else set())
    for private in private_values(case):
        assert not any(private in item for _, item in sent)


def private_values(case):
    """Bytes of private rows, as a file or an array would hold them; rare enough not to be met by chance."""
    for file in case.study_file.parent.glob("*/rows.csv"):
        for line in file.read_text().splitlines()[1:40]:
            yield line.encode()
            for field in line.split(","):
                if len(field) > 6 and "." in field:
                    yield np.float64(field).tobytes()


def test_a_summary_is_made_without_an_owner_that_is_dead(tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "SLICE", 0.2)
    case = Case("summarization", tmp_path)
    owners, name = case.owners(), secrets.token_hex(8)
    consumer = case.study().first_asks[0].owner
    dead = next(each for each in case.names if each != consumer)
    alive = {each: owner for each, owner in owners.items() if each != dead}
    steps = []
    with served(alive, lambda: LocalCourier(name)):
        mailbox = Mailbox(LocalCourier(name), sender=Sender(learner="curator", key=CURATOR))
        result = mailbox.learn(case.study().inquiry, patience=2, watch=steps.append)
    assert {step.owner for step in steps if step.state == "left out"} == {dead}
    assert dead in json.dumps(result.to_dict())
    assert dead not in case.summary_rows()["owner"]
    (withdrawn,) = mailbox.answer(dead, owners[dead])
    assert withdrawn.outcome == "withdrawn"
    assert owners[dead].ledger.spent(owners[dead].dataset) is None
