"""What waits, and what a person decides."""

import json
from dataclasses import asdict

import pytest
from fastapi.testclient import TestClient

from privada.service.console.application import make_application
from privada.service.console.budget import find_terms, read_allowance
from privada.service.console.console import COOKIE, Console, Inbox, say_state
from privada.service.console.users import ROLES, User

from .conftest import ORIGIN, question


def test_a_waiting_question_is_described_from_public_information(served, monkeypatch):
    digest = served.ask()
    served.wait()
    monkeypatch.setattr(type(served.owner), "_open", None)  # rows cannot be opened
    (one,) = Inbox(served.service).waiting()
    assert (one.who, one.organisation, one.owner.dataset) == ("alice", "Uni <b>X</b>", "rows")
    assert one.waiting.digest == digest
    (part,) = one.parts
    half = question().plan.draws[part.name].half_width(0.95)
    assert (part.numbers, part.within) == (2, f"± {half:.3g}")
    assert one.quote().share == 0.1
    share, left = one.allowance_share()
    assert (round(share, 9), left) == (0.2, 1.0)
    assert "53 of 100" in one.risk
    assert "ε = 0.025" in one.smaller("quarter")


def test_what_is_decided_leaves_the_inbox_and_its_page_stays(served):
    digest = served.ask()
    served.wait()
    inbox = Inbox(served.service)
    (one,) = inbox.waiting()
    served.owner.ledger.approve("rows", digest, by="Grace", asker=one.asker)
    assert inbox.waiting() == []
    served.wait(0)
    assert inbox.find("north", digest, one.waiting.identity) is one
    assert inbox.find("south", digest, one.waiting.identity) is None


def test_what_cannot_be_read_is_left_out(served):
    served.courier.put(f"questions/north/{'11' * 32}-{'22' * 16}.question", b"junk")
    served.ask()
    served.wait()
    assert len(Inbox(served.service).waiting()) == 1


def test_the_state_follows_the_ledger(served):
    digest = served.ask()
    served.wait()
    (one,) = Inbox(served.service).waiting()
    assert say_state(one) == ""
    served.owner.ledger.approve("rows", digest, by="Grace", asker=one.asker)
    assert say_state(one).startswith("Approved by Grace")
    served.until(lambda: "charged, answered and signed" in say_state(one))


# The least role of every page; None is for everybody. A page that is not listed here fails the test.
QUESTION, ALLOWANCE = "/questions/{owner}/{digest}/{identity}", "/allowances/{owner}/{key}"
LEAST = {
    ("GET", "/static/{name}"): None,
    ("GET", "/sign-in"): None,
    ("POST", "/sign-in"): None,
    ("POST", "/sign-out"): "viewer",
    ("GET", "/"): "viewer",
    ("GET", "/waiting"): "viewer",
    ("GET", QUESTION): "viewer",
    ("POST", QUESTION): "approver",
    ("GET", "/budget"): "viewer",
    ("GET", ALLOWANCE): "administrator",
    ("POST", ALLOWANCE): "administrator",
    ("GET", "/history"): "viewer",
    ("POST", "/verify"): "viewer",
    ("POST", "/receipts"): "viewer",
    ("GET", "/export"): "viewer",
    ("GET", "/releases/{owner}/{digest}"): "viewer",
}
NAMES = {"viewer": "Vera", "approver": "Grace", "administrator": "Ada"}


def test_every_page_is_listed_with_its_least_role(app):
    there = {(method, route.path) for route in app.routes for method in route.methods}
    assert there == set(LEAST)


@pytest.mark.parametrize("role", [None, *ROLES])
def test_every_page_asks_for_its_role(served, people, role):
    """With genuine forms: what a role may not do is refused for the role, before anything is looked up."""
    served.ask()
    served.wait()
    console = Console(inbox=Inbox(served.service), users=people, origins=(ORIGIN,))
    client = TestClient(make_application(console), base_url=ORIGIN, headers={"origin": ORIGIN})
    cookie = "" if role is None else console.sessions.begin(people.read()[NAMES[role]])
    session = console.sessions.find(cookie)
    (one,), lines = console.inbox.waiting(), len(served.lines("allowance"))
    terms = find_terms(console, "north", served.owner.learners.learners[0].key)
    new = read_allowance(served.owner, "0.25")
    bound = {QUESTION: one.bound, ALLOWANCE: terms.bound(new), "/sign-out": ("x",)}
    bound |= dict.fromkeys(("/verify", "/receipts"), ("verify",))
    places = {QUESTION: one.path, ALLOWANCE: terms.path, "/static/{name}": "/static/console.css"}
    forms = {"digest": one.waiting.digest, "decision": "approve", "most": "0.25"}
    for (method, path), least in LEAST.items():
        client.cookies.set(COOKIE, cookie)
        token = "00" if session is None else session.token(*bound.get(path, ()))
        sent = {"data": {**forms, "token": token}} if method == "POST" else {"params": {"most": "0.25"}}
        reply = client.request(method, places.get(path, path), follow_redirects=False, **sent)
        refused = "takes the role of" in reply.text
        if least is not None and role is None:
            assert (reply.status_code, reply.headers["location"]) == (303, "/sign-in"), path
        else:
            may = least is None or ROLES.index(role) >= ROLES.index(least)
            assert refused is (not may), (method, path)
            assert (reply.status_code == 403) >= refused
    assert len(served.lines("approval")) == (role in ("approver", "administrator"))
    assert len(served.lines("allowance")) == lines + (role == "administrator")


@pytest.mark.parametrize("role", ["viewer", None])
def test_who_is_demoted_or_removed_decides_nothing_more(served, people, role):
    """A session is as good as its user is now, not as it was at the sign-in."""
    served.ask()
    served.wait()
    console = Console(inbox=Inbox(served.service), users=people, origins=(ORIGIN,))
    client = TestClient(make_application(console), base_url=ORIGIN, headers={"origin": ORIGIN})
    cookie = console.sessions.begin(people.read()["Grace"])
    client.cookies.set(COOKIE, cookie)
    (one,) = console.inbox.waiting()
    token = console.sessions.find(cookie).token(*one.bound)
    if role is None:
        left = [asdict(user) for user in people.read().values() if user.name != "Grace"]
        people.path.write_text(json.dumps({"users": left}))
    else:
        people.put(User.create("Grace", role, "another passphrase"))
    form = {"digest": one.waiting.digest, "decision": "approve", "token": token}
    reply = client.post(one.path, data=form, follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/sign-in")
    assert served.lines("approval") == []
    assert console.sessions.find(cookie) is None
