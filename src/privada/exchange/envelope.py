"""What travels: a signed statement in front of its payload.

An item is one line of JSON in the canonical form of RFC 8785, so that other programs can verify it, and
after the line the payload, unless that was sent in parts (`privada.exchange.posting`). The statement names
both parties, the question, and the payload's size and SHA-256. A learner signs questions; an owner signs
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
LARGEST_MALFORMED = 1 << 20  # the same, of a question that is refused because of its envelope
KINDS = ("question", "withdrawal", "release", "disclosure", "refusal", "failure")
OF_LEARNERS = ("question", "withdrawal")  # the kinds that learners sign
_DIGEST = re.compile("[0-9a-f]{64}")
_NUMBERS = ("size", "part_size")
_TEXTS = {"learner": LONGEST_NAME, "project": LONGEST_PROJECT, "purpose": LONGEST_PURPOSE}
_TRAVEL = ("time", "place", "part_size", "parts")  # how it travels: not part of its identity


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A statement about one payload, and who signed it.

    The learner signs a question and its withdrawal; the owner signs a release, a disclosure, a refusal, or
    the failure of an answer after its charge.
    """

    kind: str
    owner: str  # its name in studies
    question: str  # digest of the question
    owner_key: str = ""  # empty if the learner does not know it
    learner: str = ""  # of a question; without a key it is unsigned
    learner_key: str = ""
    project: str = ""
    purpose: str = ""
    reply_key: str = ""  # of a question for raw rows: the X25519 key that the rows are encrypted for
    asked: str = ""  # of all kinds but questions and releases: the `identity` of the question's envelope
    reason: str = ""  # of a refusal or failure: why, in words
    time: str = ""  # by its writer's clock (UTC), to inform people; no decision depends on it
    size: int = 0  # bytes of the payload
    sha256: str = hashlib.sha256(b"").hexdigest()
    part_size: int = 0  # of all parts but the last, if the payload was sent in parts
    parts: tuple[str, ...] = ()  # SHA-256 of each
    place: str = ""  # the beginning of their keys
    signature: str = ""

    @property
    def signer(self) -> str:
        """The public key that must have signed it; empty for a question of a learner without a key."""
        return self.learner_key if self.kind in OF_LEARNERS else self.owner_key

    @property
    def identity(self) -> str:
        """32 digits that are the same whenever the same party states the same to the same owner."""
        return _identify(self._statement())

    def is_same(self, other: Envelope) -> bool:
        """Whether the other states the same, whenever and in how many parts it was sent."""
        return self.identity == other.identity

    def sign(self, key: SigningKey | None) -> Self:
        """Return the same with the present time and its signer's signature."""
        unsigned = replace(self, time=datetime.now(UTC).isoformat(timespec="seconds"))
        return unsigned if key is None else replace(unsigned, signature=key.sign(unsigned._message()))

    def check(self) -> None:
        """Raise `TamperError` unless its signer signed it; a learner without a key signs nothing."""
        if self.signer or self.kind not in OF_LEARNERS:
            verify_signature(self.signer, self.signature, self._message())
        elif self.signature or self.learner:
            raise WireError("A question without a key names no learner and has no signature.")

    def to_bytes(self) -> bytes:
        """Return the line that stands before the payload."""
        outer = _write_canonical({"format": FORMAT, "privada": "envelope", "signature": self.signature})
        # "statement" is the last of the keys in the order of RFC 8785.
        return outer[:-1] + b',"statement":' + self._canonical_statement + b"}\n"

    @cached_property
    def _canonical_statement(self) -> bytes:
        """The statement as it is signed; written once, since the signature and the line both need it."""
        return _write_canonical(self._statement())

    def _statement(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STATED}

    def _message(self) -> bytes:
        return _message_to_sign(self.kind, self._canonical_statement)

    @classmethod
    def split(cls, item: bytes) -> tuple[Self, memoryview]:
        """Return the envelope of an item, its signature checked, and the bytes after it, not copied.

        Raises
        ------
        WireError, TamperError
            This is no envelope, or the owner of its key did not sign it.
        """
        end = item.find(b"\n", 0, LARGEST_STATEMENT)
        if end < 0:
            raise WireError("The item does not begin with an envelope.")
        envelope = cls(**_parse_line(item[:end]))
        # Two forms of one statement would have one signature and two sets of bytes.
        if envelope.to_bytes() != item[: end + 1]:
            raise WireError("The item's envelope is not in its canonical form.")
        envelope.check()
        return envelope, memoryview(item)[end + 1 :]


@dataclass(frozen=True, kw_only=True)
class MalformedQuestion:
    """A question whose envelope breaks the format although a learner signed it.

    Its signer is known, so it can be refused; nothing else of it is used.
    """

    owner: str
    question: str
    identity: str  # to which a refusal is addressed
    learner: str  # for the log
    fault: str  # what is wrong, and what to do about it

    @classmethod
    def read(cls, item: bytes) -> Self | None:
        """Return what is wrong with a signed question; None if it is unsigned, or if nothing is wrong."""
        end = item.find(b"\n", 0, LARGEST_MALFORMED)
        try:
            outer = json.loads(item[: max(end, 0)])
            statement = dict(outer["statement"])
            message = _message_to_sign("question", _write_canonical(statement))
            if (outer["privada"], outer["format"], statement["kind"]) != ("envelope", FORMAT, "question"):
                return None
            verify_signature(statement["learner_key"], outer["signature"], message)
        except (PrivadaError, ValueError, KeyError, TypeError, RecursionError):
            return None
        fault = _find_fault(statement)
        if not fault:
            line = item[: end + 1]
            if end < LARGEST_STATEMENT and Envelope(**_parse_line(item[:end])).to_bytes() == line:
                return None
            fault = "The question's envelope is too large, or is not in its canonical form (RFC 8785)."
        return cls(
            owner=str(statement.get("owner")),
            question=str(statement.get("question")),
            identity=_identify(statement),
            learner=clean(str(statement.get("learner"))),
            fault=fault,
        )


_NAMES = frozenset(field.name for field in fields(Envelope))
_STATED = tuple(sorted(_NAMES - {"signature"}))


def _find_fault(statement: Mapping[str, Any]) -> str:
    """Describe the first field of a statement that is invalid; return an empty text if all are valid."""
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


def _identify(statement: Mapping[str, Any]) -> str:
    stated = {name: value for name, value in statement.items() if name not in _TRAVEL}
    return hashlib.sha256(_write_canonical(stated)).hexdigest()[:32]


def _message_to_sign(kind: str, statement: bytes) -> bytes:
    return f"privada {kind} envelope {FORMAT}\n".encode() + statement


def clean(text: str) -> str:
    """Return text as an envelope can hold it: one line, of bounded length."""
    return printable_line(bounded(text))


def _write_canonical(value: Mapping[str, Any]) -> bytes:
    """The form of RFC 8785 of ASCII names with texts, lists of texts, and whole numbers below 2**53.

    For these it is what the standard library writes; only fractions and other names would differ.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode()
    except UnicodeError:
        raise InputError("Expected names and texts that can be written as JSON.") from None


def _parse_line(line: bytes) -> dict[str, Any]:
    """The fields of an envelope's line; a `WireError` unless all exist and each has its type."""
    try:
        outer = json.loads(line)
        values = dict(outer["statement"])
        if (outer["privada"], outer["format"]) != ("envelope", FORMAT):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WireError(f"The item is not an envelope of format {FORMAT}.") from None
    values["signature"] = outer.get("signature")
    if set(values) != _NAMES or not all(map(_is_valid, values, values.values())):
        raise WireError("The item's envelope has a field that is missing, unknown or out of bounds.")
    return values | {"parts": tuple(values["parts"])}


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
