"""What travels: a signed statement in front of its payload.

An item is one line of JSON in the canonical form of RFC 8785, so that other programs can verify it, and
after the line the payload, unless that was sent in parts (``exchange.chunks``). The statement names both
parties, the question, and the payload's size and SHA-256. A learner signs questions; an owner signs
releases, disclosures and refusals. The kind stands before the signed bytes, so that no signed statement
passes for one of another kind.

Digests of questions, releases and ledger lines keep their own JSON form (`privada.privacy.wire.canonical`):
RFC 8785 writes numbers differently, and what was signed before it was used here must stay valid.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

from privada._text import LONGEST_MESSAGE, bounded, printable_line, quoted
from privada.exceptions import InputError, PrivadaError, WireError
from privada.privacy.asker import LONGEST_NAME, LONGEST_PROJECT, LONGEST_PURPOSE, check_line
from privada.privacy.keys import SigningKey, verify_signature
from privada.privacy.wire import LARGEST_FILE

FORMAT = 1
LARGEST_STATEMENT = 1 << 18  # bytes of the line before the payload
LONGEST_TEXT = LONGEST_MESSAGE  # characters of a name, a purpose or a reason
MOST_PARTS = 2048
LARGEST_MALFORMED = 1 << 20  # the same of a question that is refused for its envelope
KINDS = ("question", "withdrawal", "release", "disclosure", "refusal", "failure")
OF_LEARNERS = ("question", "withdrawal")  # the kinds that learners sign
_DIGEST = re.compile("[0-9a-f]{64}")
_NUMBERS = ("size", "part_size")
_TEXTS = {"learner": LONGEST_NAME, "project": LONGEST_PROJECT, "purpose": LONGEST_PURPOSE}
_TRAVEL = ("time", "place", "part_size", "parts")  # not a part of who says what


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A statement about one payload, and who signed it.

    Attributes
    ----------
    kind : str
        ``"question"`` or ``"withdrawal"`` of one, signed by the learner; or ``"release"``,
        ``"disclosure"``, ``"refusal"`` or ``"failure"`` (of an answer after its charge), signed by the owner.
    owner, owner_key : str
        The owner's name in studies and its public key. A learner that does not know the key leaves it empty.
    question : str
        Digest of the question.
    learner, learner_key, project, purpose : str, default=""
        Of a question: who asks, and what for. Without a key it is unsigned.
    reply_key : str, default=""
        Of a question for raw rows: the X25519 key that the rows are encrypted for.
    asked : str, default=""
        Of a withdrawal, disclosure, refusal or failure: the `identity` of the question's envelope.
    reason : str, default=""
        Of a refusal or failure: why, in words.
    time : str
        When it was written, by its writer's clock (UTC). It informs people; nothing is decided by it.
    size : int
        Bytes of the payload.
    sha256 : str
        Its digest.
    parts : tuple of str, default=()
        SHA-256 of each part, if the payload was sent in parts; ``part_size`` is the size of all but the
        last, ``place`` the beginning of their keys.
    signature : str, default=""
    """

    kind: str
    owner: str
    question: str
    owner_key: str = ""
    learner: str = ""
    learner_key: str = ""
    project: str = ""
    purpose: str = ""
    reply_key: str = ""
    asked: str = ""
    reason: str = ""
    time: str = ""
    size: int = 0
    sha256: str = hashlib.sha256(b"").hexdigest()
    part_size: int = 0
    parts: tuple[str, ...] = ()
    place: str = ""
    signature: str = ""

    @property
    def signer(self) -> str:
        """The public key that must have signed it; empty for a question of a learner without a key."""
        return self.learner_key if self.kind in OF_LEARNERS else self.owner_key

    @property
    def identity(self) -> str:
        """32 digits that are the same whenever the same party says the same to the same owner."""
        return _identity(self._statement())

    def is_same(self, other: Envelope) -> bool:
        """Whether the other says the same, whenever and in how many parts."""
        return self.identity == other.identity

    def sign(self, key: SigningKey | None) -> Self:
        """The same with the present time and its signer's signature."""
        now = replace(self, time=datetime.now(UTC).isoformat(timespec="seconds"))
        return now if key is None else replace(now, signature=key.sign(now._message()))

    def check(self) -> None:
        """Raise `TamperError` unless its signer signed it; a learner without a key signs nothing."""
        if self.signer or self.kind not in OF_LEARNERS:
            verify_signature(self.signer, self.signature, self._message())
        elif self.signature or self.learner:
            raise WireError("A question without a key names no learner and has no signature.")

    def to_bytes(self) -> bytes:
        """The line that stands before the payload."""
        outer = _canonical({"format": FORMAT, "privada": "envelope", "signature": self.signature})
        return outer[:-1] + b',"statement":' + self._told + b"}\n"  # in the order of RFC 8785

    @cached_property
    def _told(self) -> bytes:
        """What is signed; written out once, as it is needed for the signature and for the line."""
        return _canonical(self._statement())

    def _statement(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STATED}

    def _message(self) -> bytes:
        return _signed_bytes(self.kind, self._told)

    @classmethod
    def split(cls, item: bytes) -> tuple[Self, memoryview]:
        """The envelope of an item, its signature checked, and the bytes after it, which are not copied.

        Raises
        ------
        WireError, TamperError
            This is no envelope, or nobody of that key signed it.
        """
        end = item.find(b"\n", 0, LARGEST_STATEMENT)
        if end < 0:
            raise WireError("The item does not begin with an envelope.")
        made = cls(**_fields(item[:end]))
        if made.to_bytes() != item[: end + 1]:
            raise WireError("The item's envelope is not in its canonical form.")
        made.check()
        return made, memoryview(item)[end + 1 :]


@dataclass(frozen=True, kw_only=True)
class MalformedQuestion:
    """A question whose envelope breaks the format although a learner signed it.

    Its signer is known, so it can be refused; nothing else of it is used.

    Attributes
    ----------
    owner, question, identity : str
        Whom it asks, and what a refusal is addressed to; see `Envelope`.
    learner : str
        Who asks, for the log.
    fault : str
        What is wrong, and what to do about it.
    """

    owner: str
    question: str
    identity: str
    learner: str
    fault: str

    @classmethod
    def read(cls, item: bytes) -> Self | None:
        """What is wrong with a signed question; None if nobody signed it, or nothing is wrong."""
        end = item.find(b"\n", 0, LARGEST_MALFORMED)
        try:
            outer = json.loads(item[: max(end, 0)])
            statement = dict(outer["statement"])
            told = _canonical(statement)
            if (outer["privada"], outer["format"], statement["kind"]) != ("envelope", FORMAT, "question"):
                return None
            verify_signature(statement["learner_key"], outer["signature"], _signed_bytes("question", told))
        except (PrivadaError, ValueError, KeyError, TypeError, RecursionError):
            return None
        fault = _find_fault(statement)
        if (
            not fault
            and end < LARGEST_STATEMENT
            and Envelope(**_fields(item[:end])).to_bytes() == item[: end + 1]
        ):
            return None
        return cls(
            owner=str(statement.get("owner")),
            question=str(statement.get("question")),
            identity=_identity(statement),
            learner=clean(str(statement.get("learner"))),
            fault=fault
            or "The question's envelope is too large, or is not in its canonical form (RFC 8785).",
        )


def _find_fault(statement: Mapping[str, Any]) -> str:
    """The first field of a statement that is not as it must be, in words; empty if there is none."""
    for name in sorted(set(_STATED) | set(statement)):
        if name not in statement:
            return f"Expected the field {name} in the question's envelope, got none."
        value = statement[name]
        if name not in _STATED:
            return f"Expected no field {quoted(name)} in the question's envelope, got {quoted(value)}."
        if name in _TEXTS:
            try:
                check_line(**{name: value}, longest=_TEXTS[name], empty=True)
            except InputError as error:
                return str(error)
        elif not _is_valid(name, value):
            return (
                f"Expected {name} in the question's envelope to be as its format says, got {quoted(value)}."
            )
    return ""


def _identity(statement: Mapping[str, Any]) -> str:
    said = {name: value for name, value in statement.items() if name not in _TRAVEL}
    return hashlib.sha256(_canonical(said)).hexdigest()[:32]


def _signed_bytes(kind: str, told: bytes) -> bytes:
    return f"privada {kind} envelope {FORMAT}\n".encode() + told


def clean(text: str) -> str:
    """Text for an envelope: one line, of bounded length."""
    return printable_line(bounded(text))


_NAMES = frozenset(each.name for each in fields(Envelope))
_STATED = tuple(sorted(_NAMES - {"signature"}))


def _canonical(value: Mapping[str, Any]) -> bytes:
    """The form of RFC 8785 of ASCII names with texts, lists of texts, and whole numbers below 2**53.

    For these it is what the standard library writes; only fractions and other names would differ.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode()
    except UnicodeError:
        raise InputError("Expected names and texts that can be written as JSON.") from None


def _fields(line: bytes) -> dict[str, Any]:
    """What a line says, every field there and of its type."""
    try:
        whole = json.loads(line)
        told = dict(whole["statement"])
        if (whole["privada"], whole["format"]) != ("envelope", FORMAT):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WireError(f"The item is not an envelope of format {FORMAT}.") from None
    told["signature"] = whole.get("signature")
    if set(told) != _NAMES or not all(map(_is_valid, told, told.values())):
        raise WireError("The item's envelope has a field that is missing, unknown or out of bounds.")
    return told | {"parts": tuple(told["parts"])}


def _is_valid(name: str, value: Any) -> bool:
    if name in _NUMBERS:
        return type(value) is int and 0 <= value <= LARGEST_FILE
    if name == "parts":
        return isinstance(value, list) and len(value) <= MOST_PARTS and all(map(_is_digest, value))
    if name == "kind":
        return value in KINDS
    if name in ("question", "sha256"):
        return _is_digest(value)
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and clean(value) == value


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


__all__ = ["KINDS", "LARGEST_STATEMENT", "Envelope", "MalformedQuestion", "clean"]
