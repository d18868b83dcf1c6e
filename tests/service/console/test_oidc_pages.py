"""Sign-ins at a real provider: the one that is right, and everything that is not."""

import hmac
import re
import time

import pytest

from privada.service.console.application import SIGN_IN_COOKIE as BROWSER
from privada.service.console.application import make_application
from privada.service.console.console import COOKIE
from privada.service.web import HEADERS

from .conftest import CLIENT, GRACE, go_to_provider, make_key, new_browser, query_of, sign_in_there


def test_a_person_signs_in_decides_and_is_named_on_the_chain(served, browser, provider):
    page = browser.get("/sign-in").text
    assert f"Sign in with {provider.issuer.removeprefix('http://')}" in page
    there = go_to_provider(browser)
    asked = query_of(there)
    assert asked["scope"] == "openid email"
    assert len(asked["state"]) >= 32
    assert len(asked["nonce"]) >= 32
    reply = browser.get(sign_in_there(there))
    assert (reply.status_code, reply.headers.get("location")) == (200, None)  # strict cookies need a page
    flags = reply.headers.get_list("set-cookie")[0].lower()
    assert flags.startswith(f"{COOKIE}=")
    assert "httponly" in flags
    assert "samesite=strict" in flags
    assert all(reply.headers[name] == value for name, value in HEADERS.items())
    digest = served.ask()
    served.wait()
    inbox = browser.get("/").text
    name = f"grace@example.org via {provider.issuer.removeprefix('http://')}"
    assert f"{name}, approver" in inbox
    path = re.search(rf"/questions/north/{digest}/\w+", inbox)[0]
    token = re.search(
        r'name="token" value="(\w+)"><input type="hidden" name="digest"', browser.get(path).text
    )
    form = {"token": token[1], "digest": digest, "decision": "approve"}
    origin = {"origin": str(browser.base_url)}
    assert browser.post(path, data=form, headers=origin).status_code == 303
    assert [line.approver for line in served.lines("approval")] == [name]


def refused(browser, provider):
    before = provider.issued
    reply = browser.get(sign_in_there(go_to_provider(browser)))
    assert (reply.status_code, provider.issued) == (403, before + 1)  # a token was given, and not accepted
    assert COOKIE not in browser.cookies
    assert browser.get("/").headers["location"] == "/sign-in"
    return reply.text


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "somebody else"},
        {"aud": [CLIENT, "somebody else"]},  # without the authorised party
        {"aud": None},
        {"iss": "http://localhost:1"},
        {"iss": None},
        {"exp": None},
        {"sub": None},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
    ids=str,
)
def test_a_token_with_one_wrong_claim_lets_nobody_in(browser, provider, claims):
    provider.claims = claims
    assert "was not accepted" in refused(browser, provider)


@pytest.mark.parametrize(("claim", "seconds"), [("exp", -120), ("iat", 600), ("nbf", 600)])
def test_a_token_of_another_time_lets_nobody_in(browser, provider, claim, seconds):
    provider.claims = {claim: int(time.time()) + seconds}
    assert "was not accepted" in refused(browser, provider)


def test_an_unsigned_token_and_those_of_other_keys_let_nobody_in(browser, provider):
    provider.signs_with = make_key("k2")
    assert "BadSignatureError" in refused(browser, provider)
    provider.header, provider.by_hand = {"alg": "none", "kid": "k1"}, lambda _: b""
    assert "was not accepted" in refused(browser, provider)
    public = provider.key.as_pem(private=False)  # the old confusion: the public key as a shared secret
    provider.header = {"alg": "HS256", "kid": "k1"}
    provider.by_hand = lambda body: hmac.digest(public, body, "sha256")
    assert "was not accepted" in refused(browser, provider)


@pytest.mark.parametrize(
    "person",
    [
        {**GRACE, "email": "mallory@example.org"},
        {**GRACE, "email_verified": False},
        {**GRACE, "email_verified": "true"},
        {"sub": "1234"},
        {**GRACE, "email": "Grace@example.org"},
    ],
    ids=str,
)
def test_who_has_no_role_does_not_get_in(browser, provider, person):
    provider.person = person
    assert "nobody gave you a role" in refused(browser, provider)


def test_a_change_of_the_file_counts_at_the_next_sign_in(browser, provider, console):
    provider.write_settings(console.oidc.parent, people=(("group", "staff", "viewer"),))
    assert browser.get(sign_in_there(go_to_provider(browser))).status_code == 200
    assert ", viewer<" in browser.get("/").text
    console.oidc.write_text("nothing")
    reply = browser.get("/sign-in/oidc")
    assert reply.status_code == 500
    assert "console.toml cannot be read" in reply.text


@pytest.mark.parametrize("change", ["another role", "nobody", "not to be read"])
def test_a_session_ends_when_the_file_no_longer_gives_its_role(browser, provider, console, change):
    browser.get(sign_in_there(go_to_provider(browser)))
    assert "grace@example.org" in browser.get("/").text
    if change == "not to be read":
        console.oidc.write_text("[oidc]\n")
    else:
        email = "grace@example.org" if change == "another role" else "ada@example.org"
        provider.write_settings(console.oidc.parent, people=(("email", email, "viewer"),))
    assert browser.get("/").headers["location"] == "/sign-in"
    provider.write_settings(console.oidc.parent)
    assert browser.get("/").headers["location"] == "/sign-in"  # for good


def test_a_state_is_used_once_and_by_the_browser_that_began(browser, console):
    back = sign_in_there(go_to_provider(browser))
    other = new_browser(make_application(console))
    go_to_provider(other)
    assert other.get(back).status_code == 403
    mine = new_browser(browser.app)  # the same console, without the cookie of the sign-in
    assert mine.get(back).status_code == 403
    assert browser.get(back).status_code == 403  # what another browser tried is over, too
    again = sign_in_there(go_to_provider(browser))
    bound = browser.cookies[BROWSER]
    assert browser.get(again).status_code == 200
    browser.cookies.set(BROWSER, bound)
    assert browser.get(again).status_code == 403
    assert browser.get("/sign-in/oidc/back?state=none&code=none").status_code == 403


def test_a_code_of_another_sign_in_lets_nobody_in(browser):
    """PKCE: the provider gives no token for it."""
    stolen = query_of(sign_in_there(go_to_provider(browser)))["code"]
    state = query_of(go_to_provider(browser))["state"]
    reply = browser.get(f"/sign-in/oidc/back?state={state}&code={stolen}")
    assert reply.status_code == 403
    assert COOKIE not in browser.cookies


def test_what_the_provider_says_instead_of_a_code_is_shown_as_text(browser):
    state = query_of(go_to_provider(browser))["state"]
    reply = browser.get(f"/sign-in/oidc/back?state={state}&error=<b>denied</b>")
    assert reply.status_code == 403
    assert "&lt;b&gt;denied" in reply.text
    state = query_of(go_to_provider(browser))["state"]
    assert browser.get(f"/sign-in/oidc/back?state={state}&code=1&iss=http://evil").status_code == 403


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
    ],
    ids=str,
)
def test_a_document_of_another_issuer_or_without_https_begins_nothing(browser, provider, document):
    provider.document = document
    reply = browser.get("/sign-in/oidc")
    assert reply.status_code == 502
    assert BROWSER not in browser.cookies


def test_the_page_offers_the_passphrase_only_to_whom_there_is_one(browser, console):
    assert "passphrase" in browser.get("/sign-in").text
    console.users.path.unlink()
    assert "passphrase" not in browser.get("/sign-in").text
