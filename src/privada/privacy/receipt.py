"""What an owner signs: the key, and the receipt of one ledger line.

A receipt is what a learner keeps. It carries the head of the owner's chain
after the line, so its holder can later prove that the line was edited,
that the chain was rewritten, or that its tail was cut off
(`privada.privacy.Ledger.verify`).

>>> key = OwnerKey.generate()
>>> verify_signature(key.public, key.sign(b"a release"), b"a release")
>>> verify_signature(key.public, key.sign(b"a release"), b"another")
Traceback (most recent call last):
    ...
privada.exceptions.TamperError: The signature does not fit the message and the owner's public key.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from privada import _files
from privada.exceptions import InputError, LedgerError, TamperError
from privada.privacy.passphrase import check_passphrase, find_passphrase
from privada.privacy.wire import canonical

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LARGEST_KEY = 1 << 16
_DOMAIN = b"privada receipt 1\n"  # a signed receipt can never pass for another signed message


class OwnerKey:
    """An owner's Ed25519 key: ledger lines and releases are signed with it.

    The private half never shows in a repr and never leaves by pickle; it is
    written only by `save`, into a new file that its user alone may read.

    Attributes
    ----------
    public : str
        The public half, 64 hexadecimal digits: give it to those who verify.
    """

    __slots__ = ("_private", "public")

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

        Parameters
        ----------
        path : path
            The file.
        passphrase : str, optional
            Of a key that has one. By default it is taken from the environment
            variable ``PRIVADA_KEY_PASSPHRASE``, else asked for on the terminal.
        """
        file = Path(path)
        pem = _read_key(file)
        if not is_protected(pem):
            return cls(_private(file, pem, None))
        if passphrase is None:
            return cls(find_passphrase(file, lambda words: _private(file, pem, words)))
        return cls(_private(file, pem, passphrase))

    def save(self, path: str | os.PathLike[str], *, passphrase: str | None = None) -> None:
        """Write the key to a new file with mode 0600; an existing file is never touched.

        With a passphrase the file is encrypted (PKCS #8); a copy of it is
        useless without the passphrase.
        """
        pem = self._pem(passphrase)
        file = Path(path)
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise LedgerError(f"{file} exists; a key is never overwritten.") from None
        except OSError as error:
            raise LedgerError(f"The owner's key cannot be written to {file}: {error.strerror}.") from None
        with os.fdopen(handle, "wb") as stream:
            stream.write(pem)
            stream.flush()
            os.fsync(stream.fileno())

    def change_passphrase(self, path: str | os.PathLike[str], *, passphrase: str | None) -> None:
        """Replace the key file, under another passphrase or none; at any moment one complete file exists.

        The old file is gone afterwards, but not from backups of it.
        """
        file = Path(path)
        draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        self.save(draft, passphrase=passphrase)
        try:
            draft.replace(file)
        except OSError as error:
            draft.unlink()
            raise LedgerError(f"The owner's key {file} cannot be replaced: {error.strerror}.") from None

    def _pem(self, passphrase: str | None) -> bytes:
        from cryptography.hazmat.primitives.serialization import (
            BestAvailableEncryption,
            Encoding,
            KeySerializationEncryption,
            NoEncryption,
            PrivateFormat,
        )

        locked: KeySerializationEncryption = NoEncryption()
        if passphrase is not None:
            locked = BestAvailableEncryption(check_passphrase(passphrase).encode())
        return self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked)

    def sign(self, message: bytes) -> str:
        """Sign a message; 128 hexadecimal digits."""
        return self._private.sign(message).hex()

    def __repr__(self) -> str:
        return f"OwnerKey(public={self.public!r})"

    def __eq__(self, other: object) -> bool:
        return self.public == other.public if isinstance(other, OwnerKey) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.public)

    def __reduce__(self) -> NoReturn:
        raise TypeError("An owner's key cannot be pickled or copied; save it to a file and load it there.")


def _read_key(file: Path) -> bytes:
    """The bytes of a key's file, which its user alone may read."""
    try:
        pem = _files.read_bytes(file, largest=LARGEST_KEY, error=LedgerError)
        mode = file.stat().st_mode
    except (LedgerError, OSError) as error:
        why = str(error).removeprefix(f"Cannot read {file.name}: ")
        raise LedgerError(f"The owner's key {file} cannot be read: {why}") from None
    if os.name == "posix" and mode & 0o077:
        raise LedgerError(f"The owner's key {file} is open to other users; run chmod 600 on it.")
    return pem


def is_protected(pem: bytes) -> bool:
    """Whether a key's file needs a passphrase."""
    return b"-----BEGIN ENCRYPTED PRIVATE KEY-----" in pem


def _private(file: Path, pem: bytes, passphrase: str | None) -> Ed25519PrivateKey:
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
        raise LedgerError(f"The passphrase does not open the owner's key {file}, or the file is damaged.")
    raise LedgerError(f"{file} does not hold an Ed25519 private key in PEM form.")


def verify_signature(public: str, signature: str, message: bytes) -> None:
    """Return if ``signature`` is the owner's on ``message``, else raise `TamperError`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, TypeError, ValueError):
        raise TamperError("The signature does not fit the message and the owner's public key.") from None


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The owner's signed statement that one line is in the ledger.

    Attributes
    ----------
    dataset : str
        The identity of the data set.
    index : int
        The number of the line in the chain of that data set; 0 opens its budget.
    kind : str
        ``"charge"``, ``"budget"``, or the kind of a zero-cost note such as
        ``"disclosure"``, which is not differentially private.
    digest : str
        SHA-256 of the line, which holds the digest of the line before it.
    head : str
        The head of the chain after this line: the same digest.
    question : str
        Digest of the question, empty where there is none.
    price : mapping or None
        Plain form of the price as charged, under the ledger's relation; None where nothing was charged.
    time : str
        When the line was written, by the owner's clock (UTC).
    public : str
        The owner's public key.
    signature : str
        Ed25519 over all the fields above.
    """

    dataset: str
    index: int
    kind: str
    digest: str
    head: str
    question: str
    price: Mapping[str, Any] | None = field(hash=False)
    time: str
    public: str
    signature: str

    def message(self) -> bytes:
        """The bytes that the owner signs."""
        signed = self.to_dict()
        del signed["signature"]
        return _DOMAIN + canonical(signed)

    def verify(self, public: str | None = None) -> None:
        """Raise `TamperError` unless the owner signed exactly this receipt.

        Parameters
        ----------
        public : str, optional
            The public key that the owner is known by. Without it the check
            says only that the receipt is whole, not whose it is.
        """
        where = f"The receipt of line {self.index} of {self.dataset!r}"
        if public is not None and public != self.public:
            raise TamperError(f"{where} is of another owner: {self.public} instead of {public}.")
        if self.head != self.digest:
            raise TamperError(f"{where} names a head that is not the line itself.")
        try:
            verify_signature(self.public, self.signature, self.message())
        except (InputError, TamperError):
            raise TamperError(f"{where} was changed: its signature does not hold.") from None

    def to_dict(self) -> dict[str, Any]:
        """Plain form for headers and files."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read the plain form back; `verify` says whether it is genuine."""
        names = {f.name for f in fields(cls)}
        if set(form) != names:
            raise InputError(f"A receipt has the fields {', '.join(sorted(names))} and no others.")
        for name in names - {"index", "price"}:
            if not isinstance(form[name], str):
                raise InputError(f"Expected {name} of a receipt to be text, got {type(form[name]).__name__}.")
        if type(form["index"]) is not int or not isinstance(form["price"], Mapping | None):
            raise InputError("Expected index of a receipt to be a whole number and price a mapping or None.")
        return cls(**form)


__all__ = ["OwnerKey", "Receipt", "verify_signature"]
