"""A courier that repeats, reorders, redirects and forges; a shared folder with links; clocks that jump."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Schema
from privada.exceptions import Waiting
from privada.exchange import Sender, envelope
from privada.exchange.envelope import Envelope
from privada.exchange.local import LocalCourier
from privada.exchange.posting import successors
from privada.methods.cells import learn
from privada.privacy import PureDP
from privada.privacy.keys import LearnerKey

AR = "add/remove"
ALICE = Sender(learner="alice", key=LearnerKey.generate())


def question(salt=""):
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=0.4, relation=AR), salt=salt)


def make_owner():
    return Owner(
        np.full((9, 1), 0.1),
        schema=Schema.of_numbers(bounds=(0, 1), width=1),
        dataset="rows",
        budget=PureDP(epsilon=1, relation=AR),
    )


def spent(owner):
    found = owner.ledger.spent("rows")
    return 0.0 if found is None else found.epsilon


def test_a_question_that_is_repeated_everywhere_is_charged_once():
    courier, north = LocalCourier(), make_owner()
    alice = Mailbox(courier, sender=ALICE)
    key = alice.ask(AskOwner("north", question()))
    for other in successors(key):
        courier.put(other, courier.get(key))
    outcomes = {done.outcome for done in alice.answer("north", north)}
    assert outcomes == {"answered"}
    assert spent(north) == pytest.approx(0.4)
    assert len([key for key in courier.keys("releases/north/") if key.endswith(".release")]) == 1


def test_a_question_to_one_owner_is_no_question_to_another():
    courier, south = LocalCourier(), make_owner()
    key = Mailbox(courier, sender=ALICE).ask(AskOwner("north", question()))
    courier.put(key.replace("/north/", "/south/"), courier.get(key))
    (done,) = Mailbox(courier).answer("south", south)
    assert (done.outcome, spent(south)) == ("ignored", 0)


def test_a_release_of_one_question_is_no_answer_to_another(caplog):
    courier, north = LocalCourier(), make_owner()
    alice = Mailbox(courier, keys={"north": north.public_key}, sender=ALICE)
    alice.ask(AskOwner("north", question()))
    alice.answer("north", north)
    (key,) = [key for key in courier.keys("releases/north/") if key.endswith(".release")]
    other = question("other")
    courier.put(key.replace(question().digest, other.digest), courier.get(key))
    with pytest.raises(Waiting):
        alice.learn(learn("north", other))
    assert "answers another question" in caplog.text
    assert [done.outcome for done in alice.answer("north", north)] == ["answered"]
    assert alice.learn(learn("north", other)).release.question == other.digest


def test_questions_in_any_order_are_answered_once_each():
    north = make_owner()
    asked = [question("first"), question("second")]
    for order in (asked, asked[::-1], asked):
        courier = LocalCourier()
        for each in order:
            alice = Mailbox(courier, sender=ALICE)
            alice.ask(AskOwner("north", each))
            alice.answer("north", north)
        assert alice.learn(learn("north", asked[0])).release.question == asked[0].digest
    assert spent(north) == pytest.approx(0.8)


@pytest.mark.parametrize("year", [1970, 2999])
def test_nothing_is_decided_by_a_clock(monkeypatch, year):
    """A learner whose clock is wrong is answered, and asking again at another time is the same question."""

    class Clock(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime(year, 1, 1, tzinfo=UTC)

    courier, north = LocalCourier(), make_owner()
    alice = Mailbox(courier, sender=ALICE)
    key = alice.ask(AskOwner("north", question()))
    monkeypatch.setattr(envelope, "datetime", Clock)
    assert alice.ask(AskOwner("north", question())) == key
    alice.ask(AskOwner("north", question("then")))
    assert {done.outcome for done in alice.answer("north", north)} == {"answered"}
    assert len(courier.keys("questions/north/")) == 2


def test_links_in_a_shared_folder_lead_nowhere(tmp_path, caplog):
    exchange, secret, north = tmp_path / "exchange", tmp_path / "secret", make_owner()
    alice = Mailbox.open(exchange, sender=ALICE)
    key = alice.ask(AskOwner("north", question()))
    secret.write_bytes((exchange / key).read_bytes())
    planted = exchange / key.replace(question().digest, "ab" * 32)
    planted.symlink_to(secret)
    (exchange / "questions/north/parts").symlink_to(tmp_path)
    endless = exchange / key.replace(question().digest, "cd" * 32)
    endless.symlink_to("/dev/zero")
    assert [done.outcome for done in alice.answer("north", north)] == ["answered"]
    release = exchange / f"releases/north/{question().digest}.release"
    true = release.read_bytes()
    release.unlink()
    (tmp_path / "elsewhere").write_bytes(true)
    release.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Waiting):
        alice.learn(learn("north", question()))
    assert "is passed over" in caplog.text
    assert [done.outcome for done in alice.answer("north", north)] == ["answered"]
    assert alice.learn(learn("north", question())).release.question == question().digest
    assert spent(north) == pytest.approx(0.4)


def test_an_oversized_item_is_refused_unread_and_the_rest_is_answered(tmp_path):
    north, alice = make_owner(), Mailbox.open(tmp_path, sender=ALICE)
    key = alice.ask(AskOwner("north", question()))
    huge = tmp_path / key.replace(question().digest, "ab" * 32)
    with huge.open("wb") as file:
        file.truncate(1 << 33)
    outcomes = {done.digest: done.outcome for done in alice.answer("north", north)}
    assert outcomes == {question().digest: "answered", "ab" * 32: "ignored"}


def test_a_learner_cannot_speak_for_another():
    """Mallory signs with her own key and writes Alice's: the signature does not hold."""
    courier, north, mallory = LocalCourier(), make_owner(), LearnerKey.generate()
    key = Mailbox(courier, sender=ALICE).ask(AskOwner("north", question()))
    told, rest = Envelope.split(courier.get(key))
    forged = replace(told, purpose="more", signature="").sign(mallory)
    place = LocalCourier()
    place.put(f"questions/north/{forged.question}-{forged.identity}.question", forged.to_bytes() + rest)
    (done,) = Mailbox(place).answer("north", north)
    assert (done.outcome, spent(north)) == ("ignored", 0)
