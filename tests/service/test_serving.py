"""An owner's process: answers as questions come, waits for people, survives failures, stops when told."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Policy, Schema
from privada.exceptions import AnswerError, CourierError, LedgerError
from privada.exchange import Sender
from privada.exchange.local import LocalCourier
from privada.privacy import PureDP, Release
from privada.privacy.keys import LearnerKey
from privada.service import serving
from privada.service.serving import Desk, Service, open_desks

AR = "add/remove"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, seconds in (("SLICE", 0.05), ("RECHECK", 0.05), ("SHORTEST_PAUSE", 0.02)):
        monkeypatch.setattr(serving, name, seconds)


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


@contextmanager
def running(courier, **owners):
    service = Service([Desk(name, owner) for name, owner in owners.items()], lambda: courier)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        yield service
    finally:
        service.stop()
        thread.join(timeout=10)
        assert not thread.is_alive()


def one(name, salt=""):
    return (yield AskOwner(name, question(salt)))


def alice(courier):
    return Mailbox(courier, sender=Sender(learner="alice", key=LearnerKey.generate()))


def test_several_data_sets_are_served_and_counted():
    courier, owners = LocalCourier(), {"north": make_owner(), "south": make_owner()}
    with running(courier, **owners) as service:
        learner = alice(courier)
        for name in owners:
            assert isinstance(learner.learn(one(name), patience=10), Release)
        assert service.metrics.ready
    text = service.metrics.to_text()
    for name, owner in owners.items():
        assert f'privada_questions_total{{owner="{name}",outcome="answered"}} 1' in text
        assert owner.ledger.spent("rows").epsilon == pytest.approx(0.1)


def test_what_was_asked_before_it_started_is_answered_and_nothing_twice_after_a_restart():
    courier, north = LocalCourier(), make_owner()
    learner = alice(courier)
    learner.ask(AskOwner("north", question()))
    for _ in range(3):
        with running(courier, north=north):
            assert isinstance(learner.learn(one("north"), patience=10), Release)
    assert north.ledger.spent("rows").epsilon == pytest.approx(0.1)
    assert len([key for key in courier.keys("releases/north/") if key.endswith(".release")]) == 1


def test_a_question_waits_for_a_person_and_is_answered_once_it_is_approved():
    courier, north = LocalCourier(), make_owner(policy=Policy(approval=True))
    with running(courier, north=north) as service:
        learner = alice(courier)
        learner.ask(AskOwner("north", question()))
        until = time.monotonic() + 10
        while 'privada_questions_waiting{owner="north"} 1' not in service.metrics.to_text():
            assert time.monotonic() < until
            time.sleep(0.02)
        assert north.ledger.spent("rows") is None
        north.ledger.approve("rows", question().digest, by="Grace")
        assert isinstance(learner.learn(one("north"), patience=10), Release)
    (line,) = [line for line in north.ledger.lines("rows") if line.kind == "charge"]
    assert line.approver == "Grace"


def test_a_refusal_is_told_and_the_service_goes_on():
    courier = LocalCourier()
    with running(courier, north=make_owner(policy=Policy(methods=())), south=make_owner()):
        learner = alice(courier)
        with pytest.raises(AnswerError, match="does not answer cells"):
            learner.learn(one("north"), patience=10)
        assert isinstance(learner.learn(one("south"), patience=10), Release)


@pytest.mark.parametrize(
    "fault", [CourierError("The broker is gone."), LedgerError("Locked."), OSError("a row")]
)
def test_a_failure_is_logged_without_data_and_the_service_goes_on(monkeypatch, caplog, fault):
    courier, failures = LocalCourier(), [fault]
    wait = LocalCourier.wait

    def failing(self, prefix, **more):
        if prefix == "questions/north/" and failures:
            raise failures.pop()
        return wait(self, prefix, **more)

    monkeypatch.setattr(LocalCourier, "wait", failing)
    with caplog.at_level("INFO", logger="privada"), running(courier, north=make_owner()) as service:
        assert isinstance(alice(courier).learn(one("north"), patience=10), Release)
    (failed,) = [record for record in caplog.records if record.message == "failed"]
    assert failed.reason == (str(fault) if not isinstance(fault, OSError) else "OSError")
    assert 'privada_failures_total{owner="north"} 1' in service.metrics.to_text()
    assert service.metrics.ready


def test_planted_items_are_passed_over():
    courier = LocalCourier()
    for name in (f"{'11' * 32}-{'22' * 16}.question", "probe", "parts/x"):
        courier.put(f"questions/north/{name}", b"junk")
    with running(courier, north=make_owner()) as service:
        assert isinstance(alice(courier).learn(one("north"), patience=10), Release)
    assert 'outcome="ignored"} 1' in service.metrics.to_text()


def test_an_owner_that_cannot_be_opened_is_named():
    def broken():
        raise LedgerError("There is no ledger.")

    with pytest.raises(LedgerError, match="north: There is no ledger"):
        open_desks([("north", broken)])
