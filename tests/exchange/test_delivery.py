"""A release counts as delivered while it can be read; nothing is charged that cannot be delivered."""

import os
import threading
import time

import numpy as np
import pytest

from benchmarks.faults import NoMountError, charge_read_only, mounted, set_up
from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Schema
from privada.exceptions import CourierError, Waiting
from privada.exchange import Sender
from privada.exchange.bucket import BucketCourier
from privada.exchange.folder import FolderCourier
from privada.exchange.posting import LARGEST_PART, MOST_SUCCESSORS
from privada.privacy import PureDP
from privada.privacy.keys import LearnerKey
from privada.service import serving
from privada.service.serving import Desk, Service

EACH = PureDP(epsilon=0.01, relation="add/remove")


def ask(number=0, cells=2):
    centers = np.linspace(0.1, 0.9, cells)[:, None]
    question = CellStatistics(tables=(NearestCells(centers=centers),), guarantee=EACH, salt=f"{number}")
    return AskOwner("clinic", question)


def learned(one):
    return (yield one)


@pytest.fixture
def clinic():
    rows = np.random.default_rng(0).uniform(size=(30, 1))
    schema = Schema.of_numbers(bounds=(0, 1), width=1)
    return Owner(rows, schema=schema, dataset="rows", budget=PureDP(epsilon=1, relation="add/remove"))


def charges(owner):
    return [line.question for line in owner.ledger.lines("rows") if line.kind == "charge"]


@pytest.fixture(params=["folder", "bucket"])
def place(request, tmp_path):
    """A folder of items, and what opens one more courier to it."""
    folder = tmp_path / "exchange"
    folder.mkdir()
    if request.param == "folder":
        return folder, lambda: FolderCourier(folder)
    store = pytest.importorskip("obstore.store").LocalStore
    return folder, lambda: BucketCourier(store(folder))


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def cut_off_its_end(path):
    os.truncate(path, path.stat().st_size - 1)


def empty(path):
    os.truncate(path, 0)


def change_a_byte(path):
    blob = bytearray(path.read_bytes())
    blob[-1] ^= 1
    path.write_bytes(blob)


def remove(path):
    path.unlink()


@pytest.mark.parametrize("damage", [cut, cut_off_its_end, empty, change_a_byte, remove])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_release_that_cannot_be_read_is_delivered_again_without_a_charge(place, clinic, damage, restarted):
    folder, open_place = place
    exchange = Mailbox(open_place())
    exchange.ask(ask())
    assert [done.outcome for done in exchange.answer("clinic", clinic)] == ["answered"]
    assert exchange.answer("clinic", clinic) == []
    (path,) = (folder / "releases/clinic").glob("*.release")
    damage(path)
    learner = Mailbox(open_place())
    assert not learner.has_reply(ask())
    exchange = Mailbox(open_place()) if restarted else exchange
    assert [done.outcome for done in exchange.answer("clinic", clinic)] == ["answered"]
    release = learner.learn(learned(ask()))
    assert release.to_bytes() == clinic.ledger.kept("rows", ask().question.digest)
    assert len(charges(clinic)) == 1
    assert exchange.answer("clinic", clinic) == []


def test_a_damaged_part_is_delivered_again(place, clinic, monkeypatch):
    folder, open_place = place
    monkeypatch.setattr("privada.exchange.posting.LARGEST_PART", 2000)
    assert LARGEST_PART > 2000
    exchange, large = Mailbox(open_place()), ask(cells=500)
    exchange.ask(large)
    exchange.answer("clinic", clinic)
    assert exchange.answer("clinic", clinic) == []
    for damage in (cut, remove):
        *_, last = sorted((folder / "releases/clinic/parts").iterdir())
        damage(last)
        assert not Mailbox(open_place()).has_reply(large)
        assert len(exchange.answer("clinic", clinic)) == 1
        assert Mailbox(open_place()).has_reply(large)
    assert len(charges(clinic)) == 1


def test_the_learner_is_told_what_is_wrong_and_waits(tmp_path, clinic):
    exchange, steps = Mailbox.open(tmp_path), []
    exchange.ask(ask())
    exchange.answer("clinic", clinic)
    (path,) = (tmp_path / "releases/clinic").glob("*.release")
    cut_off_its_end(path)
    with pytest.raises(
        Waiting, match=r"The payload is not what its envelope says\. clinic delivers its reply"
    ):
        exchange.learn(learned(ask()), patience=0.3, watch=steps.append)
    assert [step.state for step in steps] == ["damaged", "asked", "late"]
    assert steps[0].reason.startswith(f"releases/clinic/{ask().question.digest}.release cannot be read")
    threading.Timer(0.2, lambda: Mailbox.open(tmp_path).answer("clinic", clinic)).start()
    assert exchange.learn(learned(ask()), patience=20).question == ask().question.digest


def test_releases_that_did_not_change_are_not_read_again(tmp_path, clinic):
    read = []

    class Reading(FolderCourier):
        def get(self, key, *, largest=None):
            read.append(key)
            return super().get(key, largest=largest)

    exchange = Mailbox(Reading(tmp_path))
    for number in range(5):
        exchange.ask(ask(number))
    exchange.answer("clinic", clinic)
    exchange.answer("clinic", clinic)  # what was delivered is read back once
    read.clear()
    for _ in range(3):
        assert exchange.answer("clinic", clinic) == []
    assert read == []
    started = Mailbox(Reading(tmp_path))
    for _ in range(3):
        assert started.answer("clinic", clinic) == []
    assert len([key for key in read if key.startswith("releases/")]) == 5


def test_a_service_delivers_again_what_is_removed_while_it_runs(tmp_path, clinic, monkeypatch):
    monkeypatch.setattr(serving, "SLICE", 0.1)
    monkeypatch.setattr(serving, "LOOK_BACK", 0.2)
    service = Service([Desk("clinic", clinic)], lambda: FolderCourier(tmp_path))
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        learner = Mailbox.open(tmp_path)
        learner.learn(learned(ask()), patience=20)
        for damage in (remove, cut):
            (path,) = (tmp_path / "releases/clinic").glob("*.release")
            damage(path)
            until = time.monotonic() + 20
            while not learner.has_reply(ask()) and time.monotonic() < until:
                time.sleep(0.05)
            assert learner.has_reply(ask())
    finally:
        service.stop()
        thread.join()
    assert len(charges(clinic)) == 1


def test_what_nobody_waits_for_and_what_is_always_removed_is_not_delivered_for_ever(tmp_path, clinic):
    key = LearnerKey.generate()
    exchange = Mailbox(FolderCourier(tmp_path), sender=Sender(learner="ada", key=key))
    exchange.ask(ask())
    exchange.answer("clinic", clinic)
    folder = tmp_path / "releases/clinic"
    for _ in range(MOST_SUCCESSORS):
        (path,) = folder.glob("*.release")
        path.unlink()
        assert len(exchange.answer("clinic", clinic)) == 1
    (path,) = folder.glob("*.release")
    path.unlink()
    assert exchange.answer("clinic", clinic) == []
    withdrawn = Mailbox(FolderCourier(tmp_path), sender=Sender(learner="ada", key=key))
    asked = withdrawn._asking.envelope(ask(), ask().question.to_bytes())
    withdrawn._asking.withdraw(asked)
    assert [done.outcome for done in withdrawn.answer("clinic", clinic)] == ["withdrawn"]
    assert not list(folder.glob("*.release"))


def test_nothing_is_charged_on_a_mount_that_became_read_only(tmp_path):
    try:
        assert charge_read_only(set_up(tmp_path, "ledger.sqlite", budget=100.0)) == 0
    except NoMountError as error:
        pytest.skip(f"nothing can be mounted here: {error}")


def test_a_service_charges_nothing_when_its_exchange_becomes_read_only(tmp_path, clinic, monkeypatch):
    """The exchange can be written to when the owner connects, and cannot later."""
    monkeypatch.setattr("privada.exchange.answering.STILL_WRITABLE", 0.0)
    try:
        with mounted(tmp_path / "exchange") as make_read_only:
            exchange = Mailbox.open(tmp_path / "exchange")
            side = exchange.for_owner("clinic", clinic)
            side.check_writable()
            exchange.ask(ask())
            (waiting,) = side.pending()
            make_read_only()
            with pytest.raises(CourierError, match="Read-only file system.*Nothing was charged"):
                side.answer_one(waiting)
    except NoMountError as error:
        pytest.skip(f"nothing can be mounted here: {error}")
    assert charges(clinic) == []
