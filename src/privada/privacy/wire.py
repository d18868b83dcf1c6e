"""The file form: safetensors with one JSON header. Never pickle, never code.

A file that is truncated, oversized, of another kind or not what its digest
says raises one `WireError`; nothing of it is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _files
from privada.exceptions import WireError
from privada.privacy._write import plain_folder, write

FORMAT = 1
LARGEST_FILE = 1 << 28
LARGEST_HEADER = 1 << 22
DTYPES = frozenset({"F64", "F32", "I64", "I32", "U8", "BOOL"})

Arrays = Mapping[str, npt.NDArray[Any]]


def canonical(plain: Any) -> bytes:
    """One byte string per JSON value: sorted keys, no spaces, no NaN."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


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
    if len(blob) > largest:
        raise WireError(f"The file has {len(blob)} bytes; at most {largest} are read.")
    envelope = _envelope(blob)
    if envelope.get("format") != FORMAT or envelope.get("kind") != kind:
        raise WireError(f"Expected a privada {kind} of format {FORMAT}; this file says otherwise.")
    header = envelope.get("header")
    if not isinstance(header, dict):
        raise WireError("The file's header is not an object.")
    return header, _arrays(blob)


def _envelope(blob: bytes) -> dict[str, Any]:
    try:
        (length,) = struct.unpack("<Q", blob[:8])
        if length > min(LARGEST_HEADER, len(blob) - 8):
            raise WireError("The file is truncated, or its header is too long.")
        outer = json.loads(blob[8 : 8 + length])
        if any(spec.get("dtype") not in DTYPES for name, spec in outer.items() if name != "__metadata__"):
            raise WireError(f"The file holds an array type that is not read; read are {sorted(DTYPES)}.")
        envelope = json.loads(outer["__metadata__"]["privada"])
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WireError("The file is truncated, or not a privada file.") from None
    if not isinstance(envelope, dict):
        raise WireError("The file is not a privada file.")
    return envelope


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


__all__ = ["Arrays", "canonical", "digest", "pack", "plain_folder", "read", "unpack", "write"]
