"""The file of a sign-in by OpenID Connect, sign-ins that wait, and the provider."""

import re

import pytest

from privada.exceptions import InputError, PolicyError
from privada.service.console.oidc import (
    ALGORITHMS,
    LARGEST,
    LONGEST,
    MOST,
    Grant,
    OidcSettings,
    PendingSignIns,
    Provider,
    check_url,
)

from .conftest import CLIENT, SECRET, query_of

GOOD = """[oidc]
issuer = "https://login.example.org/realms/clinic"
client_id = "console"
secret_variable = "A_SECRET"
[[oidc.people]]
email = "grace@example.org"
role = "approver"
[[oidc.people]]
subject = "1234"
role = "administrator"
[[oidc.people]]
group = "office"
role = "viewer"
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "hidden")

    def read_text(text):
        path = tmp_path / "console.toml"
        path.write_text(text)
        return OidcSettings.read(path)

    return read_text


def test_a_whole_file(read):
    settings = read(GOOD)
    assert settings.secret == "hidden"
    assert "hidden" not in repr(settings)
    assert settings.host == "login.example.org"
    assert not settings.is_local
    assert settings.scopes == ("openid", "email")


@pytest.mark.parametrize(
    ("claims", "name", "role"),
    [
        ({"sub": "1234", "groups": ["office"]}, "1234 via login.example.org", "administrator"),
        ({"sub": "5", "groups": ["x", "office"]}, "5 via login.example.org", "viewer"),
        (
            {"sub": "5", "email": "grace@example.org", "email_verified": True},
            "grace@example.org via login.example.org",
            "approver",
        ),
    ],
)
def test_the_highest_role_and_a_name_that_nobody_chooses(read, claims, name, role):
    person = read(GOOD).person(claims | {"name": "Somebody Else", "preferred_username": "Ada"})
    assert (person.name, person.role) == (name, role)


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "5"},
        {"sub": "5", "email": "grace@example.org"},
        {"sub": "5", "email": "grace@example.org", "email_verified": 1},
        {"sub": "5", "groups": "office"},  # text that holds the word is no list
        {"sub": "5", "groups": {"office": True}},
        {"sub": "5", "roles": ["administrator"]},
    ],
)
def test_nobody_else_has_a_role(read, claims):
    assert read(GOOD).person(claims) is None


def test_a_name_that_no_ledger_line_can_hold_is_refused(read):
    with pytest.raises(InputError, match="Expected name"):
        read(GOOD).person({"sub": "5\n6", "groups": ["office"]})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("https:", "http:", "line 2, oidc.issuer: Expected issuer to be an https URL"),
        ("https://login", "https://me:secret@login", "Expected issuer to be an https URL"),
        ('role = "viewer"', 'role = "owner"', "Expected role to be one of administrator, approver, viewer"),
        ('subject = "1234"', 'subject = "1234"\nemail = "a@b"', "expected one of email, subject, group"),
        ('subject = "1234"\n', "", "expected one of email, subject, group beside it, got 0"),
        ('"1234"', '" "', "not empty"),
        ("A_SECRET", "ANOTHER", "expected the environment to have ANOTHER"),
        ("secret_variable", "client_secret", "client_secret: nobody knows this key"),
        ('"console"', '"console"\nscopes = ["email"]', 'to hold "openid"'),
        ('"console"', '"console"\nscopes = ["openid email"]', "a list of words"),
    ],
)
def test_what_is_wrong_is_named(read, old, new, said):
    with pytest.raises(InputError, match=re.escape(said)):
        read(GOOD.replace(old, new))


def test_a_secret_in_a_file_that_others_cannot_read(read, tmp_path):
    text = GOOD.replace('secret_variable = "A_SECRET"', 'secret_file = "s"')
    with pytest.raises(InputError, match="secret_file"):
        read(text)
    (tmp_path / "s").write_text("from a file\n")
    (tmp_path / "s").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        read(text)
    (tmp_path / "s").chmod(0o600)
    assert read(text).secret == "from a file"
    with pytest.raises(InputError, match="either secret_variable or secret_file"):
        read(text.replace("secret_file", 'secret_variable = "A_SECRET"\nsecret_file'))


def test_nobody_named_is_an_error(read):
    with pytest.raises(InputError, match="nobody else can sign in"):
        read(GOOD.partition("[[")[0])


@pytest.mark.parametrize(
    "url", ["ftp://a", "//a", "", None, 5, "https://", "https://a/?b", "http://10.0.0.1"]
)
def test_addresses_that_are_not_safe(url):
    with pytest.raises(InputError, match="Expected issuer"):
        check_url("issuer", url)


def test_addresses_that_are(tmp_path):
    for url in ("https://a/b", "http://127.0.0.1:1", "http://localhost:1/x", "http://[::1]:1"):
        assert check_url("issuer", url) == url


@pytest.fixture
def ours(provider):
    grants = (Grant(by="subject", value="1234", role="viewer"),)
    return Provider(OidcSettings(issuer=provider.issuer, client_id=CLIENT, grants=grants, secret=SECRET))


def test_the_address_binds_the_sign_in(ours):
    state, _, begun = PendingSignIns().begin("http://127.0.0.1:1/back", ours.discover())
    asked = query_of(ours.address(begun, state))
    assert (asked["state"], asked["nonce"], asked["redirect_uri"]) == (state, begun.nonce, begun.redirect)
    assert asked["code_challenge_method"] == "S256"
    assert begun.verifier not in str(asked)
    assert SECRET not in str(asked)


def test_no_redirect_is_followed_and_large_documents_are_refused(ours, provider):
    from fastapi.responses import RedirectResponse

    @provider.app.get("/moved/.well-known/openid-configuration")
    def moved():
        return RedirectResponse(f"{provider.issuer}/.well-known/openid-configuration")

    for path in ("/moved", "/nowhere"):
        settings = OidcSettings(issuer=provider.issuer + path, client_id=CLIENT, grants=ours.settings.grants)
        with pytest.raises(PolicyError, match="cannot be reached or understood"):
            Provider(settings).discover()
    provider.document = {"more": "x" * LARGEST}
    with pytest.raises(PolicyError, match="cannot be reached or understood"):
        ours.discover()


def test_a_provider_that_is_not_there_is_a_sentence(ours, provider):
    gone = OidcSettings(issuer="http://localhost:1", client_id=CLIENT, grants=ours.settings.grants)
    with pytest.raises(PolicyError, match=r"cannot be reached or understood \(ConnectionError\)"):
        Provider(gone).discover()


def test_a_code_that_was_never_given_yields_no_claims(ours):
    _, _, begun = PendingSignIns().begin("http://127.0.0.1:1/back", ours.discover())
    with pytest.raises(PolicyError, match="was not accepted"):
        ours.claims(begun, "a code of mine")


def test_only_algorithms_with_a_private_key_are_known():
    assert not [name for name in ALGORITHMS if name == "none" or name.startswith("HS")]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_sign_in_is_taken_once_by_its_browser():
    pending = PendingSignIns()
    state, cookie, begun = pending.begin("http://here/back", {"a": 1})
    assert pending.take("another", cookie) is None
    assert pending.take(state, cookie) is begun
    assert pending.take(state, cookie) is None
    state, _, _ = pending.begin("http://here/back", {})
    assert pending.take(state, cookie) is None


def test_it_ends_with_its_time_and_the_oldest_makes_room():
    clock = Clock()
    pending = PendingSignIns(clock)
    late, first = pending.begin("", {}), pending.begin("", {})
    clock.now = LONGEST + 1
    assert pending.take(*late[:2]) is None
    others = [pending.begin("", {}) for _ in range(MOST)]
    clock.now = 0.0
    assert pending.take(*first[:2]) is None
    assert pending.take(*others[-1][:2]) is others[-1][2]


def test_secrets_are_new_each_time_and_not_shown():
    pending = PendingSignIns()
    one, other = (pending.begin("", {})[2] for _ in range(2))
    assert {one.nonce, one.verifier}.isdisjoint({other.nonce, other.verifier})
    assert one.nonce not in repr(one)
    assert one.verifier not in repr(one)
    assert 43 <= len(one.verifier) <= 128  # RFC 7636
