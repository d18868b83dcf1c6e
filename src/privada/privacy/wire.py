"""Files that parties exchange: their form, and how to write them safely.

**Form.** Safetensors with one JSON header; never pickle, never code. A file that is truncated, oversized, of
another kind, or that does not match its digest raises `WireError`; nothing in it is executed. `peek` reads
the header and computes the digest without making an array, so that a file can be refused early.

**Writing.** Users who do not trust each other share an exchange folder: what one of them puts there may be
replaced by a link before the other writes. So folders are entered one by one by handles, and a file is made,
synced and renamed relative to the handle of its folder. A file is written completely or not at all.

A process that is killed leaves the hidden file that it was writing. The name of that file says whose it is,
and it is locked while its process lives. So the next process of the same user on the same machine can tell
it from a file that is being written, and remove it (`remove_leftovers`).
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import io
import json
import math
import os
import platform
import re
import secrets
import stat
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from privada import _files
from privada._text import quoted
from privada.exceptions import InputError, WireError

FORMAT = 1
LARGEST_FILE = 1 << 28
LARGEST_HEADER = 1 << 22
LARGEST_NUMBER = 100  # digits of a whole number in a header
LARGEST_TREE = 500_000  # values in a header
DEEPEST_TREE = 64  # lists and objects within each other
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
DTYPES = frozenset(_DTYPES)
_BLOCK = 1 << 20

_HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")  # Windows has none
_LOCKS = importlib.util.find_spec("fcntl") is not None  # Windows has none
_DRAFT = re.compile(r"\.(?:([0-9a-f]{16})-)?[0-9a-f]{24}\.partial")  # without a mark, of an earlier version
_ABANDONED = 24 * 3600  # seconds after which nobody writes a file of at most some megabytes any more
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}

Arrays = Mapping[str, npt.NDArray[Any]]


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces, in ASCII, without NaN: what is hashed and signed, everywhere.

    >>> canonical({"b": 0.1, "a": [1, None]})
    b'{"a":[1,null],"b":0.1}'
    """
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain_number
        ).encode("ascii")
    except (TypeError, ValueError) as error:
        raise InputError(f"This has no plain JSON form: {error}.") from None


def _plain_number(value: Any) -> Any:
    """NumPy scalars are numbers too."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not plain")


def digest(header: Mapping[str, Any], arrays: Arrays) -> str:
    """SHA-256 over the header and every array's name, type, shape and bytes."""
    total = hashlib.sha256(canonical(header))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(canonical([name, array.dtype.str, list(array.shape)]))
        total.update(array.tobytes())
    return total.hexdigest()


def pack(kind: str, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Write header and arrays as safetensors bytes."""
    from safetensors.numpy import save

    text = canonical({"format": FORMAT, "kind": kind, "header": header}).decode()
    solid = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return bytes(save(solid, metadata={"privada": text}))


def unpack(blob: bytes, *, kind: str, largest: int = LARGEST_FILE) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read header and arrays back, or raise `WireError`."""
    _check_size(len(blob), largest)
    _, envelope, _ = _outer(io.BytesIO(blob), len(blob))
    return _header(envelope, kind), _arrays(blob)


@dataclass(frozen=True, kw_only=True)
class Peeked:
    """What a file says of itself before its arrays are made: header, digest and size in bytes."""

    header: Mapping[str, Any]
    digest: str
    size: int


def peek(source: bytes | str | os.PathLike[str], *, kind: str, largest: int = LARGEST_FILE) -> Peeked:
    """Read the header of a file, given as bytes or by its path, and the digest of all that is in it.

    The digest is the one that `digest` gives for what `unpack` would return; the arrays' bytes are
    hashed as they stand. Sizes, nesting and numbers are limited before anything is made of them.
    """
    if isinstance(source, bytes):
        _check_size(len(source), largest)
        return _peeked(io.BytesIO(source), len(source), kind)
    file = Path(source)
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise WireError(f"Cannot read {file.name}: it is not a plain file.")
            _check_size(found.st_size, largest)
            return _peeked(stream, found.st_size, kind)
    except OSError as error:
        raise WireError(f"Cannot read {file.name}: {error.strerror}.") from None


def _check_size(size: int, largest: int) -> None:
    if size > largest:
        raise WireError(f"The file has {size} bytes; at most {largest} are read.")


def _peeked(stream: IO[bytes], size: int, kind: str) -> Peeked:
    length, envelope, specs = _outer(stream, size)
    header = _header(envelope, kind)
    try:
        total = hashlib.sha256(canonical(header))
    except InputError:
        raise WireError("The file's header holds a number that is not finite.") from None
    left = size - 8 - length
    for name in sorted(specs):
        kind_of_array, shape, start, end = _place(specs[name], size - 8 - length)
        total.update(canonical([name, kind_of_array, shape]))
        left -= end - start
        if left < 0:
            break
        for block in _blocks(stream, 8 + length + start, end - start):
            total.update(block)
    if left:
        raise WireError("The file's arrays are truncated or forged.")
    return Peeked(header=header, digest=total.hexdigest(), size=size)


def _place(spec: Mapping[str, Any], most: int) -> tuple[str, list[int], int, int]:
    """Type, shape, start and end of an array's bytes."""
    kind = _DTYPES[spec["dtype"]]
    shape, ends = _whole_numbers(spec.get("shape")), _whole_numbers(spec.get("data_offsets"))
    if len(ends) != 2 or ends[1] > most or ends[1] - ends[0] != math.prod(shape) * np.dtype(kind).itemsize:
        raise WireError("The file's arrays are truncated or forged.")
    return kind, shape, ends[0], ends[1]


def _whole_numbers(given: Any) -> list[int]:
    """A short list of whole numbers that a file can have, or a `WireError`."""
    if isinstance(given, list) and len(given) <= DEEPEST_TREE:
        found = [number for number in given if type(number) is int and 0 <= number <= LARGEST_FILE]
        if len(found) == len(given):
            return found
    raise WireError("The file's arrays are truncated or forged.")


def _blocks(stream: IO[bytes], start: int, length: int) -> Iterator[bytes]:
    """A stretch of a file, block by block."""
    stream.seek(start)
    while length:
        block = stream.read(min(length, _BLOCK))
        if not block:
            raise WireError("The file is truncated.")
        length -= len(block)
        yield block


def _outer(stream: IO[bytes], size: int) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Length of the outer header, our envelope in it, and what it says of the arrays."""
    try:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > min(LARGEST_HEADER, size - 8):
            raise WireError("The file is truncated, or its header is too long.")
        specs = _parsed(stream.read(length))
        text = specs.pop("__metadata__")["privada"]
        if any(spec.get("dtype") not in DTYPES for spec in specs.values()):
            raise WireError(f"The file holds an array type that is not read; read are {sorted(DTYPES)}.")
        envelope = _parsed(text)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WireError("The file is truncated, or not a privada file.") from None
    if not isinstance(envelope, dict):
        raise WireError("The file is not a privada file.")
    return length, envelope, specs


def _header(envelope: Mapping[str, Any], kind: str) -> dict[str, Any]:
    if envelope.get("format") != FORMAT or envelope.get("kind") != kind:
        raise WireError(f"Expected a privada {kind} of format {FORMAT}; this file says otherwise.")
    header = envelope.get("header")
    if not isinstance(header, dict):
        raise WireError("The file's header is not an object.")
    return header


def _parsed(text: bytes | str) -> Any:
    """JSON without numbers too long to be meant, of limited size and nesting; else a `ValueError`."""
    made = json.loads(text, parse_int=_whole_number)
    level, values = [made], 0
    for _ in range(DEEPEST_TREE):
        values += len(level)
        if not level or values > LARGEST_TREE:
            break
        level = [each for part in level if isinstance(part, (dict, list)) for each in _within(part)]
    if level:
        raise ValueError
    return made


def _within(part: dict[str, Any] | list[Any]) -> Any:
    return part.values() if isinstance(part, dict) else part


def _whole_number(digits: str) -> int:
    if len(digits) > LARGEST_NUMBER:
        raise ValueError
    return int(digits)


def _arrays(blob: bytes) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays: dict[str, Any] = load(blob)
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError):
        raise WireError("The file's arrays are truncated or forged.") from None
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def read(path: str | os.PathLike[str], *, largest: int = LARGEST_FILE) -> bytes:
    """Bytes of a plain file, at most ``largest``: never of a pipe that waits or a device without end."""
    return _files.read_bytes(path, largest=largest, error=WireError)


def write(path: str | os.PathLike[str], blob: bytes, *, root: str | os.PathLike[str] | None = None) -> Path:
    """Write a file completely or not at all: to a temporary name, synced, then renamed.

    File and folders get the modes that the umask allows, so that the other party, as another user, can
    read them. Nothing is written through a link.

    Parameters
    ----------
    path : path
        The file; an existing plain file is replaced.
    blob : bytes
        All of it.
    root : path, optional
        A folder above ``path`` that is trusted: every folder below it is made or must be a real one.
        Without it only the folder of the file is looked at.

    Raises
    ------
    WireError
        There is a link, or something other than a folder, in the path; or the file exists and is not plain.
    OSError
        The system cannot write: the disk is full, the folder is not yours.
    """
    target = Path(path)
    top, parts = (target.parent, ()) if root is None else (Path(root), _below(target, Path(root)))
    with _entered(top, parts, follow=root is not None) as folder:
        _check_target(target, folder)
        _replace(target, blob, folder)
    return target


def create(path: str | os.PathLike[str], blob: bytes, *, root: str | os.PathLike[str]) -> bool:
    """Create a file below a trusted folder as `write` does; False if there is something, which stays.

    The file is linked to its name when it is complete and synced, so that of several writers one wins and
    readers never see a part of it. File systems without hard links, as on a memory stick, get the file
    under its own name from the beginning.
    """
    target = Path(path)
    with _entered(Path(root), _below(target, Path(root)), follow=True) as folder:
        name = _named(target, folder)
        with suppress(FileNotFoundError):
            os.lstat(name, dir_fd=folder)
            return False
        try:
            _link(target, blob, folder)
        except FileExistsError:
            return False
        if folder is not None:
            os.fsync(folder)
    return True


def probe(folder: str | os.PathLike[str], *, root: str | os.PathLike[str]) -> None:
    """Raise the system's error unless a file can be made now in a folder below a trusted one; none stays."""
    target = Path(folder) / "probe"
    with (
        _entered(Path(root), _below(target, Path(root)), follow=True) as handle,
        _empty_draft(target, handle) as (_, file),
    ):
        file.write(b"\n")
        file.flush()


def remove_leftovers(root: str | os.PathLike[str], parts: Sequence[str]) -> None:
    """Remove the hidden files that ended processes of this user left in a folder below ``root``.

    A file is removed if no process has it locked, and if it was this machine that wrote it, or nobody has
    written to it for a day. What other users wrote stays, and so does everything where there are no locks.
    """
    if not (_HANDLES and _LOCKS):
        return
    try:
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for part in parts:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        with os.scandir(handle) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_folder in found:
            if is_folder:
                remove_leftovers(root, [*parts, name])
            elif _DRAFT.fullmatch(name):
                with suppress(OSError):  # another process removes it, or it may not be removed
                    _remove_leftover(name, handle)
    except OSError:  # there is no such folder, or it is a link
        return
    finally:
        os.close(handle)


def _remove_leftover(name: str, folder: int) -> None:
    import fcntl

    draft = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        status, mark = os.fstat(draft), _DRAFT.fullmatch(name)
        is_old = time.time() - status.st_mtime > _ABANDONED
        is_ours = mark is not None and mark[1] == _mark_of_process()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or not (is_ours or is_old):
            return
        fcntl.flock(
            draft, fcntl.LOCK_EX | fcntl.LOCK_NB
        )  # an error while its process lives, or without locks
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(draft)


@cache
def _mark_of_process() -> str:
    """What the hidden files of this user on this machine have in their names."""
    machine = ""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text(encoding="ascii", errors="replace")
    user = os.geteuid() if hasattr(os, "geteuid") else os.environ.get("USERNAME", "")
    return hashlib.sha256(f"{machine}\n{platform.node()}\n{user}".encode()).hexdigest()[:16]


def plain_folder(root: str | os.PathLike[str], *parts: str) -> Path:
    """The folder ``parts`` below ``root``, made one by one; a link or a file in the way is a `WireError`."""
    if any(part in ("", ".", "..") or {"/", os.sep} & set(part) for part in parts):
        raise WireError(f"Expected names of folders, got {quoted('/'.join(parts))}.")
    with _entered(Path(root), parts, follow=True):
        return Path(root, *parts)


def _below(target: Path, root: Path) -> tuple[str, ...]:
    parts = target.relative_to(root).parts if target.is_relative_to(root) else ()
    if not parts or ".." in parts:
        raise WireError(f"Expected a path below {root.name}, got {quoted(str(target))}.")
    return parts[:-1]


@contextmanager
def _entered(top: Path, parts: Sequence[str], *, follow: bool) -> Iterator[int | None]:
    """A handle of a folder that was reached without a link, so that none can be put in its place later."""
    try:
        top.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise WireError(_in_the_way(top)) from None
    if not _HANDLES:
        _make_by_path(top, parts, follow=follow)
        yield None
        return
    handle = _enter(top, None, top, flags=0 if follow else os.O_NOFOLLOW)
    try:
        for at, part in enumerate(parts, start=1):
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=handle)
                os.fsync(handle)
            inner = _enter(part, handle, top.joinpath(*parts[:at]), flags=os.O_NOFOLLOW)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _enter(name: str | Path, handle: int | None, shown: Path, *, flags: int) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | flags, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise WireError(_in_the_way(shown)) from None
        raise


def _make_by_path(top: Path, parts: Sequence[str], *, follow: bool) -> None:
    """The same where the system has no handles of folders."""
    for at in range(0 if not follow else 1, len(parts) + 1):
        folder = top.joinpath(*parts[:at])
        with suppress(FileExistsError):
            folder.mkdir()
        if folder.is_symlink() or not folder.is_dir():
            raise WireError(_in_the_way(folder))


def _in_the_way(folder: Path) -> str:
    return f"{folder.name} is a link or a file where a folder should be; nothing was written."


def _check_target(target: Path, folder: int | None) -> None:
    """Refuse a name at which there is something other than a plain file."""
    try:
        found = os.lstat(_named(target, folder), dir_fd=folder)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise WireError(f"{target.name} is there and is not a plain file; nothing was written.")


def _replace(target: Path, blob: bytes, folder: int | None) -> None:
    with _draft(target, blob, folder) as name:
        os.replace(name, _named(target, folder), src_dir_fd=folder, dst_dir_fd=folder)
    if folder is not None:
        os.fsync(folder)


def _link(target: Path, blob: bytes, folder: int | None) -> None:
    """Give a complete file its name, unless the name is taken."""
    with _draft(target, blob, folder) as name:
        try:
            os.link(name, _named(target, folder), src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _write_new(_named(target, folder), blob, folder)


@contextmanager
def _draft(target: Path, blob: bytes, folder: int | None) -> Iterator[str]:
    """A complete, synced file beside the target; what is left of it at the end is removed."""
    with _empty_draft(target, folder) as (name, file):
        file.write(blob)
        file.flush()
        os.fsync(file.fileno())
        if not _LOCKS:
            file.close()  # or Windows does not rename it
        yield name


@contextmanager
def _empty_draft(target: Path, folder: int | None) -> Iterator[tuple[str, IO[bytes]]]:
    """A hidden file beside the target, locked for as long as it is there."""
    name, file = _open_draft(target, folder)
    while not _lock(name, file, folder):
        name, file = _open_draft(target, folder)
    with file:
        try:
            yield name, file
        finally:
            if not _LOCKS:
                file.close()  # or Windows does not remove it
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)


def _open_draft(target: Path, folder: int | None) -> tuple[str, IO[bytes]]:
    draft = target.with_name(f".{_mark_of_process()}-{secrets.token_hex(12)}.partial")
    name = _named(draft, folder)
    return name, os.fdopen(_open_new(name, folder), "wb")


def _lock(name: str, file: IO[bytes], folder: int | None) -> bool:
    """Lock a new file; False if another process took it for a leftover before that."""
    if not _LOCKS:
        return True
    import fcntl

    with suppress(OSError):  # a file system without locks, on which nothing is ever taken for a leftover
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        file.close()
        return False
    return True


def _open_new(name: str, folder: int | None) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.open(name, flags, 0o666, dir_fd=folder)


def _write_new(name: str, blob: bytes, folder: int | None) -> None:
    """Write a file that does not exist yet; it is removed if it cannot be completed."""
    handle = _open_new(name, folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        raise


def _named(path: Path, folder: int | None) -> str:
    """A path for calls that take a folder's handle: its last part, or all of it where there is none."""
    return str(path) if folder is None else path.name


__all__ = [
    "Arrays",
    "Peeked",
    "canonical",
    "create",
    "digest",
    "pack",
    "peek",
    "plain_folder",
    "probe",
    "read",
    "remove_leftovers",
    "unpack",
    "write",
]
