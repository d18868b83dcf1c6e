"""One line of a ledger, and what makes a sequence of lines a chain.

A line's digest is SHA-256 over the canonical JSON of the line, which holds the
digest of the line before it. The owner's signature is over the line's receipt,
which holds the digest; so one signature covers the line and its receipt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import RowMapping

from privada.exceptions import InputError, TamperError
from privada.privacy.accounting.accountant import Price
from privada.privacy.asker import Asker
from privada.privacy.ledger.account import Account
from privada.privacy.receipt import OwnerKey, Receipt
from privada.privacy.wire import canonical

BUDGET, CHARGE, KEY = "budget", "charge", "key"
APPROVAL, REFUSAL, COPY = "approval", "refusal", "copy"
ALLOWANCE, RESTORE = "allowance", "restore"
START = "0" * 64  # what line 0 has instead of a line before it


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line, as it is in the ledger.

    Attributes
    ----------
    dataset, index, kind, time, question
        As in `Receipt`.
    detail : mapping
        The filter of a budget line, the price of a charge, the text of a note; of a copy both;
        old and new of an allowance; of a restored copy, what it lacked.
    cost, spent : int
        Whole grains that the line took, and all lines up to it.
    purpose : str
        What the charge was for, in the owner's words.
    asker : Asker or None
        The learner that asked, if that is known.
    approver : str
        The person who approved or refused the question, or restored the ledger, if one did.
    previous, digest, signature : str
        The digest of the line before, of this one, and the owner's signature.
    """

    dataset: str
    index: int
    kind: str
    time: str
    question: str = ""
    detail: Mapping[str, Any] = field(hash=False)
    cost: int = 0
    spent: int = 0
    purpose: str = ""
    asker: Asker | None = None
    approver: str = ""
    previous: str = START
    digest: str = ""
    signature: str = ""

    @property
    def where(self) -> str:
        """The line's name in messages."""
        return f"Line {self.index} of {self.dataset!r}"

    @property
    def price(self) -> Price | None:
        """What was charged by this line, None if nothing was."""
        return Price.from_dict(dict(self.detail)) if self.kind == CHARGE else None

    @property
    def told(self) -> Price | None:
        """What the answer that went to `asker` cost whoever paid for it; None if there was no answer."""
        plain = {CHARGE: self.detail, COPY: self.detail.get("price")}.get(self.kind)
        return None if plain is None else Price.from_dict(dict(plain))

    def receipt(self, public: str) -> Receipt:
        """The receipt of this line under an owner's public key."""
        return Receipt(
            dataset=self.dataset,
            index=self.index,
            kind=self.kind,
            digest=self.digest,
            head=self.digest,
            question=self.question,
            price=self.detail if self.kind == CHARGE else None,
            time=self.time,
            public=public,
            signature=self.signature,
        )

    def sealed(self, key: OwnerKey) -> Line:
        """The line with its digest and the owner's signature."""
        hashed = replace(self, digest=self._computed_digest())
        return replace(hashed, signature=key.sign(hashed.receipt(key.public).message()))

    @property
    def is_whole(self) -> bool:
        """Whether the digest is that of the content."""
        return self._computed_digest() == self.digest

    def check_seal(self, public: str) -> None:
        """Raise `TamperError` unless digest and signature hold."""
        if not self.is_whole:
            raise TamperError(f"{self.where} was edited: its digest does not fit its content.")
        try:
            self.receipt(public).verify(public)
        except TamperError:
            raise TamperError(f"{self.where} was not signed by the owner: the chain was rewritten.") from None

    def _computed_digest(self) -> str:
        hashed = {
            "dataset": self.dataset,
            "index": self.index,
            "kind": self.kind,
            "time": self.time,
            "question": self.question,
            "detail": self.detail,
            "cost": self.cost,
            "spent": self.spent,
            "purpose": self.purpose,
            "previous": self.previous,
            "approver": self.approver,
            **self._asked_by(),
        }
        filled = {name: value for name, value in hashed.items() if value != ""}
        return sha256(canonical(filled)).hexdigest()

    def _asked_by(self) -> dict[str, str]:
        """The columns that say who asked; empty text if that is not known."""
        told = {} if self.asker is None else self.asker.to_dict()
        return {column: told.get(name, "") for column, name in _ASKER.items()}

    def to_row(self) -> dict[str, Any]:
        """The columns of the line."""
        row = {name: getattr(self, name) for name in _COLUMNS} | self._asked_by()
        return row | {"position": self.index, "detail": canonical(self.detail).decode("ascii")}

    @classmethod
    def from_row(cls, row: RowMapping) -> Line:
        """Read a row; text that is no JSON can only come from outside."""
        index = row["position"]
        try:
            detail = json.loads(row["detail"])
        except (TypeError, ValueError):
            raise TamperError(f"Line {index} of {row['dataset']!r} was edited: it cannot be read.") from None
        made = {name: row[name] for name in _COLUMNS}
        return cls(index=index, detail=detail, asker=_read_asker(row), **made)


def _read_asker(row: RowMapping) -> Asker | None:
    told = {name: row[column] for column, name in _ASKER.items()}
    if not any(told.values()):
        return None
    try:
        return Asker(**told)
    except InputError:
        raise TamperError(
            f"Line {row['position']} of {row['dataset']!r} was edited: it names no learner."
        ) from None


_COLUMNS = (
    "dataset",
    "kind",
    "time",
    "question",
    "cost",
    "spent",
    "purpose",
    "approver",
    "previous",
    "digest",
    "signature",
)
_ASKER = {"learner": "learner", "learner_key": "key", "project": "project", "stated": "purpose"}


def opening(dataset: str, account: Account, key: OwnerKey) -> Line:
    """Line 0: it fixes budget, filter and capacity."""
    return Line(dataset=dataset, index=0, kind=BUDGET, time=_now(), detail=account.to_dict()).sealed(key)


def following(head: Line, key: OwnerKey, *, cost: int, index: int | None = None, **fields: Any) -> Line:
    """The line after ``head``; its number is the next one, unless lines between them were lost."""
    made = Line(
        dataset=head.dataset,
        index=head.index + 1 if index is None else index,
        time=moment(head),
        cost=cost,
        spent=head.spent + cost,
        previous=head.digest,
        **fields,
    )
    return made.sealed(key)


def moment(head: Line) -> str:
    """The time of the next line: now, or the last line's if the clock has been put back since."""
    return max(_now(), head.time)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def read_account(line: Line) -> Account:
    """The account that line 0 opened."""
    if line.kind != BUDGET:
        raise TamperError(f"{line.where} does not open a budget.")
    try:
        return Account.from_dict(line.dataset, line.detail)
    except (InputError, KeyError, TypeError) as error:
        raise TamperError(f"{line.where} holds no budget that can be read: {error}.") from None


def check_text(*, longest: int, empty: bool = False, **named: Any) -> None:
    """Check text that is stored: it is not empty, has a largest length, and every database can keep it."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or len(value) > longest or not (value.strip() or (empty and not value)):
        raise InputError(f"Expected {name} to be text of at most {longest} characters, got {value!r:.80}.")
    if "\0" in value or value != value.encode("utf-8", "replace").decode("utf-8"):
        raise InputError(f"Expected {name} to be plain Unicode text, got {value!r:.80}.")


def check_digest(**named: Any) -> None:
    """Check what is to be the digest of a question."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or not re.fullmatch(r"(?:[0-9a-f]{2}){16,64}", value):
        raise InputError(f"Expected {name} to be a digest in lower-case hexadecimal, got {value!r:.80}.")


__all__ = [
    "ALLOWANCE",
    "APPROVAL",
    "BUDGET",
    "CHARGE",
    "COPY",
    "KEY",
    "REFUSAL",
    "RESTORE",
    "START",
    "Line",
    "check_digest",
    "check_text",
    "following",
    "moment",
    "opening",
    "read_account",
]
