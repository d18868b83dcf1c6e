"""Air-gapped institutions exchange files: one folder, questions in, releases out.

::

    exchange/
      questions/<owner>/<digest>.question     written by the learner
      releases/<owner>/<digest>.release       written by the owner, once per question
      refused/<owner>/<digest>.txt            why a question was not answered

A learner is started again from the beginning each time; releases that are
there are sent to it, and the first one that is missing stops the run with
`Waiting` after its question was written. An owner answers a question at most
once: the release file is its journal, and a question that is asked again gets
the same release without a new charge.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
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
from privada.parties.protocol import Ask, Foreseen, Learner, drive
from privada.privacy import wire
from privada.privacy.release import Question, Release

T = TypeVar("T")

_LOG = logging.getLogger("privada.owner")


@dataclass(frozen=True)
class Answered:
    """What became of one question file."""

    digest: str
    path: Path
    outcome: str  # "answered", "waiting" or "refused"
    reason: str = ""


class Folder:
    """An exchange folder, seen from either side.

    Parameters
    ----------
    path : path
        The folder; it is made if it is not there.
    keys : mapping of owner's name to public key, optional
        Releases of these owners must be signed by these keys; of others, by any.
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
        return self.path / "refused" / _plain(owner) / f"{digest}.txt"

    def learn(self, learner: Learner[T]) -> T:
        """Drive a learner with the releases that are here; raise `Waiting` for those that are not."""
        for ask in learner.asks if isinstance(learner, Foreseen) else ():
            _carried(ask)
        return drive(learner, self._fetch, announce=self._ask)

    def _ask(self, ask: Ask) -> None:
        """Write a question, unless it is there or was settled."""
        _carried(ask)
        digest = ask.question.digest
        places = (self.question_path, self.release_path, self.refusal_path)
        if not any(place(ask.owner, digest).exists() for place in places):
            ask.question.save(self.question_path(ask.owner, digest))

    def _fetch(self, ask: Ask) -> Release:
        digest = ask.question.digest
        answer = self.release_path(ask.owner, digest)
        if answer.exists():
            release = Release.load(answer)
            release.verify(public=self.keys.get(ask.owner))
            return release
        refusal = self.refusal_path(ask.owner, digest)
        if refusal.exists():
            raise AnswerError(f"{ask.owner} refused: {refusal.read_text(encoding='utf-8').strip()}")
        asked = self.question_path(ask.owner, digest)
        raise Waiting(f"Waiting for {ask.owner} to answer {digest[:12]} (its question is {asked}).")

    def pending(self, owner: str) -> Iterator[Path]:
        """Question files that have neither a release nor a refusal."""
        for path in sorted((self.path / "questions" / _plain(owner)).glob("*.question")):
            done = (
                self.release_path(owner, path.stem).exists() or self.refusal_path(owner, path.stem).exists()
            )
            if not done:
                yield path

    def answer(self, name: str, owner: Owner, *, approved: frozenset[str] = frozenset()) -> list[Answered]:
        """Answer everything that is pending for an owner; a bad file never stops the rest.

        ``approved`` holds whole digests: whoever asks can make two questions whose digests begin
        alike. A ledger that fails is the owner's own trouble: it is raised, and learners are not told.
        """
        return [self._answer_one(name, owner, path, approved) for path in list(self.pending(name))]

    def _answer_one(self, name: str, owner: Owner, path: Path, approved: frozenset[str]) -> Answered:
        try:
            question = Question.load(path)
            if question.digest != path.stem:
                raise WireError("The file's name is not its question's digest.")
            release = owner.answer(question, approved=question.digest in approved)
        except ApprovalPending as error:
            return Answered(path.stem, path, "waiting", str(error))
        except LedgerError:
            raise
        except PrivadaError as error:
            return self._refused(name, path, str(error))
        except Exception as error:  # no row was opened: what fails on rows is an AnswerError
            _LOG.error("question %.12s failed: %s", path.stem, type(error).__name__)
            return self._refused(name, path, "The owner cannot answer this question.")
        release.save(self.release_path(name, path.stem))
        return Answered(path.stem, path, "answered")

    def _refused(self, name: str, path: Path, reason: str) -> Answered:
        """Write why, under names that are digests only: a learner does not choose what an owner writes to."""
        if re.fullmatch("[0-9a-f]{64}", path.stem):
            wire.write(self.refusal_path(name, path.stem), f"{reason}\n".encode())
        return Answered(path.stem, path, "refused", reason)


def _carried(ask: Ask) -> None:
    """Refuse a question for raw rows."""
    if ask.question.discloses:
        raise InputError(
            f"{ask.question.kind} asks {ask.owner} for raw rows; a folder carries releases only."
        )


def _plain(name: str) -> str:
    """An owner's name as a folder name, or a `WireError`."""
    if not name or not name.replace("-", "").replace("_", "").isalnum():
        raise WireError(f"Expected an owner's name of letters, digits, - and _, got {name!r}.")
    return name


__all__ = ["Answered", "Folder"]
