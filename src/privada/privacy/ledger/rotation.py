"""A new key takes over a ledger, and the old one signs for it.

The holder of the old key appends one line of kind ``"key"`` to every chain. The
line is signed by the old key, costs nothing and names the new one; all later
lines are signed by the new key. The ledger's identity follows: the table
``successors`` holds each `HandOver`, from the key that the ledger was made with
to the one of today.

*Why a stolen old key is worth nothing afterwards.* The new key signs, too: the
hand-over itself, and in each chain the place of the line, the digest of the line
before it, the sum up to it and the digest of line 0. Whoever holds the old key
alone can therefore neither append after the hand-over (`check_head` wants the
new key there), nor rewrite what was before it (the new key's signature is on
its digest), nor raise a budget (`check_opening`), nor cut the hand-over off (a
chain must end under the key of today). Receipts and releases that the old key
signs keep verifying under the old key; that is all that it can still do, so
everybody who knows its public half must be informed.

*What cannot be done.* Without the old key nobody can hand over: a lost key is a
lost ledger, and with it the budgets. A key that was replaced never returns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert, inspect, select

from privada import _files
from privada.exceptions import InputError, LedgerError, TamperError
from privada.privacy import wire
from privada.privacy.ledger.database import schema, table
from privada.privacy.ledger.lines import KEY, Line, following
from privada.privacy.receipt import OwnerKey, verify_signature
from privada.privacy.wire import canonical

FORMAT = "privada-hand-over/1"
_DOMAIN = b"privada hand-over 1\n"
_LINE_DOMAIN = b"privada hand-over line 1\n"

successors = Table(  # made by the first hand-over; a ledger without one has a single key
    "successors",
    MetaData(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("statement", Text, nullable=False),
)


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """The word of an owner's old key that a new one takes over, accepted by the new one.

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
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        message = _message(old.public, new.public, time)
        return cls(
            old=old.public, new=new.public, time=time, given=old.sign(message), accepted=new.sign(message)
        )

    def verify(self, old: str | None = None) -> None:
        """Raise `TamperError` unless both keys signed, and the old one is the one that you know."""
        if old is not None and old != self.old:
            raise TamperError(f"The hand-over is of another owner: {self.old} instead of {old}.")
        message = _message(self.old, self.new, self.time)
        try:
            verify_signature(self.old, self.given, message)
            verify_signature(self.new, self.accepted, message)
        except TamperError:
            raise TamperError("The hand-over was changed: a signature does not hold.") from None

    def to_dict(self) -> dict[str, str]:
        """Plain form."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read the plain form back; `verify` says whether it is genuine."""
        names = {each.name for each in fields(cls)}
        if set(form) != names or not all(isinstance(value, str) for value in form.values()):
            raise InputError(f"A hand-over has the fields {', '.join(sorted(names))}, all text.")
        return cls(**form)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file that those who know the old key should have."""
        text = json.dumps({"format": FORMAT} | self.to_dict(), indent=2)
        return wire.write(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file; `verify` says whether it is genuine."""
        text = _files.read_text(path, largest=1 << 16, error=TamperError)
        try:
            form = dict(json.loads(text))
            if form.pop("format", None) != FORMAT:
                raise ValueError
            return cls.from_dict(form)
        except (ValueError, TypeError, RecursionError):
            raise TamperError(f"{Path(path).name} is not a hand-over of a key.") from None


def _message(old: str, new: str, time: str) -> bytes:
    return _DOMAIN + canonical({"old": old, "new": new, "time": time})


def hand_over(connection: Connection, old: OwnerKey, new: OwnerKey) -> tuple[HandOver, list[Line]]:
    """Write the hand-over into all chains. The caller holds the lock on everything, and commits."""
    check_current(connection, old.public)
    known = keys(connection)
    if new.public in known:
        raise LedgerError("The new key was this ledger's before; a key that was replaced never returns.")
    made = HandOver.sign(old, new)
    written = [_hand_over_chain(connection, name, old, new, made) for name in table.names(connection)]
    if len(known) == 1:
        _create(connection)
    statement = canonical(made.to_dict()).decode("ascii")
    connection.execute(
        insert(successors), {"position": len(known), "owner": new.public, "statement": statement}
    )
    return made, written


def _hand_over_chain(
    connection: Connection, dataset: str, old: OwnerKey, new: OwnerKey, made: HandOver
) -> Line:
    head, first = table.locked_last(connection, dataset), table.first(connection, dataset)
    check_head(connection, head, old.public)
    assert first is not None
    check_opening(connection, first, old.public)
    place = {"dataset": dataset, "index": head.index + 1, "previous": head.digest, "spent": head.spent}
    agreed = place | {"opening": first.digest, "old": old.public, "new": new.public}
    detail = {
        "text": f"The key {old.public} handed over to {new.public}.",
        "handover": made.to_dict(),
        "opening": first.digest,
        "accepted": new.sign(_LINE_DOMAIN + canonical(agreed)),
    }
    line = following(head, old, kind=KEY, cost=0, detail=detail)
    table.append(connection, line)
    return line


def successor(line: Line, holder: str, *, opening: str | None = None) -> str:
    """Whose line comes next: the holder's, or after a genuine hand-over the new key's; or `TamperError`."""
    if line.kind != KEY:
        return holder
    try:
        made, agreed = HandOver.from_dict(line.detail["handover"]), line.detail["opening"]
        made.verify(old=holder)
        place = {"dataset": line.dataset, "index": line.index, "previous": line.previous, "spent": line.spent}
        signed = place | {"opening": agreed, "old": made.old, "new": made.new}
        verify_signature(made.new, line.detail["accepted"], _LINE_DOMAIN + canonical(signed))
    except (InputError, KeyError, TamperError, TypeError):
        raise TamperError(f"{line.where} is no hand-over that both keys signed for this place.") from None
    if opening is not None and agreed != opening:
        raise TamperError(f"{line.where} was signed for another line 0: the budget was changed.")
    return made.new


def check_current(connection: Connection, public: str) -> None:
    """Raise an error unless ``public`` is the ledger's key of today."""
    if (now := keys(connection)[-1]) != public:
        raise _replaced(now)


def check_head(connection: Connection, head: Line, public: str) -> None:
    """Raise an error unless the holder of ``public`` may write the line after ``head``."""
    try:
        if head.kind != KEY:
            head.check_seal(public)
            return
        old = _old(head)
        head.check_seal(old)
        following_key = successor(head, old)
    except TamperError:
        check_current(connection, public)
        raise
    if following_key != public:
        raise _replaced(following_key)


def check_opening(connection: Connection, line: Line, public: str) -> None:
    """Raise an error unless ``public`` signed line 0, or took it over with the chain."""
    try:
        line.check_seal(public)
    except TamperError:
        last = _last_hand_over(connection, line.dataset)
        if last is None:
            raise
        check_head(connection, last, public)
        if last.detail["opening"] != line.digest or not line.is_whole:
            raise


def signer(connection: Connection, line: Line, public: str) -> str:
    """The public key that a line was signed with: the one that the next hand-over from there replaced."""
    if not _exists(connection):
        return public
    query = (
        select(schema.lines)
        .where(schema.lines.c.dataset == line.dataset, schema.lines.c.kind == KEY)
        .where(schema.lines.c.position >= line.index)
        .order_by(schema.lines.c.position)
        .limit(1)
    )
    row = connection.execute(query).mappings().first()
    return public if row is None else _old(Line.from_row(row))


def keys(connection: Connection) -> list[str]:
    """The public keys of a ledger in order, the one of today last; each took over from the one before."""
    known = [str(connection.scalar(select(schema.identity.c.owner)))]
    for made in hand_overs(connection):
        made.verify(old=known[-1])
        known.append(made.new)
    return known


def hand_overs(connection: Connection) -> list[HandOver]:
    """All hand-overs of a ledger, the oldest first."""
    if not _exists(connection):
        return []
    texts: Sequence[str] = connection.scalars(
        select(successors.c.statement).order_by(successors.c.position)
    ).all()
    try:
        return [HandOver.from_dict(json.loads(text)) for text in texts]
    except (ValueError, TypeError):
        raise TamperError("A hand-over of the ledger's key was edited: it cannot be read.") from None


def copy_successors(source: Sequence[HandOver], connection: Connection) -> None:
    """Write the hand-overs of one ledger into a copy of it."""
    if source:
        _create(connection)
    for position, made in enumerate(source, start=1):
        statement = canonical(made.to_dict()).decode("ascii")
        connection.execute(
            insert(successors), {"position": position, "owner": made.new, "statement": statement}
        )


def _exists(connection: Connection) -> bool:
    return bool(inspect(connection).has_table(successors.name))


def _create(connection: Connection) -> None:
    """Make the table, keep it append-only, and an index that finds the few lines of kind key."""
    successors.create(connection)
    for statement in _STATEMENTS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(
        f"CREATE INDEX IF NOT EXISTS key_lines ON lines (dataset, position) WHERE kind = '{KEY}'"
    )


_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
# INSERT OR REPLACE deletes a row without firing its delete trigger
_REPLACING = "WHEN EXISTS (SELECT 1 FROM successors WHERE position = NEW.position)"
_STATEMENTS = {
    "sqlite": (
        f"CREATE TRIGGER successors_no_update BEFORE UPDATE ON successors {_REFUSE}",
        f"CREATE TRIGGER successors_no_delete BEFORE DELETE ON successors {_REFUSE}",
        f"CREATE TRIGGER successors_no_replace BEFORE INSERT ON successors {_REPLACING} {_REFUSE}",
    ),
    "postgresql": (
        "CREATE TRIGGER successors_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON successors "
        "FOR EACH STATEMENT EXECUTE FUNCTION privada_append_only()",
    ),
}


def _last_hand_over(connection: Connection, dataset: str) -> Line | None:
    if not _exists(connection):
        return None
    query = (
        select(schema.lines)
        .where(schema.lines.c.dataset == dataset, schema.lines.c.kind == KEY)
        .order_by(schema.lines.c.position.desc())
        .limit(1)
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else Line.from_row(row)


def _old(line: Line) -> str:
    """The key that a line of kind key hands over from, before anything of it is checked."""
    made = line.detail.get("handover")
    return str(made.get("old")) if isinstance(made, Mapping) else ""


def _replaced(now: str) -> LedgerError:
    return LedgerError(f"The key is not this ledger's any more: {now} took over. Load that key.")


__all__ = [
    "HandOver",
    "check_current",
    "check_head",
    "check_opening",
    "copy_successors",
    "hand_over",
    "hand_overs",
    "keys",
    "signer",
    "successor",
]
