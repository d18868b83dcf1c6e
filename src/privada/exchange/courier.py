"""How bytes travel between parties: the one interface that every courier implements.

A courier carries bytes under keys such as ``releases/clinic/<digest>``. It is not trusted: it may lose,
repeat, reorder, show or forge what it carries. Signatures, limits and once-only answers are the mailbox's
business, which is the same above all couriers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from types import TracebackType
from typing import Self

from privada._text import quoted
from privada.exceptions import WireError

_SEGMENT = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_-])?")
MOST_SEGMENTS = 8


def is_segment(name: str) -> bool:
    """Whether a name can be one segment of a key: short, plain, and no file system reads more into it."""
    return _SEGMENT.fullmatch(name) is not None


def check_key(key: str) -> str:
    """A key of at most eight plain segments, or a `WireError`: no key leads out of the exchange.

    >>> check_key("releases/clinic/0b5e.1")
    'releases/clinic/0b5e.1'
    """
    parts = key.split("/")
    if len(parts) > MOST_SEGMENTS or not all(map(is_segment, parts)):
        raise WireError(f"Expected a key of letters, digits, - _ and . between slashes, got {quoted(key)}.")
    return key


def check_prefix(prefix: str) -> str:
    """A prefix that ends with a slash, or the empty one of all keys; else a `WireError`.

    >>> check_prefix("questions/clinic/")
    'questions/clinic/'
    """
    if prefix and not prefix.endswith("/"):
        raise WireError(f"Expected a prefix that ends with a slash, got {quoted(prefix)}.")
    if prefix:
        check_key(prefix[:-1])
    return prefix


def check_size(key: str, size: int, largest: int) -> None:
    """Refuse an item that is larger than it may be, whoever sent it."""
    if size > largest:
        raise WireError(f"The item {key} has {size} bytes; at most {largest} are carried.")


class Courier(ABC):
    """Carries bytes under keys; each key is written once.

    A key is an item or a folder of others, never both: not ``releases/clinic`` beside
    ``releases/clinic/0b5e``, which no file system could hold.

    Attributes
    ----------
    largest : int
        The most bytes of one item; larger payloads are sent in chunks.
    """

    largest: int = 1 << 20

    @abstractmethod
    def put(self, key: str, blob: bytes) -> bool:
        """Create an item, durably. False if the key exists, which leaves it as it is.

        Raises
        ------
        WireError
            The key is none, or the item is larger than ``largest``.
        CourierError
            The place cannot be reached or written to; the item may or may not be there.
        """

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

    def stamps(self, prefix: str) -> Mapping[str, object]:
        """The keys below a prefix, each with what changes when the item does: its size, the time of a change.

        Nothing is read. Where nobody can change an item, there is no more to say than that it is there.
        """
        return dict.fromkeys(self.keys(prefix))

    def check_writable(self, prefix: str) -> None:
        """Raise `CourierError` unless an item could be put below a prefix now.

        Couriers that can do so leave nothing there: this one puts an item, which stays.
        """
        self.put(f"{check_prefix(prefix)}probe", b"\n")

    def remove_leftovers(self, prefix: str) -> None:  # noqa: B027 - most places show only what is complete
        """Remove what earlier processes of this party were writing below a prefix when they were ended."""

    def close(self) -> None:  # noqa: B027 - a courier that holds nothing open needs none
        """Let go of connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


__all__ = ["MOST_SEGMENTS", "Courier", "check_key", "check_prefix", "check_size", "is_segment"]
