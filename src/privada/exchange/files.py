"""Question and release files, as they were saved or as they are in an exchange folder."""

from __future__ import annotations

from pathlib import Path

from privada.exceptions import WireError
from privada.exchange.chunks import receive_bytes
from privada.exchange.envelope import Envelope
from privada.exchange.sealing import is_sealed
from privada.privacy import wire
from privada.privacy.release import Question, Release

_BEGINNING = b'{"format":'  # of an envelope; other files begin with the length of their header


def load_question(path: Path) -> Question:
    """The question in a file; if it came in an envelope, the signature is checked."""
    blob = read_payload(path)
    if is_sealed(blob):
        raise WireError(f"The question in {path.name} is sealed: only the owner that it is for can read it.")
    return Question.from_bytes(blob)


def load_release(path: Path) -> Release:
    """The release in a file, its signature checked."""
    return Release.from_bytes(read_payload(path))


def read_payload(path: Path) -> bytes:
    """The bytes of a file without the envelope that they may have come in.

    A payload that was sent in parts is put together from the exchange folder that the file is in.
    """
    blob = wire.read(path)
    if not blob.startswith(_BEGINNING):
        return blob
    from privada.exchange.couriers.folder import FolderCourier

    envelope, rest = Envelope.split(blob)
    folder = path.resolve().parent
    courier = FolderCourier(folder.parent.parent)
    within = f"{folder.parent.name}/{folder.name}"
    return receive_bytes(courier, within, envelope, rest, largest=wire.LARGEST_FILE)


__all__ = ["load_question", "load_release", "read_payload"]
