import pytest

from privada.exceptions import PolicyError
from privada.service.console.oidc.pending import PendingSignIns
from privada.service.console.oidc.provider import ALGORITHMS, LARGEST, Provider
from privada.service.console.oidc.settings import Grant, OidcSettings

from .conftest import CLIENT, SECRET, query_of


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
