"""What the console asks of an identity provider, and how it checks what comes back.

The authorization-code flow of OpenID Connect with PKCE. The discovery document is fetched from the declared
issuer alone, anew for each sign-in, so that changed keys are known; no redirect is followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privada._text import printable_line
from privada.exceptions import PolicyError
from privada.service.console.oidc.pending import SignIn
from privada.service.console.oidc.settings import OidcSettings, check_url

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
LEEWAY = 60  # seconds by which the clocks may differ
LARGEST = 1 << 20  # bytes of a document
PATIENCE = 10.0  # seconds for one request


class Provider:
    """The identity provider that ``console.toml`` declares."""

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings

    def discover(self) -> dict[str, Any]:
        """What the issuer says of itself; it must be the issuer that was declared."""
        url = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
        found = self._fetch(url)
        if found.get("issuer") != self.settings.issuer:
            raise PolicyError("The identity provider is not the declared issuer.")
        for name in ENDPOINTS:
            check_url(name, found.get(name))
        return found

    def address(self, sign_in: SignIn, state: str) -> str:
        """Where the browser is sent to sign in."""
        with self._session(sign_in) as session:
            found, _ = session.create_authorization_url(
                sign_in.metadata["authorization_endpoint"],
                state=state,
                nonce=sign_in.nonce,
                code_verifier=sign_in.verifier,
            )
        return str(found)

    def claims(self, sign_in: SignIn, code: str) -> Mapping[str, Any]:
        """The verified claims of the person for whom the provider gave a code; `PolicyError` if any fails.

        Checked are the signature by one of the provider's keys (asymmetric algorithms only), issuer,
        audience, times, nonce, and the access token's hash if there is one.
        """
        from authlib.integrations.base_client import OAuthError
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet
        from requests import RequestException

        try:
            with self._session(sign_in) as session:
                token = session.fetch_token(
                    sign_in.metadata["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=sign_in.verifier,
                    timeout=PATIENCE,
                    allow_redirects=False,
                )
            keys = KeySet.import_key_set({"keys": self._keys(sign_in)})
            signed = jwt.decode(token["id_token"], keys, algorithms=ALGORITHMS)
            options = {"iss": {"essential": True, "value": self.settings.issuer}}
            options["aud"] = {"essential": True, "value": self.settings.client_id}
            bound = {"nonce": sign_in.nonce, "client_id": self.settings.client_id}
            bound |= {"access_token": token.get("access_token")}
            claims = CodeIDToken(signed.claims, signed.header, options=options, params=bound)
            claims.validate(leeway=LEEWAY)
        except (OAuthError, JoseError, RequestException, KeyError, TypeError, ValueError) as error:
            why = printable_line(type(error).__name__)
            raise PolicyError(f"The identity provider's answer was not accepted ({why}).") from None
        return dict(claims)

    def _keys(self, sign_in: SignIn) -> list[Any]:
        """The provider's public keys for signatures."""
        listed = self._fetch(sign_in.metadata["jwks_uri"]).get("keys")
        found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        known = [each for each in found if each.get("kty") in ("RSA", "EC", "OKP")]
        return [each for each in known if each.get("use", "sig") == "sig"]

    def _session(self, sign_in: SignIn) -> Any:
        from authlib.integrations.requests_client import OAuth2Session

        offered = sign_in.metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        method = "client_secret_basic" if "client_secret_basic" in offered else "client_secret_post"
        session = OAuth2Session(
            client_id=self.settings.client_id,
            client_secret=self.settings.secret,
            token_endpoint_auth_method="none" if self.settings.secret is None else method,
            scope=" ".join(self.settings.scopes),
            redirect_uri=sign_in.redirect,
            code_challenge_method="S256",
        )
        session.trust_env = not self.settings.is_local  # proxies are for what is elsewhere
        return session

    def _fetch(self, url: str) -> dict[str, Any]:
        """A JSON object by https, of bounded size; no redirect is followed."""
        import json

        import requests

        with requests.Session() as session:
            session.trust_env = not self.settings.is_local
            try:
                with session.get(url, timeout=PATIENCE, allow_redirects=False, stream=True) as reply:
                    body = reply.raw.read(LARGEST + 1, decode_content=True)
                found = json.loads(body) if reply.status_code == 200 and len(body) <= LARGEST else None
            except (requests.RequestException, OSError, ValueError) as error:
                raise PolicyError(
                    f"The identity provider cannot be reached or understood ({type(error).__name__})."
                ) from None
        if not isinstance(found, dict):
            raise PolicyError("The identity provider cannot be reached or understood.")
        return found


__all__ = ["ALGORITHMS", "Provider"]
