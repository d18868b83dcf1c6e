"""Couriers whose place cannot tell that something arrived: they look again, less and less often."""

from __future__ import annotations

import time
from collections.abc import Container
from typing import ClassVar

from privada.exchange.courier import Courier

_GROWTH = 1.5


class PollingCourier(Courier):
    """Waits by listing.

    The pause between two looks grows from ``shortest_pause`` to ``longest_pause`` seconds, over all waits
    for one prefix, and is short again after news.
    """

    shortest_pause: ClassVar[float]
    longest_pause: ClassVar[float]

    def __init__(self) -> None:
        self._pauses: dict[str, float] = {}

    def wait(self, prefix: str, *, known: Container[str], seconds: float) -> list[str]:
        until = time.monotonic() + seconds
        while True:
            found = [key for key in self.keys(prefix) if key not in known]
            left = until - time.monotonic()
            if found:
                self._pauses.pop(prefix, None)
            if found or left <= 0:
                return found
            time.sleep(min(self._pause(prefix), left))

    def _pause(self, prefix: str) -> float:
        pause = self._pauses.get(prefix, self.shortest_pause)
        self._pauses[prefix] = min(pause * _GROWTH, self.longest_pause)
        return pause


__all__ = ["PollingCourier"]
