"""Forged, stale, doubled and hostile requests: one decision, one line, and text stays text."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import pytest
from fastapi.testclient import TestClient

from privada.privacy import Release
from privada.service.console.application import make_application
from privada.service.console.console import COOKIE, Console, Inbox
from privada.service.console.users import MOST_FAILURES
from privada.service.web import HEADERS, HOME, STATIC

from .conftest import ORIGIN, PASSPHRASE


@pytest.fixture
def path(served):
    served.ask()
    served.wait()
    (one,) = Inbox(served.service).waiting()
    return one.path


def form(client, path, decision="approve", **more):
    page = client.get(path).text
    found = re.search(r'name="token" value="([0-9a-f]{64})"><input type="hidden" name="digest"', page)
    digest = path.split("/")[3]
    return {"token": found[1] if found else "", "digest": digest, "decision": decision, **more}


def test_from_the_inbox_to_a_signed_release(served, enter, path):
    grace = enter()
    assert path in grace.get("/").text
    reply = grace.post(path, data=form(grace, path))
    assert (reply.status_code, reply.headers["location"]) == (303, path)
    served.wait(0)
    served.until(lambda: "charged, answered and signed" in grace.get(path).text)
    (line,) = served.lines("approval")
    assert (line.approver, line.asker.learner) == ("Grace", "alice")
    (charge,) = served.lines("charge")
    assert charge.approver == "Grace"
    release = Release.from_bytes(served.owner.ledger.kept("rows", charge.question))
    release.verify(public=served.owner.public_key)


def test_a_learners_text_is_text(enter, path):
    grace = enter()
    for page in (grace.get("/").text, grace.get("/waiting").text, grace.get(path).text):
        assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
        assert "<script>alert" not in page
        assert "<b>X" not in page
        assert "<i>p" not in page


def test_a_page_says_what_a_person_needs(enter, path):
    page = unescape(enter().get(path).text)
    for words in ("10%", "20%", "of the learner's allowance", "53 of 100", "add/remove", "±", "alice"):
        assert words in page, words
    assert "style=" not in page
    assert "onclick" not in page
    assert "vintages" not in page


@pytest.mark.parametrize(
    ("decision", "more", "reason"),
    [
        ("refuse", {"reason": "not now"}, "not now"),
        ("smaller", {"smaller": "half"}, "Please ask for less: at most ε = 0.05"),
    ],
)
def test_a_refusal_is_signed_with_its_reason(served, enter, path, decision, more, reason):
    grace = enter()
    assert grace.post(path, data=form(grace, path, decision, **more)).status_code == 303
    (line,) = [line for line in served.lines("refusal") if line.approver]
    assert line.detail["text"].startswith(reason)
    served.wait(0)
    assert reason in grace.get(path).text
    assert served.lines("charge") == []


def test_a_double_click_and_two_approvers_make_one_line(served, enter, path):
    clients = [enter("Grace"), enter("Ada")]
    forms = [form(client, path) for client in clients]
    jobs = [(client, made) for client, made in zip(clients, forms, strict=True) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda job: job[0].post(path, data=job[1]).status_code, jobs))
    assert set(codes) == {303, 409}
    assert len(served.lines("approval")) == 1
    served.until(lambda: served.lines("charge"))
    assert len(served.lines("charge")) == 1


def test_the_first_decision_stands(served, enter, path):
    grace, ada = enter("Grace"), enter("Ada")
    no = form(ada, path, "refuse", reason="no")
    assert grace.post(path, data=form(grace, path)).status_code == 303
    reply = ada.post(path, data=no)
    assert reply.status_code == 409
    assert "was approved by Grace" in reply.text
    assert [line for line in served.lines("refusal") if line.approver] == []


def test_forged_and_stale_forms_decide_nothing(served, enter, path):
    grace, ada = enter("Grace"), enter("Ada")
    good = form(grace, path)
    assert grace.post(path, data=good | {"token": ""}).status_code in (403, 422)
    assert grace.post(path, data=good | {"token": "00" * 32}).status_code == 403
    assert ada.post(path, data=good).status_code == 403  # another session's
    assert grace.post(path, data=good | {"digest": "11" * 32}).status_code == 403
    other = served.ask("other")
    served.wait(2)
    elsewhere = next(one.path for one in Inbox(served.service).waiting() if one.waiting.digest == other)
    assert grace.post(elsewhere, data=good | {"digest": other}).status_code == 403
    assert grace.post(path, data=good, headers={"origin": "https://evil.example"}).status_code == 403
    assert grace.post(path, data=good, headers={"host": "evil.example"}).status_code == 421
    gone = path.replace(good["digest"], "11" * 32)
    assert grace.post(gone, data=good).status_code == 404
    assert grace.post(path, data=good | {"decision": "perhaps"}).status_code == 400
    assert grace.post(path, data=good | {"decision": "refuse", "reason": " "}).status_code == 400
    assert served.lines("approval", "refusal", "charge") == []


def test_a_viewer_sees_and_does_not_decide(served, enter, path):
    vera = enter("Vera")
    assert "<h2>Decide" not in vera.get(path).text
    session = vera.get(path)
    assert session.status_code == 200
    assert vera.post(path, data=form(vera, path) | {"token": "00"}).status_code in (403, 422)
    assert served.lines("approval") == []


def test_a_viewer_with_a_genuine_token_still_does_not_decide(served, people, path):
    console = Console(inbox=Inbox(served.service), users=people, origins=(ORIGIN,))
    cookie = console.sessions.begin(people.read()["Vera"])
    client = TestClient(make_application(console), base_url=ORIGIN, headers={"origin": ORIGIN})
    client.cookies.set(COOKIE, cookie)
    (one,) = console.inbox.waiting()
    token = console.sessions.find(cookie).token(*one.bound)
    data = {"token": token, "digest": one.waiting.digest, "decision": "approve"}
    assert client.post(path, data=data).status_code == 403
    assert served.lines("approval") == []


def test_nothing_is_shown_to_who_is_not_signed_in(app, path):
    client = TestClient(app, base_url=ORIGIN, follow_redirects=False)
    for place in ("/", "/waiting", path):
        reply = client.get(place)
        assert (reply.status_code, reply.headers["location"], reply.text) == (303, "/sign-in", "")
    assert client.get("/waiting", headers={"hx-request": "true"}).status_code == 401
    for place in ("/docs", "/openapi.json", "/redoc", "/static/x", "/static/..%2fusers.py"):
        assert client.get(place).status_code == 404


def test_every_reply_has_the_headers_and_the_cookie_is_strict(app):
    client = TestClient(app, base_url=ORIGIN, headers={"origin": ORIGIN}, follow_redirects=False)
    signed = client.post("/sign-in", data={"name": "Grace", "passphrase": PASSPHRASE})
    flags = signed.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    bad = client.get("/", headers={"host": "evil.example"})
    for reply in (signed, bad, client.get("/"), client.get("/static/console.css"), client.get("/none")):
        assert all(reply.headers.get(name) == value for name, value in HEADERS.items())


def test_signing_in_is_limited_and_signing_out_ends_the_session(app, enter):
    client = enter()
    token = re.search(
        r'action="/sign-out"><input type="hidden" name="token" value="(\w+)"', client.get("/").text
    )
    assert client.post("/sign-out", data={"token": "x"}).status_code == 403
    cookie = client.cookies[COOKIE]
    assert client.post("/sign-out", data={"token": token[1]}).status_code == 303
    client.cookies.set(COOKIE, cookie)
    assert client.get("/").status_code == 303
    wrong = {"name": "Grace", "passphrase": "wrong"}
    codes = [client.post("/sign-in", data=wrong).status_code for _ in range(MOST_FAILURES + 1)]
    assert codes == [403] * MOST_FAILURES + [429]
    assert client.post("/sign-in", data=wrong | {"passphrase": PASSPHRASE}).status_code == 429


def test_htmx_is_what_its_note_says():
    note = (HOME / "static/README.md").read_text()
    assert hashlib.sha256(STATIC["htmx.min.js"][1]).hexdigest() in note
