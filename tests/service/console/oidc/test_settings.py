import re

import pytest

from privada.exceptions import InputError
from privada.service.console.oidc.settings import OidcSettings, check_url

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
