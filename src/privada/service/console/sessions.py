"""Who is signed in: sessions in memory, which end with the service, and how often a sign-in may fail."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from privada.service.console.users import Person

IDLE, LONGEST = 30 * 60.0, 8 * 3600.0  # seconds after which a session ends
MOST_FAILURES, MOST_OF_ALL = 5, 30  # sign-ins of one name, and of all names, that may fail within a window
WINDOW = 300.0  # seconds


@dataclass
class Session:
    """One person's session; ``secret`` binds its forms to it and never leaves the process."""

    user: Person
    begun: float
    used: float
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def token(self, *bound: str) -> str:
        """What a form of this session must bring, bound to what the form is about."""
        return hmac.new(self.secret, "\n".join(bound).encode(), hashlib.sha256).hexdigest()

    def owns(self, token: str, *bound: str) -> bool:
        """Whether a form is one of this session and about this."""
        return hmac.compare_digest(self.token(*bound).encode(), token.encode())


class Sessions:
    """All sessions, found by the digest of their cookie."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._open: dict[str, Session] = {}

    def begin(self, user: Person) -> str:
        """Open a session; returns its cookie."""
        cookie, now = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            self._open = {name: one for name, one in self._open.items() if not _is_over(one, now)}
            self._open[_digest(cookie)] = Session(user, begun=now, used=now)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, None if it is over."""
        now = self._clock()
        with self._lock:
            found = self._open.get(_digest(cookie))
            if found is None or _is_over(found, now):
                return None
            found.used = now
            return found

    def end(self, cookie: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(_digest(cookie), None)


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


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def _is_over(session: Session, now: float) -> bool:
    return now - session.used > IDLE or now - session.begun > LONGEST


__all__ = ["Attempts", "Session", "Sessions"]
