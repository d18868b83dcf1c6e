"""How bytes travel between parties: the one interface that every courier implements.

A courier carries bytes under keys such as ``releases/clinic/<digest>``. It is not trusted: it may lose,
repeat, reorder, show or forge what it carries. Signatures, limits and once-only answers are the mailbox's
business, which is the same above all couriers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container
from types import TracebackType
from typing import Self

from privada.exceptions import WireError

_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")


def check_key(key: str) -> str:
    """A key of at most eight plain segments, or a `WireError`: no key leads out of the exchange."""
    parts = key.split("/")
    if len(parts) > 8 or not all(_SEGMENT.fullmatch(part) for part in parts):
        raise WireError(f"Expected a key of letters, digits, - _ and . between slashes, got {key!r:.80}.")
    return key


class Courier(ABC):
    """Carries bytes under keys; each key is written once.

    Attributes
    ----------
    largest : int
        The most bytes of one item; larger payloads are sent in chunks.
    """

    largest: int = 1 << 20

    @abstractmethod
    def put(self, key: str, blob: bytes) -> bool:
        """Create an item, durably. False if the key exists, which leaves it as it is."""

    @abstractmethod
    def get(self, key: str, *, largest: int | None = None) -> bytes | None:
        """The bytes of an item, None if there is none; a `WireError` if it is larger than ``largest``.

        An item that is too large is refused before it is read.
        """

    @abstractmethod
    def keys(self, prefix: str) -> list[str]:
        """The sorted keys below a prefix such as ``"questions/clinic/"``."""

    @abstractmethod
    def wait(self, prefix: str, *, known: Container[str], seconds: float) -> list[str]:
        """Wait for keys below a prefix that are not known yet; an empty list after so many seconds."""

    def close(self) -> None:  # noqa: B027 - a courier that holds nothing open needs none
        """Let go of connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


__all__ = ["Courier", "check_key"]
