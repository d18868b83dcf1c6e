"""What the ledger says: lines that can be searched, releases in words, and a check of everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privada.parties.owner import Owner
from privada.privacy.ledger import Verification
from privada.privacy.ledger.account import read_account
from privada.privacy.ledger.chain import Line
from privada.privacy.release import Release
from privada.report.ledger import budgets_table, learners_table, lines_table
from privada.report.tables import Table
from privada.report.wording import say_risk

MOST_LINES = 500  # on one page


@dataclass(frozen=True, kw_only=True)
class Search:
    """What lines are looked for: whose, of which method, from which day to which; empty is all."""

    learner: str = ""
    method: str = ""
    since: str = ""
    until: str = ""

    def holds(self, line: Mapping[str, Any]) -> bool:
        """Whether an exported line is looked for.

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


def tables(owner: Owner, search: Search, *, most: int | None = MOST_LINES) -> list[Table]:
    """Budget, learners, and the lines that are looked for."""
    export = owner.ledger.export(owner.dataset)
    found = {
        name: {**account, "lines": [line for line in account["lines"] if search.holds(line)]}
        for name, account in export["datasets"].items()
    }
    lines = lines_table({**export, "datasets": found}, title=f"Lines of {owner.dataset}", last=most)
    budget = budgets_table(export, title=f"Budget of {owner.dataset}")
    return [budget, learners_table(export, title=f"Learners of {owner.dataset}"), lines]


def answered(owner: Owner, search: Search) -> list[tuple[str, str]]:
    """Digest and title of each answered question that is looked for, the last first."""
    (account,) = owner.ledger.export(owner.dataset)["datasets"].values()
    charged = [line for line in account["lines"] if line["kind"] == "charge" and search.holds(line)]
    return [(line["question"], _title(line)) for line in charged[::-1][:MOST_LINES]]


def _title(line: Mapping[str, Any]) -> str:
    who = f" for {line['asker']['learner']}" if line["asker"] else ""
    return f"Line {line['index']}, {str(line['time'])[:10]}: {line['purpose']}{who}"


@dataclass(frozen=True, kw_only=True)
class OpenedRelease:
    """A release in words, without its numbers: what it holds, the line that paid for it, and its risk."""

    words: tuple[str, ...]
    line: Line
    share: float
    risk: str
    receipt: str


def open_release(owner: Owner, digest: str) -> OpenedRelease | None:
    """What was released for a question; None if nothing is kept."""
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
    kept = (owner.ledger.kept(owner.dataset, line.question) for line in lines)
    return owner.ledger.verify([Release.from_bytes(blob).receipt for blob in kept if blob is not None])


__all__ = ["OpenedRelease", "Search", "answered", "open_release", "tables", "verify"]
