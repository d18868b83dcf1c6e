"""Air-gapped institutions exchange files: one folder, questions in, releases out.

::

    exchange/
      questions/<owner>/<digest>.question     written by the learner
      releases/<owner>/<digest>.release       written by the owner, signed
      refused/<owner>/<digest>.refusal        why a question is not answered, signed

A learner is started again from the beginning each time; it receives the releases
that are there, and the first missing one stops the run with `Waiting`, after its
question was written.

The folder holds no state. Whether a question was charged, and what it is owed,
is decided in the owner's ledger: a release that was lost on the way, or
could not be written, is delivered again without a new charge.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from privada.exceptions import (
    AnswerError,
    ApprovalPending,
    InputError,
    LedgerError,
    PrivadaError,
    Waiting,
    WireError,
)
from privada.parties.owner import Owner
from privada.parties.protocol import Ask, Learner, PlannedLearner, drive
from privada.privacy import wire
from privada.privacy.refusal import LARGEST_REFUSAL, Refusal
from privada.privacy.release import Question, Release

T = TypeVar("T")

_LOG = logging.getLogger("privada.owner")


@dataclass(frozen=True)
class Answered:
    """What happened to one question file."""

    digest: str
    path: Path
    outcome: str  # "answered", "waiting", "refused" or "undelivered"
    reason: str = ""


class Folder:
    """An exchange folder, seen from either side.

    Parameters
    ----------
    path : path
        The folder; it is created if it does not exist.
    keys : mapping of owner's name to public key, optional
        Releases and refusals of these owners must be signed by these keys; of others, by any.
    """

    def __init__(self, path: str | os.PathLike[str], *, keys: Mapping[str, str] | None = None) -> None:
        self.path = Path(path)
        self.keys = dict(keys or {})

    def question_path(self, owner: str, digest: str) -> Path:
        """Where a question is."""
        return self.path / "questions" / _plain(owner) / f"{digest}.question"

    def release_path(self, owner: str, digest: str) -> Path:
        """Where its release is, once it is answered."""
        return self.path / "releases" / _plain(owner) / f"{digest}.release"

    def refusal_path(self, owner: str, digest: str) -> Path:
        """Where the reason is, if it was refused."""
        return self.path / "refused" / _plain(owner) / f"{digest}.refusal"

    def learn(self, learner: Learner[T], *, witness: Callable[[Release], None] | None = None) -> T:
        """Drive a learner with the releases that are here; raise `Waiting` for those that are not.

        ``witness`` sees the releases that the learner receives.
        """
        for ask in learner.asks if isinstance(learner, PlannedLearner) else ():
            _carried(ask)
        return drive(learner, self._fetch, announce=self._ask, witness=witness)

    def _ask(self, ask: Ask) -> None:
        """Write a question, unless it exists or was settled."""
        _carried(ask)
        digest = ask.question.digest
        places = (self.question_path, self.release_path, self.refusal_path)
        if not any(place(ask.owner, digest).exists() for place in places):
            ask.question.save(self.question_path(ask.owner, digest), root=self.path)

    def _fetch(self, ask: Ask) -> Release:
        digest = ask.question.digest
        answer = self.release_path(ask.owner, digest)
        if answer.exists():
            release = Release.load(answer)
            release.verify(public=self.keys.get(ask.owner))
            return release
        refusal = self.refusal_path(ask.owner, digest)
        if refusal.exists():
            raise AnswerError(f"{ask.owner} refused: {self._refusal(ask.owner, digest).reason}")
        asked = self.question_path(ask.owner, digest)
        raise Waiting(f"Waiting for {ask.owner} to answer {digest[:12]} (its question is {asked}).")

    def _refusal(self, owner: str, digest: str) -> Refusal:
        """The owner's refusal of a question; anyone can write a file there, only the owner can sign it."""
        blob = wire.read(self.refusal_path(owner, digest), largest=LARGEST_REFUSAL)
        refusal = Refusal.from_bytes(blob, public=self.keys.get(owner))
        if refusal.question != digest:
            raise WireError("The refusal is of another question.")
        return refusal

    def pending(self, owner: str, *, reconsider: frozenset[str] = frozenset()) -> Iterator[Path]:
        """Question files that have neither a release nor a refusal that stands."""
        for path in sorted((self.path / "questions" / _plain(owner)).glob("*.question")):
            refused = self.refusal_path(owner, path.stem).exists() and path.stem not in reconsider
            if not refused and not self.release_path(owner, path.stem).exists():
                yield path

    def refused(self, owner: str) -> frozenset[str]:
        """Digests of the questions that an owner refused."""
        there = (self.path / "refused" / _plain(owner)).glob("*.refusal")
        return frozenset(path.stem for path in there)

    def answer(
        self,
        name: str,
        owner: Owner,
        *,
        approved: frozenset[str] = frozenset(),
        reconsider: frozenset[str] = frozenset(),
    ) -> list[Answered]:
        """Answer everything that is pending for an owner; a bad file never stops the rest.

        Parameters
        ----------
        name : str
            The owner's name in studies.
        owner : Owner
            Who answers.
        approved : frozenset of str
            Whole digests of questions that a person approved: a learner can make two
            questions whose digests begin alike.
        reconsider : frozenset of str
            Whole digests of questions that were refused and are looked at again.

        Raises
        ------
        WireError
            Releases cannot be written to the folder; nothing was charged.
        LedgerError
            The ledger fails: an error on the owner's side, which learners do not see.
        """
        pending = list(self.pending(name, reconsider=reconsider))
        if pending:
            self._check_writable(name)
        return [self._answer_one(name, owner, path, approved) for path in pending]

    def _answer_one(self, name: str, owner: Owner, path: Path, approved: frozenset[str]) -> Answered:
        try:
            release = self._answered(owner, path, approved)
        except ApprovalPending as error:
            return Answered(path.stem, path, "waiting", str(error))
        except LedgerError:
            raise
        except PrivadaError as error:
            return self._refuse(name, owner, path, str(error))
        except Exception as error:  # no row was opened: what fails on rows is an AnswerError
            _LOG.error("question %.12s failed: %s", path.stem, type(error).__name__)
            return self._refuse(name, owner, path, "The owner cannot answer this question.")
        return self._deliver(name, path, release)

    def _answered(self, owner: Owner, path: Path, approved: frozenset[str]) -> bytes:
        blob = wire.read(path, largest=owner.policy.largest_question)
        if Question.peek(blob).digest != path.stem:
            raise WireError("The file's name is not its question's digest.")
        return owner.answer_file(blob, approved=approved)

    def _deliver(self, name: str, path: Path, release: bytes) -> Answered:
        """Write a release that is paid for and kept; if this fails, the next run delivers it."""
        try:
            wire.write(self.release_path(name, path.stem), release, root=self.path)
            self.refusal_path(name, path.stem).unlink(missing_ok=True)
        except (OSError, WireError) as error:
            reason = f"Paid for and kept, but not delivered: {_why(error)}. Answer again to deliver it."
            return Answered(path.stem, path, "undelivered", reason)
        return Answered(path.stem, path, "answered")

    def _refuse(self, name: str, owner: Owner, path: Path, reason: str) -> Answered:
        """Write the reason, in a file named by a digest: a learner cannot choose which file is written."""
        if re.fullmatch("[0-9a-f]{64}", path.stem):
            refusal = Refusal.signed(owner.ledger.key, question=path.stem, reason=reason)
            wire.write(self.refusal_path(name, path.stem), refusal.to_bytes(), root=self.path)
        return Answered(path.stem, path, "refused", reason)

    def _check_writable(self, name: str) -> None:
        """Raise `WireError` unless releases and refusals can be written, before anything is charged."""
        for place in (self.release_path(name, "0"), self.refusal_path(name, "0")):
            probe = place.with_name(f".probe-{os.getpid()}")
            try:
                wire.write(probe, b"\0", root=self.path).unlink()
            except (OSError, WireError) as error:
                raise WireError(f"Nothing can be delivered ({_why(error)}). Nothing was charged.") from None


def _why(error: OSError | WireError) -> str:
    return str(error.strerror if isinstance(error, OSError) else error).rstrip(".")


def _carried(ask: Ask) -> None:
    """Refuse a question for raw rows."""
    if ask.question.discloses:
        raise InputError(
            f"{ask.question.kind} asks {ask.owner} for raw rows; a folder carries releases only."
        )


def _plain(name: str) -> str:
    """An owner's name as a folder name, or a `WireError`."""
    if not name or not name.replace("-", "").replace("_", "").isalnum():
        raise WireError(f"Expected an owner's name of letters, digits, - and _, got {name!r:.80}.")
    return name


__all__ = ["Answered", "Folder"]
