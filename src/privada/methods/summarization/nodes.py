"""Owners and the consumer at work, each with a transcript of what it was shown.

What an owner sees is public noise and its own number of rows; the auditor checks that it does not depend
on another owner's rows (`privada.audit.replay_views`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from privada.exceptions import InputError
from privada.methods.summarization.learner.summary import Summary
from privada.parties.owner import Owner
from privada.parties.protocol import AskOwner
from privada.privacy.release import Disclosure, Question, Release


@dataclass(frozen=True)
class Entry:
    """One thing that a party saw: what it was, from or for whom, and its digest."""

    kind: str
    party: str
    digest: str
    points: int = 0


@dataclass
class Transcript:
    """What one party saw, in order. It holds digests and numbers of points, never a row."""

    party: str
    entries: list[Entry] = field(default_factory=list)

    def note(self, kind: str, party: str, digest: str, *, points: int = 0) -> None:
        """Write one line."""
        self.entries.append(Entry(kind, party, digest, points))

    @property
    def points(self) -> int:
        """Raw points that the party received."""
        return sum(entry.points for entry in self.entries)

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"party": self.party, "entries": [vars(entry) for entry in self.entries]}


class OwnerNode:
    """An owner at work: answers what it is asked and writes down what it was shown.

    Parameters
    ----------
    name : str
    owner : Owner
        Its rows, policy and ledger. The policy must name the curator for rows to be disclosed.
    """

    def __init__(self, name: str, owner: Owner) -> None:
        self.name, self.owner = name, owner
        self.view = Transcript(name)

    @property
    def size(self) -> int:
        """The public number of rows."""
        size = self.owner.schema.size
        if size is None:
            raise InputError(f"{self.name}: a summary needs the schema's public size.")
        return size

    def reply(self, ask: AskOwner) -> Release | Disclosure:
        """Answer or disclose; what the owner was shown is the question."""
        self.view.note(ask.question.kind, ask.to, ask.question.digest)
        return self.disclose(ask.question, ask.to) if ask.question.discloses else self.answer(ask.question)

    def answer(self, question: Question) -> Release:
        """Through the owner's one door."""
        return self.owner.answer(question)

    def disclose(self, question: Question, to: str) -> Disclosure:
        """Raw rows for the curator: logged as not differentially private."""
        return self.owner.disclose(question, to=to)


class Consumer(OwnerNode):
    """Who holds the validation set, and is told what owners contributed."""

    def contributions(self, summary: Summary) -> dict[str, float]:
        """Value of each owner, for payment. Not to be told to owners: it depends on all rows."""
        return summary.contributions()


__all__ = ["Consumer", "Entry", "OwnerNode", "Transcript"]
