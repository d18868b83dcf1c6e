"""Learners' receipts against the ledger: which lines they prove, and what does not fit.

A receipt that somebody else holds is the only witness against an owner's own hand: without it, a tail that
was cut off, or a chain that was rewritten with the owner's key, cannot be found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from privada._text import printable_line
from privada.exceptions import PrivadaError
from privada.parties.owner import Owner
from privada.privacy.receipt import Receipt
from privada.privacy.release import Release
from privada.report.tables import Table

MOST_FILES = 100
LARGEST_RECEIPT = 1 << 16  # bytes of a receipt as JSON
LARGEST_RELEASE = 1 << 24  # bytes
LARGEST_UPLOAD = 1 << 25  # bytes of all files together
LONGEST_NAME = 100
WHOLE = "holds"


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What was found about one file.

    Attributes
    ----------
    file : str
        Its name, as far as it can be shown.
    about : str
        The data set and line that the receipt names; empty if the file is no receipt.
    signature : str
        ``"holds"``, or why it does not.
    ledger : str
        The line that it matches, or what is wrong with it.
    matches : bool
        Whether the signature holds and the line is the one that the receipt was given for.
    """

    file: str
    about: str = ""
    signature: str = ""
    ledger: str = ""
    matches: bool = False


def read_upload(name: str, blob: bytes) -> Receipt:
    """The receipt of a release, or a receipt in JSON; sizes are checked before anything is parsed."""
    if name.lower().endswith(".json"):
        return Receipt.from_json(blob, name=show_name(name), largest=LARGEST_RECEIPT)
    return Release.from_bytes(blob, largest=LARGEST_RELEASE).receipt


def show_name(name: str) -> str:
    r"""The last part of a file's name, as one short line.

    >>> show_name("C:\\mine\\..\\a\n.release")
    'a\\n.release'
    """
    return printable_line(PurePosixPath(name.replace("\\", "/")).name)[:LONGEST_NAME]


def check_uploads(owners: Sequence[Owner], files: Iterable[tuple[str, bytes]]) -> list[Table]:
    """Compare files with the ledgers of these owners: one table of files, one of lines without a receipt."""
    read: list[tuple[str, Receipt | str]] = []
    for name, blob in files:
        try:
            read.append((show_name(name), read_upload(name, blob)))
        except PrivadaError as error:
            read.append((show_name(name), str(error)))
    faults = _faults(owners, [found for _, found in read if isinstance(found, Receipt)])
    checked = [_check(owners, name, found, faults) for name, found in read]
    shown = Table(
        title="Receipts",
        columns=("file", "receipt of", "signature", "ledger"),
        rows=tuple((one.file, one.about, one.signature, one.ledger) for one in checked),
        note=f"{sum(one.matches for one in checked)} of {len(checked)} files match the ledger.",
    )
    held = {
        (found.dataset, found.index)
        for (_, found), one in zip(read, checked, strict=True)
        if isinstance(found, Receipt) and one.matches
    }
    return [shown, _unproven(owners, held)]


def _faults(owners: Sequence[Owner], receipts: Sequence[Receipt]) -> dict[Receipt, str]:
    """What is wrong, by receipt: all are verified at once, and one by one if that fails."""
    faults: dict[Receipt, str] = {}
    for owner in owners:
        own = [each for each in receipts if each.dataset == owner.dataset]
        if _fault(owner, own):
            faults |= {each: fault for each in own if (fault := _fault(owner, [each]))}
    return faults


def _fault(owner: Owner, receipts: Sequence[Receipt]) -> str:
    try:
        owner.ledger.verify(receipts)
    except PrivadaError as error:
        return str(error)
    return ""


def _check(
    owners: Sequence[Owner], file: str, found: Receipt | str, faults: Mapping[Receipt, str]
) -> Checked:
    if isinstance(found, str):
        return Checked(file=file, signature="not checked", ledger=found)
    ledger = faults.get(found, "")
    if all(each.dataset != found.dataset for each in owners):
        ledger = "No such data set is served here."
    return Checked(
        file=file,
        about=printable_line(f"{found.dataset}, line {found.index}")[:LONGEST_NAME],
        signature=_signature(owners, found),
        ledger=ledger or f"Matches line {found.index}.",
        matches=not ledger,
    )


def _signature(owners: Sequence[Owner], receipt: Receipt) -> str:
    """Whether a key of these owners signed the receipt, today's or one that it replaced."""
    keys = {key for each in owners for key in (each.public_key, *(h.old for h in each.ledger.hand_overs()))}
    try:
        receipt.verify()
    except PrivadaError:
        return "does not hold"
    return WHOLE if receipt.public in keys else "of another owner"


def _unproven(owners: Sequence[Owner], held: set[tuple[str, int]]) -> Table:
    """Charged lines for which none of the files is a receipt."""
    rows = tuple(
        (owner.dataset, str(line.index), line.asker.learner if line.asker else "", line.time[:16])
        for owner in owners
        for line in owner.ledger.lines(owner.dataset)
        if line.kind == "charge" and (owner.dataset, line.index) not in held
    )
    note = "" if rows else "Every charge has a receipt among these files."
    return Table(
        title="Charges without a receipt among these files",
        columns=("data set", "line", "learner", "time (UTC)"),
        rows=rows,
        note=note,
    )


__all__ = [
    "LARGEST_RECEIPT",
    "LARGEST_RELEASE",
    "LARGEST_UPLOAD",
    "MOST_FILES",
    "Checked",
    "check_uploads",
    "read_upload",
]
