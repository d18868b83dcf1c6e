"""Files that parties exchange: their form, and how to write them safely.

**Form.** Safetensors with one JSON header; never pickle, never code. A file that is truncated, oversized, of
another kind, or that does not match its digest raises `WireError`; nothing in it is executed. `peek` reads
the header and computes the digest without making an array, so that a file can be refused early.

**Writing.** Users who do not trust each other share an exchange folder, and one of them may replace what is
there by a link before the other writes. So folders are entered one by one by handles, and a file is made,
synced and renamed relative to the handle of its folder. A file is written completely or not at all.

A process that is killed leaves the hidden file that it was writing. The file's name says whose it is, and it
is locked while its process lives, so that another process of the same user on the same machine can recognise
and remove it (`remove_leftovers`).
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
_FORGED = "The file's arrays are truncated or forged."

_HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")  # Windows has none
_LOCKS = importlib.util.find_spec("fcntl") is not None  # Windows has none
_DRAFT = re.compile(r"\.(?:([0-9a-f]{16})-)?[0-9a-f]{24}\.partial")  # without a mark, of an earlier version
_ABANDONED = 24 * 3600  # seconds after which nobody writes a file of at most some megabytes any more
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}

Arrays = Mapping[str, npt.NDArray[Any]]


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces, in ASCII, without NaN: the form that is hashed and signed.

    >>> canonical({"b": 0.1, "a": [1, None]})
    b'{"a":[1,null],"b":0.1}'
    """

    def plain_number(scalar: Any) -> Any:
        if isinstance(scalar, np.generic):
            return scalar.item()
        raise TypeError(f"a {type(scalar).__name__} is not plain")

    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain_number)
        return text.encode("ascii")
    except (TypeError, ValueError) as error:
        raise InputError(f"This has no plain JSON form: {error}.") from None


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
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return bytes(save(contiguous, metadata={"privada": text}))


def unpack(blob: bytes, *, kind: str, largest: int = LARGEST_FILE) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read header and arrays back, or raise `WireError`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    header, _, _ = _read_header(io.BytesIO(blob), len(blob), kind=kind, largest=largest)
    try:
        arrays: dict[str, Any] = load(blob)
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError):
        raise WireError(_FORGED) from None
    for array in arrays.values():
        array.flags.writeable = False
    return header, arrays


@dataclass(frozen=True, kw_only=True)
class Peeked:
    """Header, digest and size in bytes of a file, read before its arrays are made."""

    header: Mapping[str, Any]
    digest: str
    size: int


def peek(source: bytes | str | os.PathLike[str], *, kind: str, largest: int = LARGEST_FILE) -> Peeked:
    """Read the header of a file, given as bytes or by its path, and the digest of all that is in it.

    The digest is the one that `digest` gives for what `unpack` would return. Sizes, nesting and numbers are
    limited before anything is made of them.
    """
    if isinstance(source, bytes):
        return _peek_stream(io.BytesIO(source), len(source), kind=kind, largest=largest)
    file = Path(source)
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise WireError(f"Cannot read {file.name}: it is not a plain file.")
            return _peek_stream(stream, status.st_size, kind=kind, largest=largest)
    except OSError as error:
        raise WireError(f"Cannot read {file.name}: {error.strerror}.") from None


def _peek_stream(stream: IO[bytes], size: int, *, kind: str, largest: int) -> Peeked:
    header, specs, start = _read_header(stream, size, kind=kind, largest=largest)
    try:
        total = hashlib.sha256(canonical(header))
    except InputError:
        raise WireError("The file's header holds a number that is not finite.") from None
    # The arrays must fill the file exactly: bytes that overlap or that no array has would escape the digest.
    remaining = size - start
    for name in sorted(specs):
        dtype = _DTYPES[specs[name]["dtype"]]
        shape, ends = (_read_whole_numbers(specs[name].get(key)) for key in ("shape", "data_offsets"))
        length = math.prod(shape) * np.dtype(dtype).itemsize
        if len(ends) != 2 or ends[1] > size - start or ends[1] - ends[0] != length:
            raise WireError(_FORGED)
        total.update(canonical([name, dtype, shape]))
        remaining -= length
        if remaining < 0:
            break
        stream.seek(start + ends[0])
        while length:
            block = stream.read(min(length, _BLOCK))
            if not block:
                raise WireError("The file is truncated.")
            total.update(block)
            length -= len(block)
    if remaining:
        raise WireError(_FORGED)
    return Peeked(header=header, digest=total.hexdigest(), size=size)


def _read_whole_numbers(numbers: Any) -> list[int]:
    """A short list of whole numbers that a file can have, or a `WireError`."""
    if not isinstance(numbers, list) or len(numbers) > DEEPEST_TREE:
        raise WireError(_FORGED)
    if not all(type(number) is int and 0 <= number <= LARGEST_FILE for number in numbers):
        raise WireError(_FORGED)
    return numbers


def _read_header(
    stream: IO[bytes], size: int, *, kind: str, largest: int
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Our header, what the safetensors header says about each array, and where their bytes begin."""
    if size > largest:
        raise WireError(f"The file has {size} bytes; at most {largest} are read.")
    try:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > min(LARGEST_HEADER, size - 8):
            raise WireError("The file is truncated, or not a privada file: its header is too long.")
        specs = _parse_json(stream.read(length))
        text = specs.pop("__metadata__")["privada"]
        if any(spec.get("dtype") not in DTYPES for spec in specs.values()):
            raise WireError(f"The file holds an array type that is not read; read are {sorted(DTYPES)}.")
        envelope = _parse_json(text)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WireError("The file is truncated, or not a privada file.") from None
    if not isinstance(envelope, dict):
        raise WireError("The file is not a privada file.")
    if envelope.get("format") != FORMAT or envelope.get("kind") != kind:
        raise WireError(f"Expected a privada {kind} of format {FORMAT}; this file says otherwise.")
    header = envelope.get("header")
    if not isinstance(header, dict):
        raise WireError("The file's header is not an object.")
    return header, specs, 8 + length


def _parse_json(text: bytes | str) -> Any:
    """Parse JSON; `ValueError` if its numbers, size or nesting are beyond what a header needs."""

    def parse_int(digits: str) -> int:
        if len(digits) > LARGEST_NUMBER:
            raise ValueError
        return int(digits)

    value = json.loads(text, parse_int=parse_int)
    # Count level by level: a recursion over a hostile tree could exhaust the stack.
    level, count = [value], 0
    for _ in range(DEEPEST_TREE):
        count += len(level)
        if not level or count > LARGEST_TREE:
            break
        level = [
            child
            for parent in level
            if isinstance(parent, (dict, list))
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
    if level:
        raise ValueError
    return value


def read(path: str | os.PathLike[str], *, largest: int = LARGEST_FILE) -> bytes:
    """Bytes of a plain file, at most ``largest``; never those of a pipe that waits or an endless device."""
    return _files.read_bytes(path, largest=largest, error=WireError)


def write(path: str | os.PathLike[str], blob: bytes, *, root: str | os.PathLike[str] | None = None) -> Path:
    """Write a file completely or not at all: to a temporary name, synced, then renamed.

    An existing plain file is replaced. Nothing is written through a link: folders below ``root`` (or, without
    it, the file's own folder) are made, or must be real folders, else a `WireError` is raised. File and
    folders get the modes that the umask allows, so that the other party, as another user, can read them.
    """
    target = Path(path)
    top, parts = (target.parent, ()) if root is None else (Path(root), _list_folders(target, Path(root)))
    with _open_folder(top, parts, follow=root is not None) as folder:
        name = _name_in(target, folder)
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode):
                raise WireError(f"{target.name} is there and is not a plain file; nothing was written.")
        with _draft(target, blob, folder) as draft:
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        if folder is not None:
            os.fsync(folder)  # or the rename may not survive a crash
    return target


def create(path: str | os.PathLike[str], blob: bytes, *, root: str | os.PathLike[str]) -> bool:
    """Create a file below a trusted folder as `write` does; if the name is taken, return False.

    The file is linked to its name when it is complete and synced, so that one of several writers wins and
    readers never see a part of it.
    """
    target = Path(path)
    with _open_folder(Path(root), _list_folders(target, Path(root)), follow=True) as folder:
        name = _name_in(target, folder)
        with suppress(FileNotFoundError):
            os.lstat(name, dir_fd=folder)
            return False
        try:
            with _draft(target, blob, folder) as draft:
                try:
                    os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                    # No hard links, as on a memory stick: readers may see a part of the file.
                    _write_new(name, blob, folder)
        except FileExistsError:
            return False
        if folder is not None:
            os.fsync(folder)
    return True


def probe(folder: str | os.PathLike[str], *, root: str | os.PathLike[str]) -> None:
    """Raise the system's error unless a file can be made now in a folder below a trusted one; none stays."""
    target = Path(folder) / "probe"
    with (
        _open_folder(Path(root), _list_folders(target, Path(root)), follow=True) as handle,
        _empty_draft(target, handle) as (_, file),
    ):
        file.write(b"\n")
        file.flush()


def remove_leftovers(root: str | os.PathLike[str], parts: Sequence[str]) -> None:
    """Remove the hidden files that ended processes of this user left in a folder below ``root``.

    A file is removed if no process has it locked, and if this machine wrote it, or nobody has written to it
    for a day. Files of other users stay, and so does everything on systems without locks.
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
        with os.scandir(handle) as scan:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan]
        for name, is_folder in entries:
            if is_folder:
                remove_leftovers(root, [*parts, name])
            elif _DRAFT.fullmatch(name):
                with suppress(OSError):  # another process removes it, or it may not be removed
                    _remove_leftover(name, handle)
    except OSError:  # the folder does not exist, or is a link
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
        # Locking fails while the writer lives, and where there are no locks.
        fcntl.flock(draft, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(draft)


@cache
def _mark_of_process() -> str:
    """The part of a hidden file's name that tells this user on this machine from others."""
    machine = ""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text(encoding="ascii", errors="replace")
    user = os.geteuid() if hasattr(os, "geteuid") else os.environ.get("USERNAME", "")
    return hashlib.sha256(f"{machine}\n{platform.node()}\n{user}".encode()).hexdigest()[:16]


def _list_folders(target: Path, root: Path) -> tuple[str, ...]:
    """Names of the folders between a root and a file below it."""
    parts = target.relative_to(root).parts if target.is_relative_to(root) else ()
    if not parts or ".." in parts:
        raise WireError(f"Expected a path below {root.name}, got {quoted(str(target))}.")
    return parts[:-1]


@contextmanager
def _open_folder(top: Path, parts: Sequence[str], *, follow: bool) -> Iterator[int | None]:
    """A handle of a folder that was reached without a link, so that none can be put in its place later.

    Systems without handles of folders get None, after the same checks path by path.
    """
    try:
        top.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise WireError(_in_the_way(top)) from None
    if not _HANDLES:
        for depth in range(1 if follow else 0, len(parts) + 1):
            folder = top.joinpath(*parts[:depth])
            with suppress(FileExistsError):
                folder.mkdir()
            if folder.is_symlink() or not folder.is_dir():
                raise WireError(_in_the_way(folder))
        yield None
        return
    handle = _enter(top, None, top, flags=0 if follow else os.O_NOFOLLOW)
    try:
        for depth, part in enumerate(parts, start=1):
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=handle)
                os.fsync(handle)
            inner = _enter(part, handle, top.joinpath(*parts[:depth]), flags=os.O_NOFOLLOW)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _enter(name: str | Path, handle: int | None, folder: Path, *, flags: int) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | flags, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise WireError(_in_the_way(folder)) from None
        raise


def _in_the_way(folder: Path) -> str:
    return f"{folder.name} is a link or a file where a folder should be; nothing was written."


@contextmanager
def _draft(target: Path, blob: bytes, folder: int | None) -> Iterator[str]:
    """A complete, synced file beside the target; if it still exists at the end, it is removed."""
    with _empty_draft(target, folder) as (name, file):
        file.write(blob)
        file.flush()
        os.fsync(file.fileno())
        if not _LOCKS:
            file.close()  # or Windows does not rename it
        yield name


@contextmanager
def _empty_draft(target: Path, folder: int | None) -> Iterator[tuple[str, IO[bytes]]]:
    """A hidden file beside the target, locked for as long as it exists."""
    while True:
        draft = target.with_name(f".{_mark_of_process()}-{secrets.token_hex(12)}.partial")
        name = _name_in(draft, folder)
        file = os.fdopen(_open_new(name, folder), "wb")
        if not _LOCKS:
            break
        import fcntl

        with suppress(OSError):  # a file system without locks, on which nothing is ever taken for a leftover
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        # Before it was locked, another process may have removed the file as a leftover: then start again.
        try:
            os.lstat(name, dir_fd=folder)
            break
        except FileNotFoundError:
            file.close()
    with file:
        try:
            yield name, file
        finally:
            if not _LOCKS:
                file.close()  # or Windows does not remove it
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)


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


def _name_in(path: Path, folder: int | None) -> str:
    """A path for calls that take a folder's handle: its last part, or all of it where there is none."""
    return str(path) if folder is None else path.name
