"""A refusal: the owner's signed statement that a question is not answered, and why.

>>> from privada.privacy import OwnerKey
>>> key = OwnerKey.generate()
>>> refusal = Refusal.signed(key, question="ab" * 32, reason="The budget does not allow it.")
>>> Refusal.from_bytes(refusal.to_bytes(), public=key.public).reason
'The budget does not allow it.'
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

from privada._text import bounded, printable_line
from privada.exceptions import TamperError, WireError
from privada.privacy.receipt import OwnerKey, verify_signature
from privada.privacy.wire import canonical

LARGEST_REFUSAL = 20_000  # bytes of a refusal: what is longer was not written by privada
_DOMAIN = b"privada refusal 1\n"  # a signed refusal can never pass for another signed message


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why an owner does not answer a question.

    Attributes
    ----------
    question : str
        Digest of the question.
    reason : str
        In words; bounded, and without control characters.
    time : str
        When, by the owner's clock (UTC).
    public, signature : str
        The owner's public key, and its signature over all of the above.
    """

    question: str
    reason: str
    time: str
    public: str
    signature: str = ""

    @classmethod
    def signed(cls, key: OwnerKey, *, question: str, reason: str) -> Self:
        """Refuse a question."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        bare = cls(question=question, reason=printable_line(bounded(reason)), time=now, public=key.public)
        return cls(**(asdict(bare) | {"signature": key.sign(bare._message())}))

    def _message(self) -> bytes:
        told = asdict(self)
        del told["signature"]
        return _DOMAIN + canonical(told)

    def to_bytes(self) -> bytes:
        """The file form: one JSON object."""
        return canonical({"privada": "refusal", **asdict(self)}) + b"\n"

    @classmethod
    def from_bytes(cls, blob: bytes, *, public: str | None = None) -> Self:
        """Read the file form and check its signature.

        Parameters
        ----------
        blob : bytes
            The file.
        public : str, optional
            The key that the owner is known by. Without it the signature says
            only that the refusal is whole, not whose it is.

        Raises
        ------
        WireError
            This is not a refusal.
        TamperError
            It is another owner's, or was changed.
        """
        told = _read(blob)
        made = cls(**told)
        if public is not None and public != made.public:
            raise TamperError("The refusal was signed by another owner's key.")
        verify_signature(made.public, made.signature, made._message())
        return made


def _read(blob: bytes) -> dict[str, Any]:
    """The fields of a refusal, all of them text."""
    try:
        if len(blob) > LARGEST_REFUSAL:
            raise ValueError
        told = json.loads(blob)
        kind = told.pop("privada")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WireError("The file is not a refusal.") from None
    names = {"question", "reason", "time", "public", "signature"}
    if kind != "refusal" or set(told) != names or not all(isinstance(each, str) for each in told.values()):
        raise WireError("The file is not a refusal.")
    return dict(told)


__all__ = ["LARGEST_REFUSAL", "Refusal"]
