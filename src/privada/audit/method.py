"""Audit a registered method: every question of its example, with both auditors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from privada.audit.blackbox import CONFIDENCE, TRIALS, AuditResult, audit_question
from privada.audit.pairs import Pair, across_batches, neighbours
from privada.audit.records import landmarks
from privada.audit.replaying import ReplayResult, replay
from privada.audit.sample import Sample
from privada.audit.transcript import coupled
from privada.methods.registry import Example, Method
from privada.parties.rows import Rows
from privada.privacy.noise import Noise
from privada.privacy.release import Question


@dataclass(frozen=True, kw_only=True)
class QuestionAudit:
    """Both audits of one question.

    Attributes
    ----------
    question, digest : str
        Kind and digest of the question.
    replays : tuple of ReplayResult
        One for each pair of neighbours.
    blackbox : AuditResult
        On the pair that used most of the proof's bound.
    """

    question: str
    digest: str
    replays: tuple[ReplayResult, ...]
    blackbox: AuditResult

    @property
    def passed(self) -> bool:
        """Whether neither auditor found anything."""
        return self.blackbox.passed and all(result.passed for result in self.replays)

    @property
    def worst(self) -> ReplayResult:
        """The replay that failed, or else used most of the proof's bound."""
        return max(self.replays, key=lambda result: (not result.passed, result.share))

    def __str__(self) -> str:
        return (
            f"{self.question} {self.digest[:12]}\n"
            f"  replay of {len(self.replays)} pairs {self.worst}\n"
            f"  black box {self.blackbox}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "question": self.question,
            "digest": self.digest,
            "passed": self.passed,
            "pairs": len(self.replays),
            "replay": self.worst.to_dict(),
            "blackbox": self.blackbox.to_dict(),
        }


def audit_method(
    method: Method,
    *,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    noise: Noise | None = None,
    seed: int = 0,
    track: Callable[[list[Question]], Iterable[Question]] = iter,
) -> list[QuestionAudit]:
    """Run both auditors over a method's example: each question, under its own relation.

    Parameters
    ----------
    method : Method
        From `privada.methods.registry`.
    trials : int
        Answers of each data set to each question.
    confidence : float
        A sound method fails with probability at most ``1 - confidence`` for each question.
    noise : Noise, optional
        By default the operating system's.
    seed : int
        Of the public randomness that makes neighbours.
    track : callable
        Passes the questions on and may show progress.

    Notes
    -----
    Questions that disclose raw rows carry no guarantee and are left out.
    """
    example = method.example()
    return [
        _audited(question, example, trials=trials, confidence=confidence, noise=noise, seed=seed)
        for question in track([each for each in example.questions if not type(each).discloses])
    ]


def _audited(
    question: Question, example: Example, *, trials: int, confidence: float, noise: Noise | None, seed: int
) -> QuestionAudit:
    pairs = list(_pairs(question, example, seed))
    replays = [replay(question, *_rows(pair), seed=seed, pair=pair.name) for pair in pairs]
    worst = max(range(len(pairs)), key=lambda index: replays[index].share)
    found = audit_question(question, *_rows(pairs[worst]), trials=trials, confidence=confidence, noise=noise)
    return QuestionAudit(
        question=question.kind, digest=question.digest, replays=tuple(replays), blackbox=found
    )


def _pairs(question: Question, example: Example, seed: int) -> Iterator[Pair]:
    schema, relation = example.schema, question.guarantee.relation
    sample = Sample.of(schema=schema, **example.data)
    rng = np.random.default_rng(seed)
    yield from neighbours(sample, relation=relation, rng=rng, landmarks=landmarks(question, schema))
    if schema.person_id is None:
        yield across_batches(sample, relation=relation)


def _rows(pair: Pair) -> tuple[Rows, Rows]:
    return pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(0))


__all__ = ["QuestionAudit", "audit_method"]
