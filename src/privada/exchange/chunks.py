"""Payloads of any size over couriers whose items are small: in parts, with memory for one of them.

The parts are written first, then the envelope that lists their digests. Their keys follow from the
payload's digest, so that a sender that was interrupted goes on where it was. Where somebody else's bytes
are in the way, all parts are written to another place.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import replace
from typing import IO

from privada.exceptions import WireError
from privada.exchange.courier import Courier
from privada.exchange.envelope import MOST_PARTS, Envelope

MOST_PLACES = 8  # that are tried where other bytes are in the way
LARGEST_PART = 1 << 20
_DIGITS = 40  # of a digest in the key of a part


def describe(envelope: Envelope, payload: IO[bytes], part_size: int) -> Envelope:
    """The envelope with size and digests of a payload and of its parts."""
    payload.seek(0)
    whole, size = hashlib.sha256(), 0
    parts: list[str] = []
    while block := payload.read(part_size):
        part = hashlib.sha256(block)
        if parts:
            whole.update(block)
        else:
            whole = part.copy()  # one hash serves both: most payloads have one part
        parts.append(part.hexdigest())
        size += len(block)
        if len(parts) > MOST_PARTS:
            raise WireError(f"The payload has more than {MOST_PARTS} parts of {part_size} bytes.")
    return replace(envelope, size=size, sha256=whole.hexdigest(), part_size=part_size, parts=tuple(parts))


def send_parts(courier: Courier, folder: str, envelope: Envelope, payload: IO[bytes]) -> Envelope:
    """Write the parts of a described payload below a folder; the envelope then says where they are.

    Raises
    ------
    WireError
        Other bytes are in the way at every place that was tried.
    """
    for place in range(MOST_PLACES):
        placed = replace(envelope, place=f"{folder}/parts/{envelope.sha256[:_DIGITS]}.{place}")
        if all(_send_part(courier, key, block) for key, block in _blocks(placed, payload)):
            return placed
    raise WireError(f"Other bytes are in the way of the parts below {folder}.")


def _blocks(envelope: Envelope, payload: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    payload.seek(0)
    for number in range(len(envelope.parts)):
        yield part_key(envelope, number), payload.read(envelope.part_size)


def _send_part(courier: Courier, key: str, block: bytes) -> bool:
    """Write one part; whether these bytes are there now."""
    if courier.put(key, block):
        return True
    try:
        return courier.get(key, largest=len(block)) == block
    except WireError:  # larger than this part
        return False


def part_key(envelope: Envelope, number: int) -> str:
    """The key of one part."""
    return f"{envelope.place}.{number}"


def receive(
    courier: Courier, folder: str, envelope: Envelope, rest: bytes | memoryview, into: IO[bytes]
) -> None:
    """Write an envelope's payload into a file, checked part by part; ``rest`` follows the envelope.

    Raises
    ------
    WireError
        A part is missing, or is not what the envelope says.
    """
    whole, size = hashlib.sha256(), 0
    for block in _received(courier, folder, envelope) if envelope.parts else (rest,):
        whole.update(block)
        size += len(block)
        into.write(block)
        del block  # before the next one comes
    if (size, whole.hexdigest()) != (envelope.size, envelope.sha256):
        raise WireError("The payload is not what its envelope says.")


def _received(courier: Courier, folder: str, envelope: Envelope) -> Iterator[bytes]:
    if not envelope.place.startswith(f"{folder}/parts/"):
        raise WireError("The envelope's parts are in another folder.")
    if len(envelope.parts) * envelope.part_size >= envelope.size + envelope.part_size:
        raise WireError("The envelope has more parts than its payload needs.")
    for number, digest in enumerate(envelope.parts):
        key = part_key(envelope, number)
        block = courier.get(key, largest=envelope.part_size)
        if block is None:
            raise WireError(f"The part {key} is missing.")
        if hashlib.sha256(block).hexdigest() != digest:
            raise WireError(f"The part {key} is not what the envelope says.")
        yield block
        del block


def receive_bytes(
    courier: Courier, folder: str, envelope: Envelope, rest: bytes | memoryview, *, largest: int
) -> bytes:
    """An envelope's payload as bytes; one that says that it is larger is refused before it is fetched."""
    if envelope.size > largest:
        raise WireError(f"The payload has {envelope.size} bytes; at most {largest} are read.")
    into = io.BytesIO()
    receive(courier, folder, envelope, rest, into)
    return into.getvalue()


__all__ = ["LARGEST_PART", "describe", "part_key", "receive", "receive_bytes", "send_parts"]
