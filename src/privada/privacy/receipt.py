"""The receipt of one ledger line, which the owner signs and the learner keeps.

It contains the head of the owner's chain after the line, so its holder can later prove that the line was
edited, that the chain was rewritten, or that its tail was cut off (`privada.privacy.Ledger.verify`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from privada._files import LARGEST_TEXT as LARGEST_JSON
from privada._notebook import describe
from privada.exceptions import InputError, TamperError
from privada.privacy.keys import OwnerKey, verify_signature
from privada.privacy.wire import canonical

_DOMAIN = b"privada receipt 1\n"  # a signed receipt can never pass for another signed message


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The owner's signed statement that one line is in the ledger.

    Attributes
    ----------
    dataset : str
        The name of the data set.
    index : int
        The number of the line in the chain of that data set; 0 opens its budget.
    kind : str
        ``"charge"``, ``"budget"``, or the kind of a free note such as ``"disclosure"``, which is
        not differentially private.
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

        Without the owner's ``public`` key, the check says only that nobody changed the receipt, not who
        signed it.
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

    def _repr_html_(self) -> str:
        names = ("dataset", "index", "kind", "time", "question", "digest", "public")
        facts = [(name, str(getattr(self, name))) for name in names]
        return describe("Receipt", [(name, text) for name, text in facts if text])

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

    @classmethod
    def from_json(cls, text: str | bytes, *, name: str, largest: int = LARGEST_JSON) -> Self:
        """Read a receipt, or anything in JSON that holds one as ``receipt``; errors name the file."""
        if len(text) > largest:
            raise TamperError(f"{name} is larger than {largest} bytes.")
        try:
            plain = json.loads(text)
            return cls.from_dict(plain.get("receipt", plain))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise TamperError(f"{name} is not a receipt in JSON.") from None


__all__ = ["OwnerKey", "Receipt", "verify_signature"]
