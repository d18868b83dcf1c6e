"""Files that users name or counterparts wrote: type and size are checked before a byte is read.

A device has no end and a pipe may never begin; neither is ever opened here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from privada.exceptions import InputError, PrivadaError

LARGEST_TEXT = 1 << 24  # a study, an owner's file, a card, a receipt
LARGEST_TABLE = 1 << 28  # public rows beside a study
LARGEST_DATA = 1 << 33  # local copies of public benchmarks
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")  # Windows has none

Named = str | os.PathLike[str]
Kind = type[PrivadaError]


def plain_file(path: Named, *, largest: int, error: Kind = InputError) -> Path:
    """The path, if there is a plain file of at most ``largest`` bytes; else an error in one sentence."""
    file = Path(path)
    try:
        found = file.stat()
    except (OSError, ValueError) as fault:
        raise error(_cannot(file.name, fault)) from None
    _check(file.name, found, largest=largest, error=error)
    return file


def read_bytes(path: Named, *, largest: int, error: Kind = InputError) -> bytes:
    """All bytes of a plain file, at most ``largest``; else an error in one sentence."""
    file = plain_file(path, largest=largest, error=error)
    try:
        with os.fdopen(os.open(file, _OPEN), "rb") as stream:
            found = os.fstat(stream.fileno())  # what is opened may be another file than a moment ago
            _check(file.name, found, largest=largest, error=error)
            blob = stream.read(largest + 1)
    except OSError as fault:
        raise error(_cannot(file.name, fault)) from None
    if len(blob) > largest:
        raise error(f"{file.name} is larger than {largest} bytes.")
    return blob


def read_below(root: Named, parts: Sequence[str], *, largest: int, error: Kind = InputError) -> bytes | None:
    """All bytes of a plain file below a folder, reached without a link; None if there is none.

    The folder may be shared with others, who could put a link there that leads elsewhere.
    """
    try:
        with os.fdopen(_open_below(root, parts), "rb") as stream:
            _check(parts[-1], os.fstat(stream.fileno()), largest=largest, error=error)
            blob = stream.read(largest + 1)
    except FileNotFoundError:
        return None
    except OSError as fault:
        if fault.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR):
            raise error(f"Cannot read {parts[-1]}: a link, or a folder, is in the way.") from None
        raise error(_cannot(parts[-1], fault)) from None
    if len(blob) > largest:
        raise error(f"{parts[-1]} is larger than {largest} bytes.")
    return blob


def _open_below(root: Named, parts: Sequence[str]) -> int:
    """Open a file by handles of the folders above it, none of them a link."""
    if not _HANDLES:
        return _open_by_path(Path(root), parts)
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
            inner = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = inner
        return os.open(parts[-1], _OPEN | os.O_NOFOLLOW, dir_fd=handle)
    finally:
        os.close(handle)


def _open_by_path(root: Path, parts: Sequence[str]) -> int:
    """The same where the system has no handles of folders."""
    for at in range(1, len(parts) + 1):
        if root.joinpath(*parts[:at]).is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return os.open(root.joinpath(*parts), _OPEN)


def read_text(path: Named, *, largest: int = LARGEST_TEXT, error: Kind = InputError) -> str:
    """All text of a plain file in UTF-8; line ends become line feeds as in Python's own text files."""
    try:
        text = read_bytes(path, largest=largest, error=error).decode("utf-8")
    except UnicodeDecodeError:
        raise error(f"Cannot read {Path(path).name}: it is not text in UTF-8.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _check(name: str, found: os.stat_result, *, largest: int, error: Kind) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise error(f"Cannot read {name}: it is not a plain file, but {_what(found.st_mode)}.")
    if found.st_size > largest:
        raise error(f"{name} is larger than {largest} bytes.")


def _what(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _cannot(name: str, fault: Exception) -> str:
    why = getattr(fault, "strerror", None) or "its name is none"
    return f"Cannot read {name}: {why}."


__all__ = [
    "LARGEST_DATA",
    "LARGEST_TABLE",
    "LARGEST_TEXT",
    "plain_file",
    "read_below",
    "read_bytes",
    "read_text",
]
