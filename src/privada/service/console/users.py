"""Who may sign in to the console: names, roles and hashed passphrases, in a file of the owner's.

>>> made = User.made("Grace", "approver", "correct horse")
>>> made.accepts("correct horse"), made.accepts("wrong"), made.may("approver"), made.may("administrator")
(True, False, True, False)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from privada.exceptions import InputError
from privada.privacy.asker import LONGEST_NAME, check_line
from privada.privacy.keys import check_passphrase

ROLES = ("viewer", "approver", "administrator")  # each may do what those before it may
FILE = "console-users.json"
_COST = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 1 << 26}  # about a tenth of a second, 32 MiB


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who is or may be signed in: a name, as the ledger will show it, and a role."""

    name: str
    role: str

    def __post_init__(self) -> None:
        check_line(name=self.name, longest=LONGEST_NAME)
        if self.role not in ROLES:
            raise InputError(f"Expected role to be one of {', '.join(ROLES)}, got {self.role!r:.40}.")

    def may(self, role: str) -> bool:
        """Whether the person's role includes another."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, kw_only=True)
class User(Person):
    """A person who signs in by a passphrase, of which the scrypt hash is kept."""

    salt: str = field(repr=False)
    scrypt: str = field(repr=False)

    @classmethod
    def made(cls, name: str, role: str, passphrase: str) -> Self:
        """A user with a new salt."""
        salt = secrets.token_hex(16)
        return cls(name=name, role=role, salt=salt, scrypt=_hash(check_passphrase(passphrase), salt))

    def accepts(self, passphrase: str) -> bool:
        """Whether it is this user's passphrase."""
        return hmac.compare_digest(_hash(passphrase, self.salt), self.scrypt)


_NOBODY = User(name="nobody", role="viewer", salt="00" * 16, scrypt="")


class Users:
    """The users in a file; it is read at each request, so that a change counts at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def read(self) -> dict[str, User]:
        """All users by name; `InputError` if the file is not one of users."""
        if not self.path.is_file():
            return {}
        try:
            plain = json.loads(self.path.read_text(encoding="utf-8"))
            return {each["name"]: User(**each) for each in plain["users"]}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(f"{self.path} is not a file of console users.") from None

    def put(self, user: User) -> None:
        """Add a user, or replace the one of this name; only the owner of the file can read it."""
        users = {**self.read(), user.name: user}
        text = json.dumps({"users": [asdict(each) for each in users.values()]}, indent=2) + "\n"
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)  # mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(self.path)

    def sign_in(self, name: str, passphrase: str) -> User | None:
        """The user, if the passphrase is right; an unknown name takes as long as a known one."""
        user = self.read().get(name, _NOBODY)
        return user if user.accepts(passphrase) else None


def _hash(passphrase: str, salt: str) -> str:
    return hashlib.scrypt(passphrase.encode()[:1000], salt=bytes.fromhex(salt), **_COST).hex()


__all__ = ["FILE", "ROLES", "Person", "User", "Users"]
