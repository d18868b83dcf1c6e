"""Read files that users name or other parties wrote; type and size are checked before a byte is read.

A device has no end, and a pipe may never begin: neither is read here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from privada.exceptions import InputError, PrivadaError

LARGEST_TEXT = 1 << 24  # a study, an owner's file, a card, a receipt
LARGEST_TABLE = 1 << 28  # public rows of a study
LARGEST_DATA = 1 << 33  # local copies of public benchmarks
# Without O_NONBLOCK, opening a pipe would wait until somebody writes into it
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_HAS_FOLDER_HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")  # not on Windows

Named = str | os.PathLike[str]
Kind = type[PrivadaError]


def plain_file(path: Named, *, largest: int, error: Kind = InputError) -> Path:
    """Return the path of a plain file of at most ``largest`` bytes, or raise an error of one sentence."""
    file = Path(path)
    try:
        status = file.stat()
    except (OSError, ValueError) as fault:
        raise error(_describe_fault(file.name, fault)) from None
    _check(file.name, status, largest=largest, error=error)
    return file


def read_bytes(path: Named, *, largest: int, error: Kind = InputError) -> bytes:
    """Read a plain file of at most ``largest`` bytes, or raise an error of one sentence."""
    file = plain_file(path, largest=largest, error=error)
    try:
        with os.fdopen(os.open(file, _OPEN), "rb") as stream:
            # The name may lead to another file than a moment ago, and a file may grow while it is read
            _check(file.name, os.fstat(stream.fileno()), largest=largest, error=error)
            blob = stream.read(largest + 1)
    except OSError as fault:
        raise error(_describe_fault(file.name, fault)) from None
    if len(blob) > largest:
        raise error(f"{file.name} is larger than {largest} bytes.")
    return blob


def read_below(root: Named, parts: Sequence[str], *, largest: int, error: Kind = InputError) -> bytes | None:
    """Read a plain file below a folder without following a link; None if there is no such file.

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
        raise error(_describe_fault(parts[-1], fault)) from None
    if len(blob) > largest:
        raise error(f"{parts[-1]} is larger than {largest} bytes.")
    return blob


def _open_below(root: Named, parts: Sequence[str]) -> int:
    """Open a file without following a link to it or to a folder above it."""
    if not _HAS_FOLDER_HANDLES:
        for depth in range(1, len(parts) + 1):
            if Path(root).joinpath(*parts[:depth]).is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return os.open(Path(root).joinpath(*parts), _OPEN)
    # Folder by folder, each by the handle of the one above: nobody can exchange one for a link meanwhile
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


def read_text(path: Named, *, largest: int = LARGEST_TEXT, error: Kind = InputError) -> str:
    """Read the text of a plain file in UTF-8; line ends become line feeds."""
    try:
        text = read_bytes(path, largest=largest, error=error).decode("utf-8")
    except UnicodeDecodeError:
        raise error(f"Cannot read {Path(path).name}: it is not text in UTF-8.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _check(name: str, status: os.stat_result, *, largest: int, error: Kind) -> None:
    if not stat.S_ISREG(status.st_mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(status.st_mode), "a device")
        raise error(f"Cannot read {name}: it is not a plain file, but {kind}.")
    if status.st_size > largest:
        raise error(f"{name} is larger than {largest} bytes.")


def _describe_fault(name: str, fault: Exception) -> str:
    reason = getattr(fault, "strerror", None) or "this is not a valid name"
    return f"Cannot read {name}: {reason}."


__all__ = [
    "LARGEST_DATA",
    "LARGEST_TABLE",
    "LARGEST_TEXT",
    "plain_file",
    "read_below",
    "read_bytes",
    "read_text",
]
