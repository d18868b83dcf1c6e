"""A folder that both parties can write to: a shared drive, or a memory stick between two networks.

Each item is a file; a key's segments are folders. Whoever can write to the folder may put links, pipes or
parts of files there. So nothing is written or read through a link, and whatever is not a plain file of an
allowed size is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from privada import _files
from privada._text import quoted
from privada.exceptions import CourierError, InputError, WireError
from privada.exchange.courier import (
    MOST_SEGMENTS,
    PollingCourier,
    check_key,
    check_prefix,
    check_size,
    is_segment,
)
from privada.privacy import wire


class FolderCourier(PollingCourier):
    """Items as files below a folder, which is created when something is put into it.

    The folder's own path is trusted and may be a link.
    """

    shortest_pause = 0.005
    longest_pause = 0.5

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = Path(path)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Open a folder by its path, or by a URL such as ``file:///mnt/exchange``."""
        path = url
        if "://" in url:
            parts = urlsplit(url)
            if parts.netloc not in ("", "localhost") or not parts.path or parts.query:
                raise InputError(f"Expected file:///PATH, got {quoted(url)}.")
            path = unquote(parts.path)
        if not path or "\0" in path:
            raise InputError("Expected the path of a folder, got an empty or impossible one.")
        return cls(path)

    def put(self, key: str, blob: bytes) -> bool:
        check_size(check_key(key), len(blob), self.largest)
        try:
            return wire.create(self.path / key, blob, root=self.path)
        except OSError as error:
            raise CourierError(f"Cannot write {key} to {self.path.name}: {error.strerror}.") from None

    def get(self, key: str, *, largest: int | None = None) -> bytes | None:
        limit = self.largest if largest is None else largest
        return _files.read_below(self.path, check_key(key).split("/"), largest=limit, error=WireError)

    def check_writable(self, prefix: str) -> None:
        try:
            wire.probe(self.path / check_prefix(prefix), root=self.path)
        except OSError as error:
            raise CourierError(f"Cannot write to {self.path.name}/{prefix}: {error.strerror}.") from None

    def remove_leftovers(self, prefix: str) -> None:
        wire.remove_leftovers(self.path, check_prefix(prefix).split("/")[:-1])

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key, _ in self._entries(prefix))

    def stamps(self, prefix: str) -> dict[str, object]:
        stamps: dict[str, object] = {}
        for key, entry in self._entries(prefix):
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                stamps[key] = (status.st_size, status.st_mtime_ns)
        return stamps

    def _entries(self, prefix: str) -> list[tuple[str, os.DirEntry[str]]]:
        """The keys below a prefix and their files."""
        parts = check_prefix(prefix).split("/")[:-1]
        folder = self.path
        for part in parts:
            folder /= part
            if folder.is_symlink():
                raise WireError(f"{part} is a link where a folder should be; it is not followed.")
        try:
            return [*_list_files(folder, parts)]
        except OSError as error:
            raise CourierError(f"Cannot list {prefix or self.path.name}: {error.strerror}.") from None


def _list_files(folder: Path, parts: list[str]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The plain files below a folder by key; links, and names that no key can have, are passed over."""
    try:
        with os.scandir(folder) as entries:
            segments = [entry for entry in entries if is_segment(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in segments:
        inner = [*parts, entry.name]
        if entry.is_file(follow_symlinks=False):
            yield "/".join(inner), entry
        elif entry.is_dir(follow_symlinks=False) and len(inner) < MOST_SEGMENTS:
            yield from _list_files(folder / entry.name, inner)


__all__ = ["FolderCourier"]
