"""Put signed items where readers look for them, and find them among what others may have put there.

Each key is written once, and whoever may write to the exchange may write there first. So where something
else is in the way, an item goes to a successor: ``NAME.1.release``, ``NAME.2.release`` and so on. Readers
take the first that is validly signed by the party they expect; everything else is named in the log and
passed over. So is an item of one's own of which only a part is there, or whose payload was damaged: the
same again goes to its successor.
"""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO, TypeVar

from privada.exceptions import CourierError, PrivadaError, WireError
from privada.exchange.chunks import LARGEST_PART, describe, part_key, receive, send_parts
from privada.exchange.courier import Courier
from privada.exchange.envelope import Envelope
from privada.privacy.keys import SigningKey

T = TypeVar("T")

LOG = logging.getLogger("privada.exchange")
MOST_SUCCESSORS = 8
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
_ASKED = re.compile(r"([0-9a-f]{64})-([0-9a-f]{32})(?:\.[1-7])?\.question")


@dataclass(frozen=True)
class Found:
    """An item that is validly signed: where it is, its envelope, and the bytes after that."""

    key: str
    envelope: Envelope
    rest: memoryview


def check_owner(name: str) -> str:
    """An owner's name as a part of a key, or a `WireError`."""
    if not _NAME.fullmatch(name):
        raise WireError(f"Expected an owner's name of letters, digits, - and _, got {name!r:.80}.")
    return name


def folder_of(kind: str, owner: str) -> str:
    """Where items of a kind are: ``questions/NAME``, ``releases/NAME`` or ``refusals/NAME``."""
    return f"{_FOLDERS[kind]}/{check_owner(owner)}"


def key_of(kind: str, owner: str, question: str, whose: str = "") -> str:
    """The key of an item: by the question's digest; all but releases also by who asks."""
    name = f"{question}-{whose}" if whose else question
    return f"{folder_of(kind, owner)}/{name}.{_ENDINGS.get(kind, kind)}"


def _key(envelope: Envelope) -> str:
    whose = envelope.identity if envelope.kind == "question" else envelope.asked
    return key_of(envelope.kind, envelope.owner, envelope.question, whose)


def parse_question_key(key: str) -> tuple[str, str] | None:
    """Digest and identity that a question's key names, None if it is another key."""
    named = _ASKED.fullmatch(key.rpartition("/")[2])
    return None if named is None or key.count("/") != 2 else (named[1], named[2])


def post(courier: Courier, envelope: Envelope, payload: bytes | IO[bytes], signer: SigningKey | None) -> str:
    """Sign and put an item, in parts if it is large; an equal one that is there already stays.

    Returns
    -------
    str
        The key under which it is.

    Raises
    ------
    WireError
        Something else is at the key and at all its successors.
    """
    stream = io.BytesIO(payload) if isinstance(payload, bytes) else payload
    largest = min(courier.largest, LARGEST_PART)
    told = describe(envelope, stream, largest)
    item = _inline(told, stream, signer, largest)
    if item is None:
        placed = send_parts(courier, folder_of(told.kind, told.owner), told, stream)
        item = placed.sign(signer).to_bytes()
    for there in successors(_key(told)):
        if courier.put(there, item) or _is_there(courier, there, told):
            return there
    raise WireError(f"Other items are in the way of {_key(told)}.")


def _inline(envelope: Envelope, payload: IO[bytes], signer: SigningKey | None, largest: int) -> bytes | None:
    """The whole item, None if it is too large for one."""
    if len(envelope.parts) > 1:
        return None
    payload.seek(0)
    line = replace(envelope, part_size=0, parts=()).sign(signer).to_bytes()
    return line + payload.read() if len(line) + envelope.size <= largest else None


def _is_there(courier: Courier, key: str, envelope: Envelope) -> bool:
    """Whether the same party put the same there before, and all of it is there still."""
    try:
        item = courier.get(key)
        if item is None:
            return False
        there, rest = Envelope.split(item)
        if not there.is_same(envelope):
            return False
        _check_payload(courier, there, rest)
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


def successors(key: str) -> Iterator[str]:
    """The key, and those that are tried after it."""
    yield key
    name, _, ending = key.rpartition(".")
    for number in range(1, MOST_SUCCESSORS):
        yield f"{name}.{number}.{ending}"


def warn(key: str, error: PrivadaError) -> None:
    """Name an item that is passed over in the log."""
    LOG.warning("%s is passed over: %s", key, error)


def find_all(
    courier: Courier,
    key: str,
    read: Callable[[Found], T],
    pass_over: Callable[[str, PrivadaError], None] = warn,
) -> Iterator[T]:
    """What ``read`` makes of the validly signed items at a key and its successors.

    An item that is not signed, or that ``read`` raises an error for, is named in the log and passed over.
    """
    for there in successors(key):
        try:
            item = courier.get(there)
            if item is None:
                return
            made = read(Found(there, *Envelope.split(item)))
        except CourierError:
            raise
        except PrivadaError as error:
            pass_over(there, error)
        else:
            yield made


def has_written(courier: Courier, signer: str, kind: str, owner: str, question: str, whose: str = "") -> bool:
    """Whether the party of a key put such an item; what others put or moved there counts for nothing."""
    stated = (signer, folder_of(kind, owner), owner, question, whose)
    return any(
        find_all(courier, key_of(kind, owner, question, whose), lambda found: _states(found) == stated)
    )


def find_delivered(
    courier: Courier, signer: str, kind: str, owner: str, question: str, whose: str = ""
) -> tuple[str, ...] | None:
    """The keys of an item that the party of a key put and of its parts, if all of it is there; else None."""
    stated = (signer, folder_of(kind, owner), owner, question, whose)

    def check(found: Found) -> tuple[str, ...]:
        if _states(found) != stated:
            return ()
        _check_payload(courier, found.envelope, found.rest)
        parts = (part_key(found.envelope, number) for number in range(len(found.envelope.parts)))
        return (found.key, *parts)

    return next(filter(None, find_all(courier, key_of(kind, owner, question, whose), check)), None)


def _states(found: Found) -> tuple[str, str, str, str, str]:
    """Who says it, of which kind it is, and about whose question it is."""
    envelope = found.envelope
    folder = folder_of(envelope.kind, envelope.owner)
    return envelope.signer, folder, envelope.owner, envelope.question, envelope.asked


def find(
    courier: Courier,
    key: str,
    read: Callable[[Found], T],
    pass_over: Callable[[str, PrivadaError], None] = warn,
) -> T | None:
    """The first of `find_all`, None if there is none."""
    return next(find_all(courier, key, read, pass_over), None)


__all__ = [
    "LOG",
    "Found",
    "check_owner",
    "find",
    "find_all",
    "find_delivered",
    "folder_of",
    "has_written",
    "key_of",
    "parse_question_key",
    "post",
    "successors",
    "warn",
]
