"""Items in the memory of one process, for tests, notebooks and several owners in one program."""

from __future__ import annotations

import threading
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from privada._text import quoted
from privada.exceptions import InputError, WireError
from privada.exchange.courier import Courier, check_key, check_prefix, check_size, is_segment


@dataclass
class _Place:
    """What couriers of one name share."""

    items: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)


_PLACES: dict[str, _Place] = {}
_OPENING = threading.Lock()


class LocalCourier(Courier):
    """Items in the memory of this process; any thread may use it.

    Couriers of one name share their items for as long as the process runs; one without a name shares nothing.
    """

    def __init__(self, name: str = "") -> None:
        with _OPENING:
            self._place = _PLACES.setdefault(name, _Place()) if name else _Place()

    @classmethod
    def from_url(cls, url: str) -> Self:
        parts = urlsplit(url)
        if not is_segment(parts.netloc) or parts.path or parts.query:
            raise InputError(f"Expected memory://NAME, got {quoted(url)}.")
        return cls(parts.netloc)

    def put(self, key: str, blob: bytes) -> bool:
        check_size(check_key(key), len(blob), self.largest)
        parts, place = key.split("/"), self._place
        above = ["/".join(parts[:end]) for end in range(1, len(parts))]
        with place.changed:
            if key in place.items:
                return False
            if key in place.folders or any(folder in place.items for folder in above):
                raise WireError(f"The key {key} is a folder of others, or below an item.")
            place.items[key] = bytes(blob)
            place.folders.update(above)
            place.changed.notify_all()
        return True

    def get(self, key: str, *, largest: int | None = None) -> bytes | None:
        with self._place.changed:
            blob = self._place.items.get(check_key(key))
        if blob is not None:
            check_size(key, len(blob), self.largest if largest is None else largest)
        return blob

    def keys(self, prefix: str) -> list[str]:
        check_prefix(prefix)
        with self._place.changed:
            return sorted(key for key in self._place.items if key.startswith(prefix))

    def stamps(self, prefix: str) -> dict[str, object]:
        with self._place.changed:
            return {key: hash(self._place.items[key]) for key in self.keys(prefix)}

    def check_writable(self, prefix: str) -> None:
        key = f"{check_prefix(prefix)}probe"
        if self.put(key, b"\n"):
            with self._place.changed:
                self._place.items.pop(key, None)

    def wait(self, prefix: str, *, known: Container[str], seconds: float) -> list[str]:
        def list_fresh() -> list[str]:
            return [key for key in self.keys(prefix) if key not in known]

        with self._place.changed:
            return self._place.changed.wait_for(list_fresh, timeout=max(seconds, 0))


__all__ = ["LocalCourier"]
