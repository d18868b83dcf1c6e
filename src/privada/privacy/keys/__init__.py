"""Keys of owners and learners: who signs, and the passphrases that protect their files."""

from privada.privacy.keys.signing import (
    LearnerKey,
    OwnerKey,
    SigningKey,
    check_public_key,
    is_protected,
    sealing_key,
    verify_signature,
)

__all__ = [
    "LearnerKey",
    "OwnerKey",
    "SigningKey",
    "check_public_key",
    "is_protected",
    "sealing_key",
    "verify_signature",
]
