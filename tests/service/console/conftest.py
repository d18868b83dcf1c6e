"""A service with a question that waits, and its console, in this process."""

import base64
import hashlib
import json
import secrets
import threading
import time
from contextlib import contextmanager
from functools import cache
from typing import Annotated
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from authlib.oidc.core.util import create_half_hash
from fastapi import FastAPI, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.testclient import TestClient
from joserfc import jwk, jwt

from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Policy, Schema
from privada.exchange import Sender
from privada.exchange.local import LocalCourier
from privada.parties.permissions import KnownLearner
from privada.privacy import PureDP
from privada.privacy.keys import LearnerKey
from privada.service import serving
from privada.service.console import users as users_module
from privada.service.console.application import make_application
from privada.service.console.console import Console, Inbox
from privada.service.console.users import User, Users
from privada.service.ports import listen
from privada.service.serving import Desk, Service
from privada.service.web import run_pages

AR = "add/remove"
PASSPHRASE = "correct horse"
ORIGIN = "http://127.0.0.1:8400"


def question(salt="", epsilon=0.1):
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=epsilon, relation=AR), salt=salt)


class ServedOwner:
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
        users.put(User.create(name, role, PASSPHRASE))
    return users


@pytest.fixture
def served():
    with ServedOwner("<script>alert(1)</script> & more").running() as made:
        yield made


@pytest.fixture
def app(served, people):
    return make_application(Console(inbox=Inbox(served.service), users=people, origins=(ORIGIN,)))


@pytest.fixture
def enter(app):
    def sign_in(name="Grace"):
        client = TestClient(app, base_url=ORIGIN, headers={"origin": ORIGIN}, follow_redirects=False)
        reply = client.post("/sign-in", data={"name": name, "passphrase": PASSPHRASE})
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        return client

    return sign_in


CLIENT, SECRET = "privada-console", "a secret of the client's"
GRACE = {"sub": "1234", "email": "grace@example.org", "email_verified": True, "groups": ["staff"]}


@cache
def make_key(name):
    return jwk.RSAKey.generate_key(2048, parameters={"kid": name, "use": "sig"})


class TestProvider:
    """The provider: it checks client, redirect address and PKCE, and gives each code once.

    ``person`` is whoever signs in; ``claims`` and ``header`` replace what a token says, None leaves out.
    """

    __test__ = False

    def __init__(self):
        self.issuer = ""
        self.key = make_key("k1")
        self.signs_with = self.key
        self.person, self.claims, self.header = dict(GRACE), {}, {"alg": "RS256", "kid": "k1"}
        self.document = {}
        self.by_hand, self.issued = None, 0  # signatures that no library would make
        self.codes = {}
        self.app = FastAPI()
        self._add_pages()

    def _add_pages(self):
        @self.app.get("/.well-known/openid-configuration")
        def discovery():
            at = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            return {"issuer": self.issuer} | {k: self.issuer + v for k, v in at.items()} | self.document

        @self.app.get("/keys")
        def keys():
            return {"keys": [self.key.as_dict(private=False), {"kty": "strange"}]}

        @self.app.get("/authorize")
        def authorize(request: Request):
            asked = dict(request.query_params)
            assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
            assert asked["code_challenge_method"] == "S256"
            code = secrets.token_urlsafe()
            self.codes[code] = asked
            back = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            return RedirectResponse(back, 303)

        @self.app.post("/token")
        def token(
            request: Request,
            code: Annotated[str, Form()],
            redirect_uri: Annotated[str, Form()],
            code_verifier: Annotated[str, Form()],
        ):
            basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            asked = self.codes.pop(code, None)
            hashed = hashlib.sha256(code_verifier.encode()).digest()
            challenge = _encode(hashed)
            if (
                request.headers.get("authorization") != f"Basic {basic}"
                or asked is None
                or (asked["redirect_uri"], asked["code_challenge"]) != (redirect_uri, challenge)
            ):
                return JSONResponse({"error": "invalid_grant"}, 400)
            access = secrets.token_urlsafe()
            return {"access_token": access, "token_type": "Bearer", "id_token": self.token(asked, access)}

    def token(self, asked, access):
        now = int(time.time())
        times = {"iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        half = create_half_hash(access, "RS256").decode()
        said = {"iss": self.issuer, "aud": CLIENT, "at_hash": half} | times | self.person | self.claims
        said = {name: value for name, value in said.items() if value is not None}
        self.issued += 1
        if self.by_hand is None:
            return jwt.encode(self.header, said, self.signs_with, algorithms=["RS256"])
        body = ".".join(_encode(json.dumps(part).encode()) for part in (self.header, said))
        return f"{body}.{_encode(self.by_hand(body.encode()))}"

    @contextmanager
    def running(self):
        listening = listen("port", 0)
        self.issuer = f"http://localhost:{listening.getsockname()[1]}"  # another site than 127.0.0.1
        with run_pages(self.app, listening):
            yield self

    def write_settings(self, folder, people=(("email", "grace@example.org", "approver"),)):
        secret = folder / "oidc.secret"
        secret.write_text(SECRET + "\n")
        secret.chmod(0o600)
        text = f'[oidc]\nissuer = "{self.issuer}"\nclient_id = "{CLIENT}"\nsecret_file = "oidc.secret"\n'
        for by, value, role in people:
            text += f'[[oidc.people]]\n{by} = "{value}"\nrole = "{role}"\n'
        path = folder / "console.toml"
        path.write_text(text)
        return path


def _encode(blob):
    return base64.urlsafe_b64encode(blob).rstrip(b"=").decode()


@pytest.fixture
def provider():
    with TestProvider().running() as made:
        yield made


@pytest.fixture
def console(served, people, provider, tmp_path):
    path = provider.write_settings(tmp_path)
    return Console(inbox=Inbox(served.service), users=people, origins=(ORIGIN,), oidc=path)


@pytest.fixture
def browser(console):
    """A client of the console that keeps cookies, as one browser does."""
    return new_browser(make_application(console))


def new_browser(app):
    return TestClient(app, base_url=ORIGIN, follow_redirects=False)


def go_to_provider(client):
    """Follow the link; returns the address at the provider."""
    reply = client.get("/sign-in/oidc")
    assert reply.status_code == 303
    return reply.headers["location"]


def sign_in_there(address):
    """Sign in at the provider by a real request; returns the path of the way back."""
    import requests

    with requests.Session() as session:
        session.trust_env = False
        reply = session.get(address, allow_redirects=False, timeout=5)
    parts = urlsplit(reply.headers["location"])
    assert f"{parts.scheme}://{parts.netloc}" == ORIGIN
    return f"{parts.path}?{parts.query}"


def query_of(address):
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
