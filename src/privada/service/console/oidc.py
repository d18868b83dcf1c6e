"""Sign-in by OpenID Connect: an identity provider says who a person is, the owner's file what they may do.

`OidcSettings` reads the file, `PendingSignIns` remembers the sign-ins that were begun, and `Provider` talks
to the declared issuer and checks its tokens.

The sign-in is the authorization-code flow with PKCE. The discovery document is fetched from the declared
issuer alone, anew for each sign-in, so that changed keys are noticed; no redirect is followed.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from privada import _check, _files
from privada._text import printable_line
from privada._toml import Section
from privada.exceptions import InputError, PolicyError
from privada.privacy.asker import LONGEST_NAME, check_line
from privada.service.console.users import ROLES, Person, digest_secret

FILE = "console.toml"
LARGEST_SECRET = 1 << 12  # bytes
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NAMED_BY = ("email", "subject", "group")
LONGEST = 600.0  # seconds that a person may take to sign in
MOST = 200  # sign-ins that wait at once; the oldest is forgotten
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
LEEWAY = 60  # seconds by which the clocks may differ
LARGEST = 1 << 20  # bytes of a document
PATIENCE = 10.0  # seconds for one request


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A role for whoever has an e-mail address, a subject or a group.

    >>> grant = Grant(by="email", value="grace@example.org", role="approver")
    >>> grant.names({"email": "grace@example.org", "email_verified": True}, "groups")
    True
    >>> grant.names({"email": "grace@example.org"}, "groups")
    False
    """

    by: str
    value: str
    role: str

    def __post_init__(self) -> None:
        _check.one_of(ROLES, role=self.role)

    @classmethod
    def from_section(cls, section: Section) -> Self:
        """Read one table ``[[oidc.people]]``."""
        keys = [name for name in NAMED_BY if name in section]
        if len(keys) != 1:
            section.fail("role", f"expected one of {', '.join(NAMED_BY)} beside it, got {len(keys)}.")
        value = section.string(keys[0])
        if not value.strip():
            section.fail(keys[0], "expected text that is not empty.")
        with section.blaming("role"):
            grant = cls(by=keys[0], value=value, role=section.string("role"))
        section.done()
        return grant

    def names(self, claims: Mapping[str, Any], group_claim: str) -> bool:
        """Whether verified claims are those of a person whom it names."""
        if self.by == "email":
            return claims.get("email_verified") is True and claims.get("email") == self.value
        if self.by == "subject":
            return claims.get("sub") == self.value
        groups = claims.get(group_claim)
        return isinstance(groups, list) and self.value in groups


@dataclass(frozen=True, kw_only=True)
class Member(Person):
    """A person whom an identity provider knows by these verified claims."""

    claims: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    """``console.toml``: how people sign in to the console by OpenID Connect, and who may do what.

    ::

        [oidc]
        issuer = "https://login.example.org/realms/clinic"  # exactly as the provider states it
        client_id = "privada-console"
        secret_variable = "PRIVADA_OIDC_SECRET"  # environment variable that holds the client's secret; or
        # secret_file = "oidc.secret"            # a file that only its owner reads; neither: a public client
        scopes = ["openid", "email"]             # what the provider is asked for; this is the default
        group_claim = "groups"                   # claim that lists a person's groups; this is the default

        [[oidc.people]]                          # whoever is not named here cannot sign in
        email = "grace@example.org"              # one of email (verified by the provider), subject or group
        role = "approver"                        # viewer, approver or administrator

        [[oidc.people]]
        group = "privacy-office"
        role = "viewer"

    A person whom several tables name has the highest of their roles. The file contains no secret, and is
    read at each request, so that a change counts at once.
    """

    issuer: str
    client_id: str
    grants: tuple[Grant, ...]
    secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ("openid", "email")
    group_claim: str = "groups"

    def __post_init__(self) -> None:
        check_url("issuer", self.issuer)
        if "openid" not in self.scopes:
            raise InputError('Expected scopes to hold "openid".')
        if not self.grants:
            raise InputError("Expected people under [[oidc.people]]: nobody else can sign in.")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read the file; errors name the line and the key."""
        top = Section.read(path)
        section = top.section("oidc")
        grants = tuple(map(Grant.from_section, section.sections("people")))
        scopes = section.array("scopes", ["openid", "email"])
        if not all(isinstance(scope, str) and scope.split() == [scope] for scope in scopes):
            section.fail("scopes", "expected a list of words.")
        with section.blaming("issuer", "client_id", "group_claim", "scopes", "people"):
            settings = cls(
                issuer=section.string("issuer"),
                client_id=section.string("client_id"),
                grants=grants,
                secret=_read_secret(section, Path(path).resolve().parent),
                scopes=tuple(scopes),
                group_claim=section.string("group_claim", "groups"),
            )
        section.done()
        top.done()
        return settings

    @property
    def host(self) -> str:
        """The issuer's host, which people see on the button and in the ledger."""
        return urlsplit(self.issuer).netloc

    @property
    def is_local(self) -> bool:
        """Whether the issuer is on this machine."""
        return urlsplit(self.issuer).hostname in LOOPBACK

    def person(self, claims: Mapping[str, Any]) -> Member | None:
        """Return the person of verified claims, with the highest role that is granted; None without one.

        The name is the verified e-mail address, or else the subject, and the issuer's host: the provider can
        change what else it says of a person, and so, often, can the person.
        """
        roles = [grant.role for grant in self.grants if grant.names(claims, self.group_claim)]
        if not roles:
            return None
        verified = claims.get("email_verified") is True and isinstance(claims.get("email"), str)
        name = f"{claims['email'] if verified else claims['sub']} via {self.host}"
        check_line(name=name, longest=LONGEST_NAME)
        return Member(name=name, role=max(roles, key=ROLES.index), claims=claims)


def check_url(name: str, url: Any) -> str:
    """Return a URL by https, or by http on this machine; raise `InputError` for any other."""
    parts = urlsplit(url) if isinstance(url, str) else None
    safe = parts is not None and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    )
    if parts is None or not safe or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise InputError(f"Expected {name} to be an https URL, or http on this machine, got {url!r:.80}.")
    return str(url)


def _read_secret(section: Section, home: Path) -> str | None:
    """The client's secret from the environment or a file; None for a public client."""
    variable, file = section.string("secret_variable", None), section.string("secret_file", None)
    if variable is not None and file is not None:
        section.fail("secret_file", "expected either secret_variable or secret_file.")
    if variable is not None:
        secret = os.environ.get(variable, "")
        if not secret:
            section.fail("secret_variable", f"expected the environment to have {variable}.")
        return secret
    if file is None:
        return None
    with section.blaming("secret_file"):
        secret = _files.read_text(home / file, largest=LARGEST_SECRET).strip()
    if not secret:
        section.fail("secret_file", "expected a secret in it.")
    if os.name == "posix" and (home / file).stat().st_mode & 0o077:
        section.fail("secret_file", f"{Path(file).name} is open to other users; run chmod 600 on it.")
    return secret


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """A sign-in that was begun: what the provider must repeat, and what only the console knows.

    The nonce and the verifier bind the id token, and the exchange of the code (PKCE), to this sign-in.
    """

    redirect: str  # the console's address to which the provider sends the browser back
    metadata: Mapping[str, Any] = field(repr=False)  # of the provider, from its discovery document
    begun: float
    browser: str = field(repr=False)  # digest of the cookie of the browser that began it
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)


class PendingSignIns:
    """Sign-ins that wait for the person to come back: each is used once, by the browser that began it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._waiting: dict[str, SignIn] = {}

    def begin(self, redirect: str, metadata: Mapping[str, Any]) -> tuple[str, str, SignIn]:
        """Begin one; return its state, the cookie that binds it to the browser, and the sign-in."""
        state, cookie = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        browser, now = digest_secret(cookie), self._clock()
        sign_in = SignIn(redirect=redirect, metadata=metadata, begun=now, browser=browser)
        with self._lock:
            while len(self._waiting) >= MOST:
                self._waiting.pop(next(iter(self._waiting)))
            self._waiting[digest_secret(state)] = sign_in
        return state, cookie, sign_in

    def take(self, state: str, cookie: str) -> SignIn | None:
        """Return and end the sign-in of a state; None if there is none, or it is another browser's."""
        with self._lock:
            sign_in = self._waiting.pop(digest_secret(state), None)
        if sign_in is None or self._clock() - sign_in.begun > LONGEST:
            return None
        return sign_in if hmac.compare_digest(sign_in.browser, digest_secret(cookie)) else None


class Provider:
    """The identity provider that ``console.toml`` declares."""

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings

    def discover(self) -> dict[str, Any]:
        """Return what the issuer says of itself; it must be the issuer that was declared."""
        url = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
        metadata = self._fetch(url)
        if metadata.get("issuer") != self.settings.issuer:
            raise PolicyError("The identity provider is not the declared issuer.")
        for name in ENDPOINTS:
            check_url(name, metadata.get(name))
        return metadata

    def address(self, sign_in: SignIn, state: str) -> str:
        """Return the address to which the browser is sent to sign in."""
        with self._session(sign_in) as session:
            address, _ = session.create_authorization_url(
                sign_in.metadata["authorization_endpoint"],
                state=state,
                nonce=sign_in.nonce,
                code_verifier=sign_in.verifier,
            )
        return str(address)

    def claims(self, sign_in: SignIn, code: str) -> Mapping[str, Any]:
        """Return the verified claims of the person for whom the provider gave a code, or raise `PolicyError`.

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
            listed = self._fetch(sign_in.metadata["jwks_uri"]).get("keys")
            # Keys of other kinds and for other purposes may be listed, too; symmetric ones must not count.
            usable = [
                key
                for key in (listed if isinstance(listed, list) else [])
                if isinstance(key, dict)
                and key.get("kty") in ("RSA", "EC", "OKP")
                and key.get("use", "sig") == "sig"
            ]
            keys = KeySet.import_key_set({"keys": usable})
            signed = jwt.decode(token["id_token"], keys, algorithms=ALGORITHMS)
            options = {"iss": {"essential": True, "value": self.settings.issuer}}
            options["aud"] = {"essential": True, "value": self.settings.client_id}
            bound = {"nonce": sign_in.nonce, "client_id": self.settings.client_id}
            bound |= {"access_token": token.get("access_token")}
            claims = CodeIDToken(signed.claims, signed.header, options=options, params=bound)
            claims.validate(leeway=LEEWAY)
        except (OAuthError, JoseError, RequestException, KeyError, TypeError, ValueError) as error:
            kind = printable_line(type(error).__name__)
            raise PolicyError(f"The identity provider's answer was not accepted ({kind}).") from None
        return dict(claims)

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
        import requests

        with requests.Session() as session:
            session.trust_env = not self.settings.is_local
            try:
                with session.get(url, timeout=PATIENCE, allow_redirects=False, stream=True) as reply:
                    body = reply.raw.read(LARGEST + 1, decode_content=True)
                document = json.loads(body) if reply.status_code == 200 and len(body) <= LARGEST else None
            except (requests.RequestException, OSError, ValueError) as error:
                raise PolicyError(
                    f"The identity provider cannot be reached or understood ({type(error).__name__})."
                ) from None
        if not isinstance(document, dict):
            raise PolicyError("The identity provider cannot be reached or understood.")
        return document


__all__ = ["FILE", "LONGEST", "Grant", "Member", "OidcSettings", "PendingSignIns", "Provider", "SignIn"]
