"""Encryption of what only its addressee may read: X25519, HKDF-SHA256 and ChaCha20-Poly1305.

*Rows for a curator.* The curator's X25519 key follows from its signing key, so that a curator that starts
again can read what was sent to it before; the public half travels in the signed envelope of its question.
Each disclosure has a key pair of its own on the owner's side, and is bound to the question that it answers.
It is padded to the length of as many rows as were asked for, whatever rows are in it.

*Questions to an owner* whose content follows from the owner's rows (`privada.privacy.Question.sealed`). The
owner's X25519 key follows from the public key on its card. The learner's key pair for a question follows from
the learner's signing key and the question, so that a learner that starts again sends the same bytes. What is
sealed is bound to the question, to the owner and to the learner.

*Privacy.* This protects rows on the way. Whoever holds the addressee's key can read them. What an owner
discloses is not differentially private, and its policy must name the curator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from privada.exceptions import PrivadaError, WireError
from privada.privacy import wire
from privada.privacy.keys import sealing_key
from privada.privacy.receipt import Receipt
from privada.privacy.release import Disclosure

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    from privada.privacy.keys import LearnerKey, OwnerKey

_REPLY_KEY = b"privada reply key 1"
_DISCLOSURE = b"privada disclosure 2\n"
_UNPADDED = b"privada disclosure 1\n"  # no longer written, but still read
_QUESTION = b"privada sealed question 1\n"
_SALT = b"privada salt of a sealed question 1\n"
_NONCE = bytes(12)  # each key encrypts one message
_HEADER_BYTES = 1 << 13  # of a disclosure without its rows: receipt, names


def reply_key(key: LearnerKey) -> X25519PrivateKey:
    """Return the key that opens what is sealed for a learner."""
    return _make_key(key.derive(_REPLY_KEY))


def public_reply_key(key: LearnerKey) -> str:
    """Return its public half, 64 hexadecimal digits."""
    return reply_key(key).public_key().public_bytes_raw().hex()


def check_reply_key(public: str) -> str:
    """Return a public reply key that rows can be sealed for, or raise `WireError` before a row is opened."""
    try:
        _encrypt(b"", public=bytes.fromhex(public), own=_make_key(), bound_to=b"")
    except ValueError:
        raise WireError("Expected reply_key to be an X25519 public key of 64 hexadecimal digits.") from None
    return public


def seal(disclosure: Disclosure, *, public: str) -> bytes:
    """Encrypt a disclosure for the curator with this public reply key.

    Its length is that of ``most_bytes`` of rows, whatever rows are in it.
    """
    packed, length = _pack(disclosure), _HEADER_BYTES + disclosure.most_bytes
    if len(packed) > length:
        raise WireError("The disclosure is larger than its question says.")
    # How many rows there are, and how long they are, depends on private rows: the length must not.
    padded = len(packed).to_bytes(8, "little") + packed.ljust(length, b"\0")
    curator = bytes.fromhex(check_reply_key(public))
    return _encrypt(
        padded, public=curator, own=_make_key(), bound_to=_DISCLOSURE + disclosure.question.encode()
    )


def unseal(blob: bytes, *, key: LearnerKey, question: str) -> Disclosure:
    """Open what was sealed for a learner in answer to a question, or raise `WireError`."""
    plain = _decrypt(blob, own=reply_key(key), bound_to=_DISCLOSURE + question.encode())
    if plain is not None:
        return _unpack(plain[8 : 8 + int.from_bytes(plain[:8], "little")])
    plain = _decrypt(blob, own=reply_key(key), bound_to=_UNPADDED + question.encode())
    if plain is None:
        raise WireError("The disclosure was sealed for another key, or was changed.")
    return _unpack(plain)


def secret_salt(question: str, *, owner: str, key: LearnerKey) -> str:
    """Return a salt for a sealed question, which nobody without the learner's key can guess.

    The digest of a question is in the clear. Without such a salt, whoever can guess the rest of a question
    could try which content has that digest.
    """
    return f"sealed {key.derive(_SALT + f'{owner} {question}'.encode()).hex()}"


def seal_question(blob: bytes, *, question: str, owner: str, key: LearnerKey) -> bytes:
    """Encrypt a question's file for the owner of a public key; the bytes are the same each time.

    ``question`` is the digest of the question, ``owner`` the key that the owner signs with, and ``key`` that
    of the learner that asks.
    """
    bound_to = _question_context(question, owner=owner, learner=key.public)
    # Each key encrypts one message, as the fixed nonce requires: other bytes of the same question, as another
    # version may write them, get another key.
    own = _make_key(key.derive(bound_to + hashlib.sha256(blob).digest()))
    try:
        return _QUESTION + _encrypt(blob, public=sealing_key(owner), own=own, bound_to=bound_to)
    except ValueError:
        raise WireError(
            f"Nothing can be sealed for the owner's public key {owner}: it is no usable key."
        ) from None


def is_sealed(payload: bytes) -> bool:
    """Whether the payload of a question is sealed; other payloads begin with the length of their header."""
    return payload.startswith(_QUESTION)


def unseal_question(payload: bytes, *, question: str, learner: str, key: OwnerKey) -> bytes:
    """Open what a learner sealed for an owner, or raise `WireError`.

    The digest of the question, and the public key of the learner, are those that the envelope states.
    """
    bound_to = _question_context(question, owner=key.public, learner=learner)
    plain = _decrypt(payload.removeprefix(_QUESTION), own=key.opening_key(), bound_to=bound_to)
    if plain is None:
        raise WireError("The question was sealed for another key, or was changed.")
    return plain


def _make_key(seed: bytes | None = None) -> X25519PrivateKey:
    """The key of a seed, or a new one."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.generate() if seed is None else X25519PrivateKey.from_private_bytes(seed)


def _question_context(question: str, *, owner: str, learner: str) -> bytes:
    return _QUESTION + f"{question} {owner} {learner}".encode()


def _encrypt(plain: bytes, *, public: bytes, own: X25519PrivateKey, bound_to: bytes) -> bytes:
    """The public half of the message's own key, then the message; a `ValueError` for a bad key."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    ours = own.public_key().public_bytes_raw()
    # This refuses a public key of small order, with which everybody would share the same secret.
    shared = own.exchange(X25519PublicKey.from_public_bytes(public))
    key = _message_key(shared, ours + public, bound_to)
    return ours + ChaCha20Poly1305(key).encrypt(_NONCE, plain, bound_to)


def _decrypt(blob: bytes, *, own: X25519PrivateKey, bound_to: bytes) -> bytes | None:
    """The message that `_encrypt` encrypted; None if it was for another key, bound otherwise, or changed."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    theirs = blob[:32]
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(theirs))
        key = _message_key(shared, theirs + own.public_key().public_bytes_raw(), bound_to)
        return ChaCha20Poly1305(key).decrypt(_NONCE, blob[32:], bound_to)
    except (InvalidTag, ValueError):
        return None


def _message_key(shared: bytes, publics: bytes, bound_to: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    domain = bound_to[: bound_to.find(b"\n") + 1]
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=domain + publics).derive(shared)


def _pack(disclosure: Disclosure) -> bytes:
    rows: Mapping[str, Any] = disclosure.rows
    arrays = {name: value for name, value in rows.items() if isinstance(value, np.ndarray)}
    header = {
        "curator": disclosure.curator,
        "question": disclosure.question,
        "receipt": disclosure.receipt.to_dict(),
        "values": {name: value for name, value in rows.items() if name not in arrays},
    }
    return wire.pack("disclosure", header, arrays)


def _unpack(blob: bytes) -> Disclosure:
    header, arrays = wire.unpack(blob, kind="disclosure")
    try:
        return Disclosure(
            rows={**header["values"], **arrays},
            curator=str(header["curator"]),
            question=str(header["question"]),
            receipt=Receipt.from_dict(header["receipt"]),
        )
    except (PrivadaError, KeyError, TypeError):
        raise WireError("The disclosure lacks a field, or has one of the wrong type.") from None


__all__ = [
    "check_reply_key", "is_sealed", "public_reply_key", "reply_key", "seal", "seal_question", "secret_salt",
    "unseal", "unseal_question",
]  # fmt: skip
