"""Put signed items where readers look for them, and find them among what others may have put there.

Each key is written once, and whoever may write to the exchange may write there first. So where something
else is in the way, an item goes to a successor: ``NAME.1.release``, ``NAME.2.release`` and so on. Readers
take the first that is validly signed by the party they expect; everything else is named in the log and
passed over. The same holds for an item of one's own of which only a part exists, or whose payload was
damaged: the same again goes to its successor.

A payload that is too large for one item is sent in parts, with memory for one of them. The parts are written
first, then the envelope that lists their digests. Their keys follow from the payload's digest, so that a
sender that was interrupted continues where it stopped. Where other bytes are in the way, all parts are
written to another place.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeVar

from privada.exceptions import CourierError, PrivadaError, WireError
from privada.exchange.courier import Courier
from privada.exchange.envelope import MOST_PARTS, Envelope
from privada.exchange.folder import FolderCourier
from privada.exchange.sealing import is_sealed
from privada.privacy import wire
from privada.privacy.keys import SigningKey
from privada.privacy.release import Question, Release

T = TypeVar("T")

LOG = logging.getLogger("privada.exchange")
MOST_SUCCESSORS = 8
MOST_PLACES = 8  # of parts, that are tried where other bytes are in the way
LARGEST_PART = 1 << 20
_PART_DIGITS = 40  # of a digest in the key of a part
_FOLDERS = {
    "question": "questions",
    "withdrawal": "questions",
    "release": "releases",
    "disclosure": "releases",
    "refusal": "refusals",
    "failure": "refusals",
}
_ENDINGS = {"disclosure": "release", "failure": "refusal"}  # of kinds that are kept with another
_NAME = re.compile("[A-Za-z0-9_-]{1,100}")
_QUESTION = re.compile(r"([0-9a-f]{64})-([0-9a-f]{32})(?:\.[1-7])?\.question")
_ENVELOPE = b'{"format":'  # how an envelope begins; other files begin with the length of their header


@dataclass(frozen=True)
class SignedItem:
    """An item that is validly signed: its key, its envelope, and the bytes after that."""

    key: str
    envelope: Envelope
    rest: memoryview

    @property
    def statement(self) -> tuple[str, str, str, str, str]:
        """Its signer, its folder, and the question and envelope that it is about."""
        envelope = self.envelope
        folder = folder_of(envelope.kind, envelope.owner)
        return envelope.signer, folder, envelope.owner, envelope.question, envelope.asked


def check_owner(name: str) -> str:
    """Return an owner's name that can be a part of a key, or raise `WireError`."""
    if not _NAME.fullmatch(name):
        raise WireError(f"Expected an owner's name of letters, digits, - and _, got {name!r:.80}.")
    return name


def folder_of(kind: str, owner: str) -> str:
    """Return the folder of a kind of items: ``questions/NAME``, ``releases/NAME`` or ``refusals/NAME``."""
    return f"{_FOLDERS[kind]}/{check_owner(owner)}"


def key_of(kind: str, owner: str, question: str, asked: str = "") -> str:
    """Return the key of an item: by the question's digest, and for all but releases by its envelope."""
    name = f"{question}-{asked}" if asked else question
    return f"{folder_of(kind, owner)}/{name}.{_ENDINGS.get(kind, kind)}"


def parse_question_key(key: str) -> tuple[str, str] | None:
    """Return the digest and the identity that a question's key names; None if it is another key."""
    match = _QUESTION.fullmatch(key.rpartition("/")[2])
    return None if match is None or key.count("/") != 2 else (match[1], match[2])


def part_key(envelope: Envelope, number: int) -> str:
    """Return the key of one part."""
    return f"{envelope.place}.{number}"


def successors(key: str) -> Iterator[str]:
    """Yield the key, and those that are tried after it."""
    yield key
    name, _, ending = key.rpartition(".")
    for number in range(1, MOST_SUCCESSORS):
        yield f"{name}.{number}.{ending}"


def describe(envelope: Envelope, payload: IO[bytes], part_size: int) -> Envelope:
    """Return the envelope with size and digests of a payload and of its parts."""
    payload.seek(0)
    total, size = hashlib.sha256(), 0
    parts: list[str] = []
    while block := payload.read(part_size):
        part = hashlib.sha256(block)
        if parts:
            total.update(block)
        else:
            total = part.copy()  # one hash serves both: most payloads have one part
        parts.append(part.hexdigest())
        size += len(block)
        if len(parts) > MOST_PARTS:
            raise WireError(f"The payload has more than {MOST_PARTS} parts of {part_size} bytes.")
    return replace(envelope, size=size, sha256=total.hexdigest(), part_size=part_size, parts=tuple(parts))


def send_parts(courier: Courier, folder: str, envelope: Envelope, payload: IO[bytes]) -> Envelope:
    """Write the parts of a described payload below a folder; the envelope that is returned says where."""
    for place in range(MOST_PLACES):
        placed = replace(envelope, place=f"{folder}/parts/{envelope.sha256[:_PART_DIGITS]}.{place}")
        payload.seek(0)
        if all(
            _put_part(courier, part_key(placed, number), payload.read(envelope.part_size))
            for number in range(len(envelope.parts))
        ):
            return placed
    raise WireError(f"Other bytes are in the way of the parts below {folder}.")


def _put_part(courier: Courier, key: str, block: bytes) -> bool:
    """Write one part; return whether these bytes are there now."""
    if courier.put(key, block):
        return True
    try:
        return courier.get(key, largest=len(block)) == block
    except WireError:  # larger than this part
        return False


def receive(
    courier: Courier, folder: str, envelope: Envelope, rest: bytes | memoryview, into: IO[bytes]
) -> None:
    """Write an envelope's payload into a file, checked part by part; ``rest`` follows the envelope."""
    total, size = hashlib.sha256(), 0
    for block in _fetch_parts(courier, folder, envelope) if envelope.parts else (rest,):
        total.update(block)
        size += len(block)
        into.write(block)
        del block  # before the next one comes
    if (size, total.hexdigest()) != (envelope.size, envelope.sha256):
        raise WireError("The payload is not what its envelope says.")


def _fetch_parts(courier: Courier, folder: str, envelope: Envelope) -> Iterator[bytes]:
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
    """Return an envelope's payload; one that says that it is larger is refused before it is fetched."""
    if envelope.size > largest:
        raise WireError(f"The payload has {envelope.size} bytes; at most {largest} are read.")
    into = io.BytesIO()
    receive(courier, folder, envelope, rest, into)
    return into.getvalue()


def post(courier: Courier, envelope: Envelope, payload: bytes | IO[bytes], signer: SigningKey | None) -> str:
    """Sign and put an item, in parts if it is large, and return its key; an equal one that exists stays.

    Raises `WireError` if something else is at the key and at all its successors.
    """
    stream = io.BytesIO(payload) if isinstance(payload, bytes) else payload
    largest = min(courier.largest, LARGEST_PART)
    described = describe(envelope, stream, largest)
    item = None
    if len(described.parts) <= 1:
        stream.seek(0)
        line = replace(described, part_size=0, parts=()).sign(signer).to_bytes()
        item = line + stream.read() if len(line) + described.size <= largest else None
    if item is None:
        placed = send_parts(courier, folder_of(described.kind, described.owner), described, stream)
        item = placed.sign(signer).to_bytes()
    envelope_id = described.identity if described.kind == "question" else described.asked
    first = key_of(described.kind, described.owner, described.question, envelope_id)
    for key in successors(first):
        if courier.put(key, item) or _is_delivered(courier, key, described):
            return key
    raise WireError(f"Other items are in the way of {first}.")


def _is_delivered(courier: Courier, key: str, envelope: Envelope) -> bool:
    """Whether the same party put the same there before, and all of it can still be read."""
    try:
        item = courier.get(key)
        if item is None:
            return False
        other, rest = Envelope.split(item)
        if not other.is_same(envelope):
            return False
        _check_payload(courier, other, rest)
        return True
    except CourierError:
        raise
    except PrivadaError as error:
        LOG.warning("%s is in the way: %s", key, error)
        return False


def _check_payload(courier: Courier, envelope: Envelope, rest: memoryview) -> None:
    """Raise `WireError` unless size and digest of the payload are those that the envelope says."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device, not a path of the exchange
        receive(courier, folder_of(envelope.kind, envelope.owner), envelope, rest, nowhere)


def warn(key: str, error: PrivadaError) -> None:
    """Name an item that is passed over in the log."""
    LOG.warning("%s is passed over: %s", key, error)


def find_all(
    courier: Courier,
    key: str,
    read: Callable[[SignedItem], T],
    pass_over: Callable[[str, PrivadaError], None] = warn,
) -> Iterator[T]:
    """Yield what ``read`` returns for the validly signed items at a key and its successors.

    An item that is not signed, or that ``read`` raises an error for, is handed to ``pass_over``.
    """
    for place in successors(key):
        try:
            item = courier.get(place)
            if item is None:
                return
            value = read(SignedItem(place, *Envelope.split(item)))
        except CourierError:
            raise
        except PrivadaError as error:
            pass_over(place, error)
        else:
            yield value


def has_written(courier: Courier, signer: str, kind: str, owner: str, question: str, asked: str = "") -> bool:
    """Whether the party of a key put such an item; what others put or moved there does not count."""
    statement = (signer, folder_of(kind, owner), owner, question, asked)
    key = key_of(kind, owner, question, asked)
    return any(find_all(courier, key, lambda item: item.statement == statement))


def find_delivered(
    courier: Courier, signer: str, kind: str, owner: str, question: str, asked: str = ""
) -> tuple[str, ...] | None:
    """Return the keys of an item of a party and of its parts, if all of it can be read; else None."""
    statement = (signer, folder_of(kind, owner), owner, question, asked)

    def check(item: SignedItem) -> tuple[str, ...]:
        if item.statement != statement:
            return ()
        _check_payload(courier, item.envelope, item.rest)
        parts = (part_key(item.envelope, number) for number in range(len(item.envelope.parts)))
        return (item.key, *parts)

    return next(filter(None, find_all(courier, key_of(kind, owner, question, asked), check)), None)


def load_question(path: Path) -> Question:
    """Read the question in a file; if it came in an envelope, the signature is checked."""
    blob = read_payload(path)
    if is_sealed(blob):
        raise WireError(f"The question in {path.name} is sealed: only the owner that it is for can read it.")
    return Question.from_bytes(blob)


def load_release(path: Path) -> Release:
    """Read the release in a file and check its signature."""
    return Release.from_bytes(read_payload(path))


def read_payload(path: Path) -> bytes:
    """Return the bytes of a file without the envelope that they may have come in.

    A payload that was sent in parts is put together from the exchange folder that the file is in.
    """
    blob = wire.read(path)
    if not blob.startswith(_ENVELOPE):
        return blob
    envelope, rest = Envelope.split(blob)
    folder = path.resolve().parent
    courier = FolderCourier(folder.parent.parent)
    prefix = f"{folder.parent.name}/{folder.name}"
    return receive_bytes(courier, prefix, envelope, rest, largest=wire.LARGEST_FILE)


__all__ = [
    "LOG", "MOST_SUCCESSORS", "SignedItem", "check_owner", "find_all", "find_delivered", "folder_of",
    "has_written", "key_of", "load_question", "load_release", "parse_question_key", "post", "read_payload",
    "receive", "receive_bytes", "successors", "warn",
]  # fmt: skip
