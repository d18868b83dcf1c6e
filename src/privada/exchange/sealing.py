"""Raw rows for a curator travel encrypted: X25519, HKDF-SHA256 and ChaCha20-Poly1305.

The curator's X25519 key follows from its signing key, so that a curator that starts again can read what was
sent to it before; the public half travels in the signed envelope of its question. Each disclosure has a
key pair of its own on the owner's side, and is bound to the question that it answers.

*Privacy.* This protects rows on the way. Whoever holds the curator's key reads them; what an owner
discloses is not differentially private, and its policy must name the curator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from privada.exceptions import PrivadaError, WireError
from privada.privacy import wire
from privada.privacy.receipt import Receipt
from privada.privacy.release import Disclosure

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    from privada.privacy.keys import LearnerKey

_REPLY_KEY = b"privada reply key 1"
_DISCLOSURE = b"privada disclosure 1\n"
_NONCE = bytes(12)  # each key encrypts one message


def reply_key(key: LearnerKey) -> X25519PrivateKey:
    """The key that opens what is sealed for a learner."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(key.derive(_REPLY_KEY))


def public_reply_key(key: LearnerKey) -> str:
    """Its public half, 64 hexadecimal digits."""
    return reply_key(key).public_key().public_bytes_raw().hex()


def check_reply_key(public: str) -> str:
    """A public reply key that rows can be sealed for, or a `WireError`: before any row is opened."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    try:
        theirs = X25519PublicKey.from_public_bytes(bytes.fromhex(public))
        X25519PrivateKey.generate().exchange(theirs)  # refuses points that give everybody the same secret
    except ValueError:
        raise WireError("Expected reply_key to be an X25519 public key of 64 hexadecimal digits.") from None
    return public


def seal(disclosure: Disclosure, *, public: str) -> bytes:
    """Encrypt a disclosure for the curator whose public reply key this is."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    own = X25519PrivateKey.generate()
    ours = own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(check_reply_key(public))))
    key = _message_key(shared, ours + bytes.fromhex(public))
    return ours + ChaCha20Poly1305(key).encrypt(_NONCE, _pack(disclosure), _context(disclosure.question))


def unseal(blob: bytes, *, key: LearnerKey, question: str) -> Disclosure:
    """Open what was sealed for a learner in answer to a question, or raise `WireError`."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    own, theirs = reply_key(key), blob[:32]
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(theirs))
        secret = _message_key(shared, theirs + own.public_key().public_bytes_raw())
        return _unpack(ChaCha20Poly1305(secret).decrypt(_NONCE, blob[32:], _context(question)))
    except (InvalidTag, ValueError):
        raise WireError("The disclosure was sealed for another key, or was changed.") from None


def _message_key(shared: bytes, publics: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=32, salt=None, info=_DISCLOSURE + publics).derive(shared)


def _context(question: str) -> bytes:
    return _DISCLOSURE + question.encode()


def _pack(disclosure: Disclosure) -> bytes:
    rows: Mapping[str, Any] = disclosure.rows
    arrays = {name: each for name, each in rows.items() if isinstance(each, np.ndarray)}
    header = {
        "curator": disclosure.curator,
        "question": disclosure.question,
        "receipt": disclosure.receipt.to_dict(),
        "values": {name: each for name, each in rows.items() if name not in arrays},
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


__all__ = ["check_reply_key", "public_reply_key", "reply_key", "seal", "unseal"]
