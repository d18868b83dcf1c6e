"""Lines of a ledger, what makes a sequence of lines a chain, and how its key is handed over.

A line's digest is SHA-256 over the canonical JSON of the line, which contains the digest of the line before
it. The owner's signature is over the line's receipt, which contains the digest, so one signature covers the
line and its receipt.

*A new key takes over.* The holder of the old key appends one line of kind ``"key"`` to every chain. The line
is signed by the old key, costs nothing and names the new key; all later lines are signed by the new key. The
ledger keeps each `HandOver`, from the key that it was created with to the current one.

*Why a stolen old key is worthless afterwards.* The new key signs, too: the hand-over itself and, in each
chain, the position of the line, the digest of the line before it, the sum up to it and the digest of line 0.
Whoever holds only the old key can therefore neither append after the hand-over (`check_head` requires the new
key there), nor rewrite what was before it (the new key's signature covers its digest), nor raise a budget
(`check_opening`), nor cut the hand-over off (a chain must end under the current key). Receipts and releases
signed by the old key still verify under the old key. That is all it can still do, so everybody who knows its
public half must be informed.

*What is impossible.* Without the old key nobody can hand over: a lost key is a lost ledger, and with it the
budgets. A key that was replaced never returns.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from privada import _files
from privada.exceptions import InputError, LedgerError, TamperError
from privada.privacy import wire
from privada.privacy.accounting.accountant import Price
from privada.privacy.asker import Asker
from privada.privacy.receipt import OwnerKey, Receipt, verify_signature
from privada.privacy.wire import canonical

if TYPE_CHECKING:
    from privada.privacy.ledger.account import Account
    from privada.privacy.ledger.storage import Transaction

BUDGET, CHARGE, KEY = "budget", "charge", "key"
APPROVAL, REFUSAL, COPY = "approval", "refusal", "copy"
ALLOWANCE, RESTORE = "allowance", "restore"
KINDS = (BUDGET, CHARGE, KEY, APPROVAL, REFUSAL, COPY, ALLOWANCE, RESTORE)  # all others are notes
START = "0" * 64  # line 0 has this instead of the digest of a line before it
HAND_OVER_FORMAT = "privada-hand-over/1"
_HAND_OVER_DOMAIN = b"privada hand-over 1\n"
_KEY_LINE_DOMAIN = b"privada hand-over line 1\n"
_COLUMNS = (
    *("dataset", "kind", "time", "question", "cost", "spent"),
    *("purpose", "approver", "previous", "digest", "signature"),
)
_ASKER_COLUMNS = {"learner": "learner", "learner_key": "key", "project": "project", "stated": "purpose"}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a ledger.

    Attributes
    ----------
    dataset, index, kind, time, question
        As in `Receipt`.
    detail : mapping
        The filter of a budget line, the price of a charge, the text of a note; both price and text of a copy;
        the old and the new allowance; what a restored ledger lacked.
    cost, spent : int
        Whole grains that this line took, and that all lines up to it took.
    purpose : str
        What the charge was for, in the owner's words.
    asker : Asker or None
        The learner that asked, if known.
    approver : str
        The person who approved or refused the question, or restored the ledger, if any.
    previous, digest, signature : str
        The digest of the line before, the digest of this line, and the owner's signature.
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
        """The price that this line charged; None if it charged nothing."""
        return Price.from_dict(dict(self.detail)) if self.kind == CHARGE else None

    @property
    def answer_price(self) -> Price | None:
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
        hashed = replace(self, digest=self._compute_digest())
        return replace(hashed, signature=key.sign(hashed.receipt(key.public).message()))

    @property
    def is_whole(self) -> bool:
        """Whether the digest fits the content."""
        return self._compute_digest() == self.digest

    def check_seal(self, public: str) -> None:
        """Raise `TamperError` unless digest and signature hold."""
        if not self.is_whole:
            raise TamperError(f"{self.where} was edited: its digest does not fit its content.")
        try:
            self.receipt(public).verify(public)
        except TamperError:
            raise TamperError(f"{self.where} was not signed by the owner: the chain was rewritten.") from None

    def _compute_digest(self) -> str:
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
            **self._asker_columns(),
        }
        # Empty fields are left out, so that a column that is added later leaves old digests as they are.
        return sha256(canonical({name: value for name, value in hashed.items() if value != ""})).hexdigest()

    def _asker_columns(self) -> dict[str, str]:
        """The columns that say who asked; empty text if that is not known."""
        asker = {} if self.asker is None else self.asker.to_dict()
        return {column: asker.get(name, "") for column, name in _ASKER_COLUMNS.items()}

    def to_row(self) -> dict[str, Any]:
        """The columns of the line."""
        row = {name: getattr(self, name) for name in _COLUMNS} | self._asker_columns()
        return row | {"position": self.index, "detail": canonical(self.detail).decode("ascii")}

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> Line:
        """Read a row; text that is not JSON, or half an asker, can only come from outside."""
        index, edited = row["position"], f"Line {row['position']} of {row['dataset']!r} was edited"
        try:
            detail = json.loads(row["detail"])
        except (TypeError, ValueError):
            raise TamperError(f"{edited}: it cannot be read.") from None
        asker = {name: row[column] for column, name in _ASKER_COLUMNS.items()}
        try:
            learner = Asker(**asker) if any(asker.values()) else None
        except InputError:
            raise TamperError(f"{edited}: it names no learner.") from None
        return cls(index=index, detail=detail, asker=learner, **{name: row[name] for name in _COLUMNS})


def opening(dataset: str, account: Account, key: OwnerKey) -> Line:
    """Line 0: it fixes budget, filter and capacity."""
    return Line(dataset=dataset, index=0, kind=BUDGET, time=_now(), detail=account.to_dict()).sealed(key)


def following(head: Line, key: OwnerKey, *, cost: int = 0, index: int | None = None, **fields: Any) -> Line:
    """The line after ``head``; its number is the next one, unless lines between the two were lost."""
    line = Line(
        dataset=head.dataset,
        index=head.index + 1 if index is None else index,
        time=moment(head),
        cost=cost,
        spent=head.spent + cost,
        previous=head.digest,
        **fields,
    )
    return line.sealed(key)


def moment(head: Line) -> str:
    """The time of the next line: now, or the last line's if the clock has been put back since."""
    return max(_now(), head.time)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def check_text(*, longest: int, empty: bool = False, **named: Any) -> None:
    """Check text that is stored: not empty, of bounded length, and such that every database can keep it."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or len(value) > longest or not (value.strip() or (empty and not value)):
        raise InputError(f"Expected {name} to be text of at most {longest} characters, got {value!r:.80}.")
    if "\0" in value or value != value.encode("utf-8", "replace").decode("utf-8"):
        raise InputError(f"Expected {name} to be plain Unicode text, got {value!r:.80}.")


def check_digest(**named: Any) -> None:
    """Check the digest of a question."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or not re.fullmatch(r"(?:[0-9a-f]{2}){16,64}", value):
        raise InputError(f"Expected {name} to be a digest in lower-case hexadecimal, got {value!r:.80}.")


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """The statement of an owner's old key that a new one takes over, accepted by the new one.

    Attributes
    ----------
    old, new : str
        The public keys.
    time : str
        When, by the owner's clock (UTC).
    given, accepted : str
        Signatures of the old and of the new key over all of the above.
    """

    old: str
    new: str
    time: str
    given: str
    accepted: str

    @classmethod
    def sign(cls, old: OwnerKey, new: OwnerKey) -> Self:
        """Hand over from one key to another."""
        unsigned = cls(old=old.public, new=new.public, time=_now(), given="", accepted="")
        message = unsigned._message()
        return replace(unsigned, given=old.sign(message), accepted=new.sign(message))

    def verify(self, old: str | None = None) -> None:
        """Raise `TamperError` unless both keys signed, and the old one is the one that you know."""
        if old is not None and old != self.old:
            raise TamperError(f"The hand-over is of another owner: {self.old} instead of {old}.")
        try:
            verify_signature(self.old, self.given, self._message())
            verify_signature(self.new, self.accepted, self._message())
        except TamperError:
            raise TamperError("The hand-over was changed: a signature does not hold.") from None

    def _message(self) -> bytes:
        return _HAND_OVER_DOMAIN + canonical({"old": self.old, "new": self.new, "time": self.time})

    def to_dict(self) -> dict[str, str]:
        """Plain form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read the plain form back; `verify` says whether it is genuine."""
        names = {field.name for field in fields(cls)}
        if set(form) != names or not all(isinstance(value, str) for value in form.values()):
            raise InputError(f"A hand-over has the fields {', '.join(sorted(names))}, all text.")
        return cls(**form)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file for those who know the old key."""
        text = json.dumps({"format": HAND_OVER_FORMAT} | self.to_dict(), indent=2)
        return wire.write(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file; `verify` says whether it is genuine."""
        text = _files.read_text(path, largest=1 << 16, error=TamperError)
        try:
            form = dict(json.loads(text))
            if form.pop("format", None) != HAND_OVER_FORMAT:
                raise ValueError
            return cls.from_dict(form)
        except (ValueError, TypeError, RecursionError):
            raise TamperError(f"{Path(path).name} is not a hand-over of a key.") from None


def hand_over(tables: Transaction, old: OwnerKey, new: OwnerKey) -> tuple[HandOver, list[Line]]:
    """Write the hand-over into all chains. The caller locks everything, and commits."""
    check_current(tables, old.public)
    if new.public in keys(tables):
        raise LedgerError("The new key was this ledger's before; a key that was replaced never returns.")
    statement, lines = HandOver.sign(old, new), []
    for dataset in tables.names():
        head, first = tables.lock(dataset), tables.line(dataset, 0)
        check_head(tables, head, old.public)
        assert first is not None  # it has a last line
        check_opening(tables, first, old.public)
        agreed = _describe_place(dataset, head.index + 1, head.digest, head.spent, first.digest, statement)
        detail = {
            "text": f"The key {old.public} handed over to {new.public}.",
            "handover": statement.to_dict(),
            "opening": first.digest,
            "accepted": new.sign(agreed),
        }
        lines.append(following(head, old, kind=KEY, detail=detail))
        tables.append(lines[-1])
    tables.add_hand_over(statement)
    return statement, lines


def _describe_place(
    dataset: str, index: int, previous: str, spent: int, opening: str, statement: HandOver
) -> bytes:
    """What the new key signs of one chain: where the line is, all that is before it, and the budget."""
    place = {"dataset": dataset, "index": index, "previous": previous, "spent": spent}
    return _KEY_LINE_DOMAIN + canonical(
        place | {"opening": opening, "old": statement.old, "new": statement.new}
    )


def successor(line: Line, holder: str, *, opening: str | None = None) -> str:
    """The key that signs the next line: the holder's or, after a genuine hand-over, the new one."""
    if line.kind != KEY:
        return holder
    try:
        statement, agreed = HandOver.from_dict(line.detail["handover"]), line.detail["opening"]
        statement.verify(old=holder)
        place = _describe_place(line.dataset, line.index, line.previous, line.spent, agreed, statement)
        verify_signature(statement.new, line.detail["accepted"], place)
    except (InputError, KeyError, TamperError, TypeError):
        raise TamperError(f"{line.where} is no hand-over that both keys signed for this place.") from None
    if opening is not None and agreed != opening:
        raise TamperError(f"{line.where} was signed for another line 0: the budget was changed.")
    return statement.new


def keys(tables: Transaction) -> list[str]:
    """The public keys of a ledger in order, the current one last; each took over from the one before."""
    publics = [tables.owner()]
    for statement in tables.hand_overs():
        statement.verify(old=publics[-1])
        publics.append(statement.new)
    return publics


def check_current(tables: Transaction, public: str) -> None:
    """Raise an error unless ``public`` is the ledger's current key."""
    if (current := keys(tables)[-1]) != public:
        raise replaced_key(current)


def replaced_key(current: str) -> LedgerError:
    """The error of a key that was handed over."""
    return LedgerError(f"The key is not this ledger's any more: {current} took over. Load that key.")


def check_head(tables: Transaction, head: Line, public: str) -> None:
    """Raise an error unless the holder of ``public`` may write the line after ``head``."""
    try:
        if head.kind != KEY:
            head.check_seal(public)
            return
        old = _read_old_key(head)
        head.check_seal(old)
        holder = successor(head, old)
    except TamperError:
        check_current(tables, public)
        raise
    if holder != public:
        raise replaced_key(holder)


def check_opening(tables: Transaction, line: Line, public: str) -> None:
    """Raise an error unless ``public`` signed line 0, or took it over with the chain."""
    try:
        line.check_seal(public)
    except TamperError:
        hand_overs = tables.key_lines(line.dataset)
        if not hand_overs:
            raise
        check_head(tables, hand_overs[-1], public)
        if hand_overs[-1].detail["opening"] != line.digest or not line.is_whole:
            raise


def signer(tables: Transaction, line: Line, public: str) -> str:
    """The public key that a line was signed with: the one that the next hand-over from there replaced."""
    hand_overs = (later for later in tables.key_lines(line.dataset) if later.index >= line.index)
    return next(map(_read_old_key, hand_overs), public)


def _read_old_key(line: Line) -> str:
    """The key that a line of kind key hands over from, before anything of it is checked."""
    form = line.detail.get("handover")
    return str(form.get("old")) if isinstance(form, Mapping) else ""


__all__ = [
    "ALLOWANCE",
    "APPROVAL",
    "BUDGET",
    "CHARGE",
    "COPY",
    "HAND_OVER_FORMAT",
    "KEY",
    "KINDS",
    "REFUSAL",
    "RESTORE",
    "START",
    "HandOver",
    "Line",
    "check_current",
    "check_digest",
    "check_head",
    "check_opening",
    "check_text",
    "following",
    "hand_over",
    "keys",
    "moment",
    "opening",
    "replaced_key",
    "signer",
    "successor",
]
