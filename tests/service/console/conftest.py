"""A service with a question that waits, and its console, in this process."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from fastapi.testclient import TestClient

from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Policy, Schema
from privada.exchange import Sender
from privada.exchange.local import LocalCourier
from privada.parties.permissions import KnownLearner
from privada.privacy import PureDP
from privada.privacy.keys import LearnerKey
from privada.service import serving
from privada.service.console import users as users_module
from privada.service.console.application import make_application
from privada.service.console.inbox import Inbox
from privada.service.console.stage import Console
from privada.service.console.users import User, Users
from privada.service.serving import Desk, Service

AR = "add/remove"
PASSPHRASE = "correct horse"
ORIGIN = "http://127.0.0.1:8400"


def question(salt="", epsilon=0.1):
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=epsilon, relation=AR), salt=salt)


class House:
    """An owner who approves by hand, a learner, and the service between them."""

    def __init__(self, purpose="to see whether it works", open_courier=None):
        key = LearnerKey.generate()
        known = KnownLearner(
            name="alice",
            key=key.public,
            organisation="Uni <b>X</b>",
            allowance=PureDP(epsilon=0.5, relation=AR),
        )
        self.owner = Owner(
            np.full((9, 1), 0.1),
            schema=Schema.of_numbers(bounds=(0, 1), width=1),
            dataset="rows",
            budget=PureDP(epsilon=1, relation=AR),
            policy=Policy(approval=True),
            learners=[known],
        )
        self.courier = LocalCourier() if open_courier is None else open_courier()
        sender = Sender(learner="alice", key=key, project="<i>p</i>", purpose=purpose)
        self.learner = Mailbox(self.courier, sender=sender)
        self.service = Service([Desk("north", self.owner)], open_courier or (lambda: self.courier))

    def ask(self, salt="", epsilon=0.1):
        self.learner.ask(AskOwner("north", question(salt, epsilon)))
        return question(salt, epsilon).digest

    def wait(self, number=1):
        self.until(lambda: len(self.service.waiting()) == number)

    @staticmethod
    def until(holds, seconds=10):
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.02)

    def lines(self, *kinds):
        return [line for line in self.owner.ledger.lines("rows") if line.kind in kinds]

    @contextmanager
    def running(self):
        thread = threading.Thread(target=self.service.run)
        thread.start()
        try:
            yield self
        finally:
            self.service.stop()
            thread.join(timeout=10)
            assert not thread.is_alive()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, seconds in (("SLICE", 0.05), ("RECHECK", 0.05)):
        monkeypatch.setattr(serving, name, seconds)
    monkeypatch.setattr(users_module, "_COST", {"n": 16, "r": 8, "p": 1})


@pytest.fixture
def people(tmp_path):
    users = Users(tmp_path / "users.json")
    for name, role in (("Grace", "approver"), ("Ada", "administrator"), ("Vera", "viewer")):
        users.put(User.made(name, role, PASSPHRASE))
    return users


@pytest.fixture
def house():
    with House("<script>alert(1)</script> & more").running() as made:
        yield made


@pytest.fixture
def app(house, people):
    return make_application(Console(inbox=Inbox(house.service), users=people, origins=(ORIGIN,)))


@pytest.fixture
def enter(app):
    def sign_in(name="Grace"):
        client = TestClient(app, base_url=ORIGIN, headers={"origin": ORIGIN}, follow_redirects=False)
        reply = client.post("/sign-in", data={"name": name, "passphrase": PASSPHRASE})
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        return client

    return sign_in
