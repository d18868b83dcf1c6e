"""The learner's side: all owners asked before any is waited for; slow, dead and refusing owners; resuming."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Policy, Schema
from privada.exceptions import AnswerError, Waiting
from privada.exchange import Sender
from privada.exchange.envelope import Envelope
from privada.exchange.local import LocalCourier
from privada.exchange.posting import post
from privada.parties.protocol import Absent, Inquiry
from privada.privacy import PureDP, Release
from privada.privacy.keys import LearnerKey

AR = "add/remove"


def question(salt=""):
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=0.1, relation=AR), salt=salt)


def make_owner(**more):
    return Owner(
        np.full((9, 1), 0.1),
        schema=Schema.of_numbers(bounds=(0, 1), width=1),
        dataset="rows",
        budget=PureDP(epsilon=1, relation=AR),
        **more,
    )


def both(salt=""):
    replies = yield [AskOwner("north", question(salt)), AskOwner("south", question(salt))]
    return replies


def rounds(spared=()):
    """Two rounds; what the second asks depends on who answered the first."""

    def learner():
        first = yield [AskOwner(name, question()) for name in ("north", "south")]
        came = [
            name for name, each in zip(("north", "south"), first, strict=True) if isinstance(each, Release)
        ]
        second = yield [AskOwner(name, question(f"after {came}")) for name in came]
        return came, first, second

    return Inquiry((), learner, frozenset(spared))


@pytest.fixture
def alice():
    return Mailbox(LocalCourier(), sender=Sender(learner="alice", key=LearnerKey.generate()))


def serve(mailbox, name, owner, delay=0.0, turns=1):
    """Answer in a thread, as soon as something is asked."""

    def work():
        for _ in range(turns):
            mailbox.courier.wait(f"questions/{name}/", known=set(), seconds=5)
            time.sleep(delay)
            mailbox.answer(name, owner)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_all_questions_of_a_round_are_sent_before_the_first_answer(alice):
    with pytest.raises(Waiting, match=r"north.*its question is questions/north/"):
        alice.learn(both())
    assert all(len(alice.courier.keys(f"questions/{name}/")) == 1 for name in ("north", "south"))


def test_owners_are_waited_for_together(alice):
    threads = [serve(alice, name, make_owner(), delay=0.4) for name in ("north", "south")]
    started = time.monotonic()
    replies = alice.learn(both(), patience=10)
    assert time.monotonic() - started < 5
    assert all(isinstance(each, Release) for each in replies)
    for thread in threads:
        thread.join()


def test_steps_say_who_is_where(alice):
    threads = [serve(alice, name, make_owner()) for name in ("north", "south")]
    steps, seen = [], []
    alice.learn(both(), patience=10, watch=steps.append, witness=seen.append)
    for thread in threads:
        thread.join()
    states = [(step.owner, step.state) for step in steps]
    assert states[:2] == [("north", "asked"), ("south", "asked")]
    assert sorted(states[2:]) == [("north", "answered"), ("south", "answered")]
    assert len(seen) == 2
    again = []
    alice.learn(both(), watch=again.append)
    assert [(step.round, step.state) for step in again] == [(1, "answered")] * 2


def test_an_owner_that_cannot_be_spared_ends_the_run_and_it_goes_on_later(alice):
    north, south = make_owner(), make_owner()
    alice.ask(AskOwner("north", question()))
    alice.answer("north", north)
    with pytest.raises(Waiting, match="south"):
        alice.learn(both(), patience=0.2)
    alice.answer("south", south)
    assert len(alice.learn(both())) == 2
    assert north.ledger.spent("rows").epsilon == south.ledger.spent("rows").epsilon == pytest.approx(0.1)


def test_a_dead_owner_is_left_out_for_good_and_is_not_charged_when_it_wakes_up(alice):
    north, south = make_owner(), make_owner()
    thread = serve(alice, "north", north, turns=1)
    steps = []
    with pytest.raises(Waiting):  # nobody answers the second round
        alice.learn(rounds(spared=("south",)), patience=0.8, watch=steps.append)
    thread.join()
    assert [(step.owner, step.state) for step in steps if step.round == 1][-2:] == [
        ("south", "late"),
        ("south", "left out"),
    ]
    (done,) = alice.answer("south", south)
    assert done.outcome == "withdrawn"
    assert south.ledger.spent("rows") is None
    alice.answer("north", north)
    came, first, second = alice.learn(rounds(spared=("south",)), patience=0.2)
    assert came == ["north"]
    assert first[1] == Absent("south", "too late")
    assert len(second) == 1
    assert north.ledger.spent("rows").epsilon == pytest.approx(0.2)


def test_a_refusing_owner_is_left_out_where_it_can_be(alice):
    strict = make_owner(policy=Policy(methods=()))
    alice.ask(AskOwner("south", question()))
    alice.answer("south", strict)
    north = make_owner()
    alice.ask(AskOwner("north", question()))
    alice.answer("north", north)
    with pytest.raises(AnswerError, match="south refused: The owner does not answer cells"):
        alice.learn(rounds(), patience=0.2)
    with pytest.raises(Waiting, match="north"):
        alice.learn(rounds(spared=("south",)), patience=0.2)
    alice.answer("north", north)
    _, first, _ = alice.learn(rounds(spared=("south",)), patience=0.2)
    assert first[1].reason.startswith("The owner does not answer cells")
    assert not first[1].opened


def test_without_patience_nobody_is_left_out(alice):
    with pytest.raises(Waiting):
        alice.learn(rounds(spared=("north", "south")))
    assert not [key for key in alice.courier.keys("questions/") if key.endswith(".withdrawal")]


def test_a_failure_with_open_rows_says_so(alice, monkeypatch):
    south = make_owner()
    monkeypatch.setattr("privada.parties.owner.answer_rows", lambda *_, **__: 1 / 0)
    alice.ask(AskOwner("south", question()))
    assert alice.answer("south", south)[0].outcome == "refused"
    monkeypatch.undo()
    alice.ask(AskOwner("north", question()))
    alice.answer("north", make_owner())
    with pytest.raises(Waiting):
        alice.learn(rounds(spared=("south",)), patience=0.2)
    learner = rounds(spared=("south", "north"))
    _, first, _ = alice.learn(learner, patience=0.2)
    assert first[1].opened, "nobody may be asked for more because of it"
    assert south.ledger.spent("rows").epsilon == pytest.approx(0.1), "the charge stands"


def test_a_stranger_cannot_withdraw_for_others(alice):
    north = make_owner()
    key = alice.ask(AskOwner("north", question()))
    mallory = Mailbox(alice.courier, sender=Sender(learner="alice", key=LearnerKey.generate()))
    envelope = mallory._asking.envelope(AskOwner("north", question()), question().to_bytes())
    mallory._asking.withdraw(envelope)
    planted = [each for each in alice.courier.keys("questions/north/") if each.endswith(".withdrawal")]
    alice.courier.put(key.replace(".question", ".withdrawal"), alice.courier.get(planted[0]))
    assert [each.outcome for each in alice.answer("north", north)] == ["answered"]


def test_planted_replies_do_not_make_a_learner_spin(alice, monkeypatch):
    asked = question()
    alice.courier.put(f"releases/north/{asked.digest}.release", b"junk")
    looks = []
    wait = LocalCourier.wait
    monkeypatch.setattr(LocalCourier, "wait", lambda *a, **k: looks.append(1) or wait(*a, **k))
    thread = serve(alice, "north", make_owner(), delay=1.0)

    def learner():
        return (yield AskOwner("north", asked))

    assert isinstance(alice.learn(learner(), patience=5), Release)
    thread.join()
    assert len(looks) < 15


def test_a_learner_without_a_key_believes_no_withdrawal_of_its_own():
    nobody = Mailbox(LocalCourier())
    north = make_owner()
    for name in ("north", "south"):
        nobody.ask(AskOwner(name, question()))
    told = nobody._asking.envelope(AskOwner("south", question()), question().to_bytes())
    planted = replace(told, kind="withdrawal", asked=told.identity, size=0, sha256=Envelope.sha256)
    post(nobody.courier, planted, b"", None)
    for name in ("north", "south"):
        assert [done.outcome for done in nobody.answer(name, north)] == ["answered"]
    with pytest.raises(Waiting):  # in the second round
        nobody.learn(rounds(spared=("south",)), patience=0.1)
    assert len(nobody.courier.keys("questions/south/")) == 3, "south is asked again: it was not left out"
