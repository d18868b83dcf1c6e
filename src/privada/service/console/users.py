"""Who may sign in to the console, and who is signed in.

The owner's file has names, roles and hashed passphrases. Sessions are in memory and end with the service.

>>> grace = User.create("Grace", "approver", "correct horse")
>>> grace.accepts("correct horse"), grace.accepts("wrong"), grace.may("approver"), grace.may("administrator")
(True, False, True, False)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from privada.exceptions import InputError
from privada.privacy.asker import LONGEST_NAME, check_line
from privada.privacy.keys import check_passphrase

ROLES = ("viewer", "approver", "administrator")  # each may do what those before it may
FILE = "console-users.json"
IDLE, LONGEST = 30 * 60.0, 8 * 3600.0  # seconds after which a session ends
MOST_FAILURES, MOST_OF_ALL = 5, 30  # sign-ins of one name, and of all names, that may fail within a window
WINDOW = 300.0  # seconds
_COST = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 1 << 26}  # about a tenth of a second, 32 MiB


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who may sign in: a name, as the ledger will show it, and a role."""

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
    """A person who signs in by a passphrase, whose scrypt hash is stored."""

    salt: str = field(repr=False)
    scrypt: str = field(repr=False)

    @classmethod
    def create(cls, name: str, role: str, passphrase: str) -> Self:
        """Return a user with a new salt."""
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
        """Return all users by name; raise `InputError` if the file is not one of users."""
        if not self.path.is_file():
            return {}
        try:
            plain = json.loads(self.path.read_text(encoding="utf-8"))
            return {user["name"]: User(**user) for user in plain["users"]}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(f"{self.path} is not a file of console users.") from None

    def put(self, user: User) -> None:
        """Add a user, or replace the one of this name; only the owner of the file can read it."""
        users = {**self.read(), user.name: user}
        text = json.dumps({"users": [asdict(one) for one in users.values()]}, indent=2) + "\n"
        # Replaced as a whole: a sign-in at this moment reads the old file or the new one, never half of it.
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)  # mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(self.path)

    def sign_in(self, name: str, passphrase: str) -> User | None:
        """Return the user if the passphrase is right; an unknown name takes as long as a known one."""
        user = self.read().get(name, _NOBODY)
        return user if user.accepts(passphrase) else None


@dataclass
class Session:
    """The session of one person; ``secret`` binds its forms to it and never leaves the process."""

    user: Person
    begun: float
    used: float
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def token(self, *bound: str) -> str:
        """Return what a form of this session must contain, bound to what the form is about."""
        return hmac.new(self.secret, "\n".join(bound).encode(), hashlib.sha256).hexdigest()

    def owns(self, token: str, *bound: str) -> bool:
        """Whether a form is one of this session, and about this."""
        return hmac.compare_digest(self.token(*bound).encode(), token.encode())

    def is_over(self, now: float) -> bool:
        """Whether it was idle, or open, for too long."""
        return now - self.used > IDLE or now - self.begun > LONGEST


class Sessions:
    """All sessions by the digest of their cookie, so that memory holds nothing that signs somebody in."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._open: dict[str, Session] = {}

    def begin(self, user: Person) -> str:
        """Open a session and return its cookie."""
        cookie, now = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            self._open = {name: session for name, session in self._open.items() if not session.is_over(now)}
            self._open[digest_secret(cookie)] = Session(user, begun=now, used=now)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, or None if it is over."""
        now = self._clock()
        with self._lock:
            session = self._open.get(digest_secret(cookie))
            if session is None or session.is_over(now):
                return None
            session.used = now
            return session

    def end(self, cookie: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(digest_secret(cookie), None)


class Attempts:
    """Counts sign-ins that failed, by name and in all, within a sliding window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._failed: defaultdict[str, deque[float]] = defaultdict(deque)

    def start(self, name: str) -> bool:
        """Whether one more sign-in may be tried now; it counts as failed until `succeed`."""
        now = self._clock()
        with self._lock:
            for key in [*self._failed]:
                times = self._failed[key]
                while times and times[0] <= now - WINDOW:
                    times.popleft()
                if not times:
                    del self._failed[key]
            of_all = sum(map(len, self._failed.values()))
            if of_all >= MOST_OF_ALL or len(self._failed.get(name, ())) >= MOST_FAILURES:
                return False
            self._failed[name].append(now)
            return True

    def succeed(self, name: str) -> None:
        """Forget the failures of a name."""
        with self._lock:
            self._failed.pop(name, None)


def digest_secret(text: str) -> str:
    """Return the SHA-256 of a cookie or of another random text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _hash(passphrase: str, salt: str) -> str:
    return hashlib.scrypt(passphrase.encode()[:1000], salt=bytes.fromhex(salt), **_COST).hex()


__all__ = ["FILE", "ROLES", "Attempts", "Person", "Session", "Sessions", "User", "Users", "digest_secret"]
