"""``console.toml``: how people sign in to the console by OpenID Connect, and who may do what.

::

    [oidc]
    issuer = "https://login.example.org/realms/clinic"  # exactly as the provider states it
    client_id = "privada-console"
    secret_variable = "PRIVADA_OIDC_SECRET"  # environment variable that holds the client's secret; or
    # secret_file = "oidc.secret"            # a file that only its owner can read; neither: a public client
    scopes = ["openid", "email"]             # what the provider is asked for; this is the default
    group_claim = "groups"                   # claim that lists a person's groups; this is the default

    [[oidc.people]]                          # whoever is not named here cannot sign in
    email = "grace@example.org"              # one of email (verified by the provider), subject or group
    role = "approver"                        # viewer, approver or administrator

    [[oidc.people]]
    group = "privacy-office"
    role = "viewer"

A person whom several tables name has the highest of their roles. The file holds no secret, and is read at
each request, so that a change counts at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from privada import _check, _files
from privada._toml import Section
from privada.exceptions import InputError
from privada.privacy.asker import LONGEST_NAME, check_line
from privada.service.console.users import ROLES, Person

FILE = "console.toml"
LARGEST_SECRET = 1 << 12  # bytes
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NAMED_BY = ("email", "subject", "group")


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
        named = [name for name in NAMED_BY if name in section]
        if len(named) != 1:
            section.fail("role", f"expected one of {', '.join(NAMED_BY)} beside it, got {len(named)}.")
        value = section.string(named[0])
        if not value.strip():
            section.fail(named[0], "expected text that is not empty.")
        with section.blaming("role"):
            made = cls(by=named[0], value=value, role=section.string("role"))
        section.done()
        return made

    def names(self, claims: Mapping[str, Any], group_claim: str) -> bool:
        """Whether claims that were verified are those of a person whom it names."""
        if self.by == "email":
            return claims.get("email_verified") is True and claims.get("email") == self.value
        if self.by == "subject":
            return claims.get("sub") == self.value
        groups = claims.get(group_claim)
        return isinstance(groups, list) and self.value in groups


@dataclass(frozen=True, kw_only=True)
class Member(Person):
    """A person whom an identity provider knows by these claims, which were verified."""

    claims: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    """The content of a ``console.toml``."""

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
        grants = tuple(Grant.from_section(each) for each in section.sections("people"))
        scopes = section.array("scopes", ["openid", "email"])
        if not all(isinstance(each, str) and each.split() == [each] for each in scopes):
            section.fail("scopes", "expected a list of words.")
        keys = ("issuer", "client_id", "group_claim", "scopes", "people")
        with section.blaming(*keys):
            made = cls(
                issuer=section.string("issuer"),
                client_id=section.string("client_id"),
                grants=grants,
                secret=_read_secret(section, Path(path).resolve().parent),
                scopes=tuple(scopes),
                group_claim=section.string("group_claim", "groups"),
            )
        for each in (section, top):
            each.done()
        return made

    @property
    def host(self) -> str:
        """The issuer's host, which people see on the button and in the ledger."""
        return urlsplit(self.issuer).netloc

    @property
    def is_local(self) -> bool:
        """Whether the issuer is on this machine."""
        return urlsplit(self.issuer).hostname in LOOPBACK

    def person(self, claims: Mapping[str, Any]) -> Member | None:
        """The person of verified claims, with the highest role that a grant gives; None without one.

        The name is the verified e-mail address, or else the subject, and the issuer's host: the provider can
        change what else it says of a person, and so, often, can the person.
        """
        roles = [each.role for each in self.grants if each.names(claims, self.group_claim)]
        if not roles:
            return None
        verified = claims.get("email_verified") is True and isinstance(claims.get("email"), str)
        name = f"{claims['email'] if verified else claims['sub']} via {self.host}"
        check_line(name=name, longest=LONGEST_NAME)
        return Member(name=name, role=max(roles, key=ROLES.index), claims=claims)


def check_url(name: str, url: Any) -> str:
    """A URL by https, or by http on this machine; `InputError` for any other."""
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
    return None if file is None else _read_file(section, home / file)


def _read_file(section: Section, path: Path) -> str:
    with section.blaming("secret_file"):
        text = _files.read_text(path, largest=LARGEST_SECRET).strip()
    if not text:
        section.fail("secret_file", "expected a secret in it.")
    if os.name == "posix" and path.stat().st_mode & 0o077:
        section.fail("secret_file", f"{path.name} is open to other users; run chmod 600 on it.")
    return text


__all__ = ["FILE", "Grant", "Member", "OidcSettings", "check_url"]
