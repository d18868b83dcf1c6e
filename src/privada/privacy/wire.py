"""The file form: safetensors with one JSON header. Never pickle, never code.

A file that is truncated, oversized, of another kind or not what its digest
says raises one `WireError`; nothing of it is executed. `peek` reads the header
and works out the digest without making an array of anything, so that a file can
be refused before it is looked into.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from privada import _files
from privada.exceptions import InputError, WireError
from privada.privacy._write import plain_folder, write

FORMAT = 1
LARGEST_FILE = 1 << 28
LARGEST_HEADER = 1 << 22
LARGEST_NUMBER = 100  # digits of a whole number in a header
LARGEST_TREE = 500_000  # values in a header
DEEPEST_TREE = 64  # lists and objects within each other
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
DTYPES = frozenset(_DTYPES)
_BLOCK = 1 << 20

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


__all__ = [
    "Arrays",
    "Peeked",
    "canonical",
    "digest",
    "pack",
    "peek",
    "plain_folder",
    "read",
    "unpack",
    "write",
]
