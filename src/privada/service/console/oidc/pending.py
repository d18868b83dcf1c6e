"""Sign-ins that were begun and wait for the person to come back from the identity provider."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST = 600.0  # seconds that a person may take
MOST = 200  # sign-ins that wait at once; the oldest is forgotten


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """One sign-in: what the provider must repeat, and what only the console knows.

    Attributes
    ----------
    redirect : str
        The console's address to which the provider sends the browser back.
    metadata : mapping
        What the provider's discovery document said.
    nonce, verifier : str
        Bind the id token, and the exchange of the code (PKCE), to this sign-in.
    """

    redirect: str
    metadata: Mapping[str, Any] = field(repr=False)
    begun: float
    browser: str = field(repr=False)
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)


class PendingSignIns:
    """Sign-ins by their state, each of which is used once, by the browser that began it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._waiting: dict[str, SignIn] = {}

    def begin(self, redirect: str, metadata: Mapping[str, Any]) -> tuple[str, str, SignIn]:
        """Begin one; returns its state, the cookie that binds it to the browser, and itself."""
        state, cookie = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        begun = SignIn(redirect=redirect, metadata=metadata, begun=self._clock(), browser=_digest(cookie))
        with self._lock:
            while len(self._waiting) >= MOST:
                self._waiting.pop(next(iter(self._waiting)))
            self._waiting[_digest(state)] = begun
        return state, cookie, begun

    def take(self, state: str, cookie: str) -> SignIn | None:
        """The sign-in of a state, which is over by this; None if there is none or it is another browser's."""
        with self._lock:
            found = self._waiting.pop(_digest(state), None)
        if found is None or self._clock() - found.begun > LONGEST:
            return None
        return found if hmac.compare_digest(found.browser, _digest(cookie)) else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["LONGEST", "MOST", "PendingSignIns", "SignIn"]
