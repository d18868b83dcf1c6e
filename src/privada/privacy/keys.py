"""Keys that sign, and the passphrases that protect their files.

The owner's key signs ledger lines, receipts and releases; the learner's key signs what it asks. Both are
Ed25519 and are kept by the same rules: a file that only its user may read, with a passphrase if you want
one. They are different types, because a learner's key must never open a ledger.

A passphrase comes from the environment or from a person at a terminal: never from an owner's file, and
never from a command's arguments, which other users can read while it runs.

>>> key = LearnerKey.generate()
>>> verify_signature(key.public, key.sign(b"a question"), b"a question")
>>> verify_signature(key.public, key.sign(b"a question"), b"another")
Traceback (most recent call last):
    ...
privada.exceptions.TamperError: The signature does not fit the message and the public key.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar

from privada import _files
from privada.exceptions import InputError, LedgerError, TamperError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

T = TypeVar("T")

VARIABLE = "PRIVADA_KEY_PASSPHRASE"
NEW_VARIABLE = "PRIVADA_NEW_KEY_PASSPHRASE"
SHORTEST, LONGEST = 8, 1000  # bytes of a passphrase
LARGEST_KEY = 1 << 16  # bytes of a key's file
_TYPED: dict[Path, str] = {}  # so that one run asks once for each key
_FIELD = 2**255 - 19  # both curves are over the integers modulo this prime


class SigningKey:
    """An Ed25519 key; `OwnerKey` and `LearnerKey` say whose.

    The private half is never in a repr and never pickled. Only `save` writes it, into a new file that only
    its user may read.

    Attributes
    ----------
    public : str
        The public half, 64 hexadecimal digits: give it to those who verify.
    """

    __slots__ = ("_private", "public")
    whose: ClassVar[str]  # in messages

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw().hex()

    @classmethod
    def generate(cls) -> Self:
        """Make a new key from the operating system's randomness."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, passphrase: str | None = None) -> Self:
        """Read a key that `save` wrote; refuse one that other users can read.

        The passphrase of a protected key is by default that of the environment variable
        ``PRIVADA_KEY_PASSPHRASE``; without it, you are asked on the terminal.
        """
        file = Path(path)
        try:
            pem = _files.read_bytes(file, largest=LARGEST_KEY, error=LedgerError)
            mode = file.stat().st_mode
        except (LedgerError, OSError) as error:
            reason = str(error).removeprefix(f"Cannot read {file.name}: ")
            raise LedgerError(f"The {cls.whose} key {file} cannot be read: {reason}") from None
        if os.name == "posix" and mode & 0o077:
            raise LedgerError(f"The {cls.whose} key {file} is open to other users; run chmod 600 on it.")
        if not is_protected(pem):
            return cls(cls._decrypt(file, pem, None))
        if passphrase is None:
            return cls(find_passphrase(file, lambda typed: cls._decrypt(file, pem, typed)))
        return cls(cls._decrypt(file, pem, passphrase))

    @classmethod
    def _decrypt(cls, file: Path, pem: bytes, passphrase: str | None) -> Ed25519PrivateKey:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            private = load_pem_private_key(pem, password=None if passphrase is None else passphrase.encode())
        except (TypeError, ValueError, UnsupportedAlgorithm):
            private = None
        if isinstance(private, Ed25519PrivateKey):
            return private
        if passphrase is not None:
            raise LedgerError(
                f"The passphrase does not open the {cls.whose} key {file}, or the file is damaged."
            )
        raise LedgerError(f"{file} does not hold an Ed25519 private key in PEM form.")

    def save(self, path: str | os.PathLike[str], *, passphrase: str | None = None) -> None:
        """Write the key to a new file with mode 0600; an existing file is never touched.

        With a passphrase the file is encrypted (PKCS #8), and useless to anybody who has only the file.
        """
        from cryptography.hazmat.primitives.serialization import (
            BestAvailableEncryption,
            Encoding,
            KeySerializationEncryption,
            NoEncryption,
            PrivateFormat,
        )

        encryption: KeySerializationEncryption = NoEncryption()
        if passphrase is not None:
            encryption = BestAvailableEncryption(check_passphrase(passphrase).encode())
        pem = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        file = Path(path)
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise LedgerError(f"{file} exists; a key is never overwritten.") from None
        except OSError as error:
            raise LedgerError(
                f"The {self.whose} key cannot be written to {file}: {error.strerror}."
            ) from None
        with os.fdopen(handle, "wb") as stream:
            stream.write(pem)
            stream.flush()
            os.fsync(stream.fileno())

    def change_passphrase(self, path: str | os.PathLike[str], *, passphrase: str | None) -> None:
        """Replace the key file, under another passphrase or none; at any moment one complete file exists.

        Backups of the old file are not changed.
        """
        file = Path(path)
        draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        self.save(draft, passphrase=passphrase)
        try:
            draft.replace(file)
        except OSError as error:
            draft.unlink()
            raise LedgerError(f"The {self.whose} key {file} cannot be replaced: {error.strerror}.") from None

    def sign(self, message: bytes) -> str:
        """Sign a message; 128 hexadecimal digits."""
        return self._private.sign(message).hex()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(public={self.public!r})"

    def __eq__(self, other: object) -> bool:
        return self.public == other.public if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self.public))

    def __reduce__(self) -> NoReturn:
        raise TypeError("A key cannot be pickled or copied; save it to a file and load it there.")


class OwnerKey(SigningKey):
    """An owner's Ed25519 key: ledger lines and releases are signed with it."""

    __slots__ = ()
    whose = "owner's"

    def opening_key(self) -> X25519PrivateKey:
        """The X25519 key that opens what is sealed for this owner; its public half is `sealing_key`."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        seed = self._private.private_bytes_raw()
        return X25519PrivateKey.from_private_bytes(hashlib.sha512(seed).digest()[:32])


class LearnerKey(SigningKey):
    """A learner's Ed25519 key: what it asks is signed with it, so that an owner knows who asks."""

    __slots__ = ()
    whose = "learner's"

    def derive(self, purpose: bytes) -> bytes:
        """32 secret bytes for another purpose, the same each time (HKDF-SHA256)."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose)
        return derivation.derive(self._private.private_bytes_raw())


def is_protected(pem: bytes) -> bool:
    """Whether a key's file needs a passphrase."""
    return b"-----BEGIN ENCRYPTED PRIVATE KEY-----" in pem


def verify_signature(public: str, signature: str, message: bytes) -> None:
    """Return if ``signature`` is that of ``public`` on ``message``, else raise `TamperError`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, TypeError, ValueError):
        raise TamperError("The signature does not fit the message and the public key.") from None


def sealing_key(public: str) -> bytes:
    """The X25519 key that follows from an owner's public key: with it, anybody can seal for the owner.

    The Ed25519 point is mapped to its curve's Montgomery form, ``u = (1 + y) / (1 - y)`` (RFC 7748, section
    4.1), as libsodium and age do. Thormarker (2021, ePrint 2021/509) proves that one secret may serve both
    for signing and for this.

    >>> key = OwnerKey.generate()
    >>> sealing_key(key.public) == key.opening_key().public_key().public_bytes_raw()
    True
    """
    encoded = bytes.fromhex(check_public_key(public=public))
    y = int.from_bytes(encoded, "little") & (2**255 - 1)  # the last bit is the sign of x
    return ((1 + y) * pow(1 - y, _FIELD - 2, _FIELD) % _FIELD).to_bytes(32, "little")


def check_public_key(**named: Any) -> str:
    """Return the public half of a key, 64 lower-case hexadecimal digits, else raise `InputError`."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
        raise InputError(f"Expected {name} to be a public key of 64 hexadecimal digits, got {value!r:.80}.")
    return value


def check_passphrase(passphrase: str) -> str:
    """Return the passphrase if it is neither too short nor too long; no message contains it."""
    if not SHORTEST <= len(passphrase.encode()) <= LONGEST:
        raise InputError(f"Expected a passphrase of {SHORTEST} to {LONGEST} bytes.")
    return passphrase


def find_passphrase(file: Path, opened: Callable[[str], T]) -> T:
    """Open a key with its passphrase: that of the environment, else one that is typed."""
    passphrase = os.environ.get(VARIABLE)
    if passphrase is not None:
        return opened(passphrase)
    place = file.resolve()
    passphrase = _TYPED.get(place)
    if passphrase is None:
        passphrase = _ask(f"Passphrase of {file.name}: ", instead=VARIABLE)
    key = opened(passphrase)
    _TYPED[place] = passphrase  # only a passphrase that opens the key is kept
    return key


def choose_passphrase(variable: str = NEW_VARIABLE) -> str:
    """A new passphrase: that of an environment variable, else typed twice."""
    passphrase = os.environ.get(variable)
    if passphrase is not None:
        return check_passphrase(passphrase)
    passphrase = check_passphrase(_ask("New passphrase: ", instead=variable))
    if _ask("The same again: ", instead=variable) != passphrase:
        raise InputError("The two passphrases differ; nothing was written.")
    return passphrase


def _ask(prompt: str, *, instead: str) -> str:
    if not sys.stdin.isatty():
        raise LedgerError(f"There is no terminal to ask for the passphrase of the key; set {instead}.")
    from getpass import getpass

    return getpass(prompt)
