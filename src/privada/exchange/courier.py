"""Couriers carry bytes between parties: the interface that all of them implement, and how a URL opens one.

A courier carries bytes under keys such as ``releases/clinic/<digest>``. It is not trusted: it may lose,
repeat, reorder, show or forge what it carries. Signatures, limits and once-only answers are the task of the
mailbox, which works in the same way over every courier.

==============================  ====================================================================
URL                             courier
==============================  ====================================================================
``memory://trial``              memory of this process
``shared/exchange``             a folder; also ``file:///mnt/exchange``
``s3://bucket/path``            a bucket; also ``gs://``, ``az://`` and the ``https://`` address of one
``clinic/link.toml``            a NATS server: the file that its administrator gave you
``tls://broker:4222/trial``     the same, with ``?ca=FILE&certificate=FILE&key=FILE``
``nats://localhost:4222``       one on this machine, without encryption, for trials
==============================  ====================================================================

Credentials are never part of a URL, which is logged and shown: those of a bucket come from the environment
(``AWS_ACCESS_KEY_ID`` and so on), those of a broker from the files that are named.

A package of your own can bring a courier: a subclass of `Courier` with a ``from_url``, which is announced in
the package's ``pyproject.toml`` under the scheme of its URLs::

    [project.entry-points."privada.couriers"]
    sftp = "my_package:SftpCourier"
"""

from __future__ import annotations

import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from importlib import metadata
from types import TracebackType
from typing import ClassVar, Self
from urllib.parse import urlsplit

from privada._text import quoted
from privada.exceptions import InputError, WireError

COURIERS = "privada.couriers"  # the group of entry points
MOST_SEGMENTS = 8
_SEGMENT = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_-])?")


def is_segment(name: str) -> bool:
    """Whether a name can be one segment of a key: short, and without a special meaning to a file system."""
    return _SEGMENT.fullmatch(name) is not None


def check_key(key: str) -> str:
    """Return a key of at most eight plain segments, or raise `WireError`: no key leads out of the exchange.

    >>> check_key("releases/clinic/0b5e.1")
    'releases/clinic/0b5e.1'
    """
    parts = key.split("/")
    if len(parts) > MOST_SEGMENTS or not all(map(is_segment, parts)):
        raise WireError(f"Expected a key of letters, digits, - _ and . between slashes, got {quoted(key)}.")
    return key


def check_prefix(prefix: str) -> str:
    """Return a prefix that ends with a slash, or the empty one of all keys; else raise `WireError`.

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

    A key is an item or a folder of others, never both: there is no ``releases/clinic`` together with
    ``releases/clinic/0b5e``, which no file system could hold.

    An item has at most ``largest`` bytes; larger payloads are sent in parts.
    """

    largest: int = 1 << 20

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Open the courier that a URL names. The URL contains no user and no password.

        Only couriers that are registered under a URL scheme need this.
        """
        raise InputError(f"{cls.__name__} cannot be opened by a URL, got {quoted(url)}.")

    @abstractmethod
    def put(self, key: str, blob: bytes) -> bool:
        """Create an item, durably. Return False if the key exists; its item stays as it is.

        A `WireError` says that the key is invalid or the item too large, a `CourierError` that the place
        cannot be reached or written to; the item may or may not have been created then.
        """

    @abstractmethod
    def get(self, key: str, *, largest: int | None = None) -> bytes | None:
        """Return the bytes of an item, or None if there is none; raise `WireError` if it is too large.

        An item of more than ``largest`` bytes is refused before it is read.
        """

    @abstractmethod
    def keys(self, prefix: str) -> list[str]:
        """Return the sorted keys below a prefix such as ``"questions/clinic/"``."""

    @abstractmethod
    def wait(self, prefix: str, *, known: Container[str], seconds: float) -> list[str]:
        """Wait for keys below a prefix that are not known yet; return an empty list if none comes in time."""

    def stamps(self, prefix: str) -> Mapping[str, object]:
        """Return the keys below a prefix, each with a value that changes when the item changes.

        No item is read. Where nobody can change an item, the values are None.
        """
        return dict.fromkeys(self.keys(prefix))

    def check_writable(self, prefix: str) -> None:
        """Raise `CourierError` unless an item could be put below a prefix now.

        This default puts an item, which stays. Couriers that can do so leave nothing behind.
        """
        self.put(f"{check_prefix(prefix)}probe", b"\n")

    def remove_leftovers(self, prefix: str) -> None:  # noqa: B027 - most places show only what is complete
        """Remove what interrupted processes of this party left half-written below a prefix."""

    def close(self) -> None:  # noqa: B027 - a courier without connections needs none
        """Close connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PollingCourier(Courier):
    """A courier to a place that cannot announce new items: it waits by listing, less and less often.

    The pause between two listings grows from ``shortest_pause`` to ``longest_pause`` seconds, over all waits
    for one prefix, and is short again after a new key.
    """

    shortest_pause: ClassVar[float]
    longest_pause: ClassVar[float]
    _growth: ClassVar[float] = 1.5

    def __init__(self) -> None:
        self._pauses: dict[str, float] = {}

    def wait(self, prefix: str, *, known: Container[str], seconds: float) -> list[str]:
        until = time.monotonic() + seconds
        while True:
            fresh = [key for key in self.keys(prefix) if key not in known]
            if fresh:
                self._pauses.pop(prefix, None)
            remaining = until - time.monotonic()
            if fresh or remaining <= 0:
                return fresh
            pause = self._pauses.get(prefix, self.shortest_pause)
            self._pauses[prefix] = min(pause * self._growth, self.longest_pause)
            time.sleep(min(pause, remaining))


def open_courier(url: str | os.PathLike[str]) -> Courier:
    """Open the courier that a URL, or the path of a folder or of a ``link.toml``, names.

    Parameters
    ----------
    url : str or path
        See the table in `privada.exchange.courier`.

    Raises
    ------
    InputError
        No courier is registered for the URL, it contains a password, or an extra is not installed.
    CourierError
        The place cannot be reached.

    Examples
    --------
    >>> with open_courier("memory://example") as courier:
    ...     courier.put("questions/clinic/0b5e", b"...")
    True
    """
    text = os.fspath(url)
    if "://" not in text:
        return _find_courier("tls" if text.endswith(".toml") else "file").from_url(text)
    try:
        parts = urlsplit(text)
    except ValueError:
        raise InputError(f"Expected a URL of an exchange, got {quoted(text)}.") from None
    courier = _find_courier(parts.scheme)
    if "@" in parts.netloc:
        raise InputError("A URL with a user or password in it would be logged; give none.")
    return courier.from_url(text)


def _find_courier(scheme: str) -> type[Courier]:
    """Load the class that is registered for a URL scheme."""
    entries = metadata.entry_points(group=COURIERS)
    values = {entry.value for entry in entries if entry.name == scheme}
    if not values:
        schemes = ", ".join(f"{name}://" for name in sorted(entries.names))
        raise InputError(f"Expected a path, or one of {schemes}, got {quoted(scheme)}://.")
    # The order of installed packages must not decide where questions and releases go.
    if len(values) > 1:
        raise InputError(
            f"Several packages register {scheme}://: {', '.join(sorted(values))}; remove all but one."
        )
    courier = entries[scheme].load()
    if not (isinstance(courier, type) and issubclass(courier, Courier)):
        raise InputError(f"Expected the entry point {scheme} of {COURIERS} to be a Courier class.")
    return courier


__all__ = [
    "Courier",
    "PollingCourier",
    "check_key",
    "check_prefix",
    "check_size",
    "is_segment",
    "open_courier",
]
