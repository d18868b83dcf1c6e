"""An OpenID Connect provider on this machine: it signs real tokens, and can be told to go wrong."""

import base64
import hashlib
import json
import secrets
import time
from contextlib import contextmanager
from functools import cache
from typing import Annotated
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from authlib.oidc.core.util import create_half_hash
from fastapi import FastAPI, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.testclient import TestClient
from joserfc import jwk, jwt

from privada.service.console.application import make_application
from privada.service.console.hosting import listen, run
from privada.service.console.inbox import Inbox
from privada.service.console.stage import Console
from tests.service.console.conftest import ORIGIN

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
        with run(self.app, listening):
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
def console(house, people, provider, tmp_path):
    path = provider.write_settings(tmp_path)
    return Console(inbox=Inbox(house.service), users=people, origins=(ORIGIN,), oidc=path)


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
