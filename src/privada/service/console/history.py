"""What the ledger says: lines that can be searched, releases in words, and receipts that prove lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from privada._text import printable_line
from privada.exceptions import PrivadaError
from privada.parties.owner import Owner
from privada.privacy.ledger import Verification
from privada.privacy.ledger.account import read_account
from privada.privacy.ledger.chain import Line
from privada.privacy.receipt import Receipt
from privada.privacy.release import Release
from privada.report.ledger import budgets_table, learners_table, lines_table
from privada.report.tables import Table
from privada.report.wording import say_risk

MOST_LINES = 500  # on one page
MOST_FILES = 100
LARGEST_RECEIPT = 1 << 16  # bytes of a receipt as JSON
LARGEST_RELEASE = 1 << 24  # bytes
LARGEST_UPLOAD = 1 << 25  # bytes of all files together
LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True)
class Search:
    """Which lines to find: whose, of which method, from which day to which; empty is all."""

    learner: str = ""
    method: str = ""
    since: str = ""
    until: str = ""

    def holds(self, line: Mapping[str, Any]) -> bool:
        """Whether an exported line is one of them.

        >>> line = {"asker": {"learner": "Alice"}, "purpose": "cells.statistics", "time": "2026-01-02T03:04"}
        >>> Search(learner="ali", method="cells", until="2026-01-02").holds(line)
        True
        >>> Search(since="2027").holds(line)
        False
        """
        who = line["asker"]["learner"] if line["asker"] else ""
        day = str(line["time"])[:10]
        return (
            self.learner.casefold() in who.casefold()
            and self.method.casefold() in str(line["purpose"]).casefold()
            and self.since <= day
            and (not self.until or day <= self.until)
        )


def tabulate_lines(owner: Owner, search: Search, *, most: int | None = MOST_LINES) -> list[Table]:
    """Return the budget, the learners, and the lines of a search."""
    export = owner.ledger.export(owner.dataset)
    datasets = {
        name: {**account, "lines": [line for line in account["lines"] if search.holds(line)]}
        for name, account in export["datasets"].items()
    }
    lines = lines_table({**export, "datasets": datasets}, title=f"Lines of {owner.dataset}", last=most)
    budget = budgets_table(export, title=f"Budget of {owner.dataset}")
    return [budget, learners_table(export, title=f"Learners of {owner.dataset}"), lines]


def list_answered(owner: Owner, search: Search) -> list[tuple[str, str]]:
    """Return digest and title of each answered question of a search, the last first."""
    (account,) = owner.ledger.export(owner.dataset)["datasets"].values()
    charged = [line for line in account["lines"] if line["kind"] == "charge" and search.holds(line)]
    titles = []
    for line in charged[::-1][:MOST_LINES]:
        learner = f" for {line['asker']['learner']}" if line["asker"] else ""
        title = f"Line {line['index']}, {str(line['time'])[:10]}: {line['purpose']}{learner}"
        titles.append((line["question"], title))
    return titles


@dataclass(frozen=True, kw_only=True)
class OpenedRelease:
    """A release in words, without its numbers: its content, the line that paid for it, and its risk."""

    words: tuple[str, ...]
    line: Line
    share: float
    risk: str
    receipt: str


def open_release(owner: Owner, digest: str) -> OpenedRelease | None:
    """Return what was released for a question; None if nothing is kept."""
    blob = owner.ledger.kept(owner.dataset, digest)
    if blob is None:
        return None
    release = Release.from_bytes(blob)
    lines = {line.index: line for line in owner.ledger.lines(owner.dataset)}
    line, account = lines[release.receipt.index], read_account(lines[0])
    return OpenedRelease(
        words=tuple(release.explain().splitlines()),
        line=line,
        share=line.cost / account.capacity,
        risk=say_risk(release.guarantee),
        receipt=release.receipt.digest,
    )


def verify(owner: Owner) -> Verification:
    """Check chains, sums and signatures, against the receipts in all releases that are kept."""
    lines = [line for line in owner.ledger.lines(owner.dataset) if line.kind == "charge"]
    releases = (owner.ledger.kept(owner.dataset, line.question) for line in lines)
    return owner.ledger.verify([Release.from_bytes(blob).receipt for blob in releases if blob is not None])


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The result of checking one file."""

    file: str  # its name, as far as it can be shown
    about: str = ""  # the data set and line that the receipt names; empty if the file is no receipt
    signature: str = ""  # "holds", or why it does not
    ledger: str = ""  # the line that it matches, or what is wrong with it
    matches: bool = False  # whether the ledger has the line that the receipt was given for


def read_upload(name: str, blob: bytes) -> Receipt:
    """Return the receipt of a release, or a receipt in JSON; sizes are checked before anything is parsed."""
    if name.lower().endswith(".json"):
        return Receipt.from_json(blob, name=show_name(name), largest=LARGEST_RECEIPT)
    return Release.from_bytes(blob, largest=LARGEST_RELEASE).receipt


def show_name(name: str) -> str:
    r"""Return the last part of a file's name, as one short line.

    >>> show_name("C:\\mine\\..\\a\n.release")
    'a\\n.release'
    """
    return printable_line(PurePosixPath(name.replace("\\", "/")).name)[:LONGEST_NAME]


def check_uploads(owners: Sequence[Owner], files: Iterable[tuple[str, bytes]]) -> list[Table]:
    """Compare files with the ledgers of owners: one table of files, one of lines without a receipt.

    A receipt that somebody else holds is the only witness against an owner's own hand: without it, a tail
    that was cut off, or a chain that was rewritten with the owner's key, cannot be found.
    """
    uploads: list[tuple[str, Receipt | str]] = []
    for name, blob in files:
        try:
            uploads.append((show_name(name), read_upload(name, blob)))
        except PrivadaError as error:
            uploads.append((show_name(name), str(error)))
    receipts = [receipt for _, receipt in uploads if isinstance(receipt, Receipt)]
    faults: dict[Receipt, str] = {}
    for owner in owners:
        own = [receipt for receipt in receipts if receipt.dataset == owner.dataset]
        # All are verified at once, and one by one only if that fails.
        if _find_fault(owner, own):
            faults |= {receipt: fault for receipt in own if (fault := _find_fault(owner, [receipt]))}
    checked, proven = [], set()
    for name, receipt in uploads:
        if isinstance(receipt, str):
            checked.append(Checked(file=name, signature="not checked", ledger=receipt))
            continue
        checked.append(_check(owners, name, receipt, faults.get(receipt, "")))
        if checked[-1].matches:
            proven.add((receipt.dataset, receipt.index))
    unproven = tuple(
        (owner.dataset, str(line.index), line.asker.learner if line.asker else "", line.time[:16])
        for owner in owners
        for line in owner.ledger.lines(owner.dataset)
        if line.kind == "charge" and (owner.dataset, line.index) not in proven
    )
    return [
        Table(
            title="Receipts",
            columns=("file", "receipt of", "signature", "ledger"),
            rows=tuple((one.file, one.about, one.signature, one.ledger) for one in checked),
            note=f"{sum(one.matches for one in checked)} of {len(checked)} files match the ledger.",
        ),
        Table(
            title="Charges without a receipt among these files",
            columns=("data set", "line", "learner", "time (UTC)"),
            rows=unproven,
            note="" if unproven else "Every charge has a receipt among these files.",
        ),
    ]


def _find_fault(owner: Owner, receipts: Sequence[Receipt]) -> str:
    try:
        owner.ledger.verify(receipts)
    except PrivadaError as error:
        return str(error)
    return ""


def _check(owners: Sequence[Owner], file: str, receipt: Receipt, fault: str) -> Checked:
    if all(owner.dataset != receipt.dataset for owner in owners):
        fault = "No such data set is served here."
    # The keys that sign today, and those that they replaced.
    keys = {owner.public_key for owner in owners}
    keys |= {change.old for owner in owners for change in owner.ledger.hand_overs()}
    try:
        receipt.verify()
        signature = "holds" if receipt.public in keys else "of another owner"
    except PrivadaError:
        signature = "does not hold"
    return Checked(
        file=file,
        about=printable_line(f"{receipt.dataset}, line {receipt.index}")[:LONGEST_NAME],
        signature=signature,
        ledger=fault or f"Matches line {receipt.index}.",
        matches=not fault,
    )


__all__ = [
    "LARGEST_UPLOAD", "MOST_FILES", "OpenedRelease", "Search", "check_uploads", "list_answered",
    "open_release", "tabulate_lines", "verify",
]  # fmt: skip
