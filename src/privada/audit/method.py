"""Audit a registered method: every question of its example's cases, with every auditor.

For each question

* *replays* over all pairs (random and adversarial neighbours, and whole arrangements of rows), with several
  seeds each, along crowds of equal rows that grow one by one, and again with every row a person's where the
  question can be asked so: no false alarms;
* *laws*: whether the noise has its declared law and is independent, by real answers;
* the *black box* over all pairs: all are screened, the best few confirmed on fresh answers.

The error that ``confidence`` leaves is shared by laws and black box, half each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privada import _check
from privada.audit.blackbox import CONFIDENCE, TRIALS, AuditResult
from privada.audit.laws import LawResult, check_laws
from privada.audit.replaying import ReplayResult, repeats, replay, replay_chain, shuffles
from privada.audit.rows.arrangements import FAR_APART, arranged_neighbours, growing_crowds
from privada.audit.rows.pairs import Pair, across_batches, neighbours
from privada.audit.rows.records import landmarks
from privada.audit.rows.sample import Sample
from privada.audit.screening import audit_pairs
from privada.audit.transcript import coupled
from privada.exceptions import PrivadaError
from privada.methods.example import Case, Example
from privada.methods.method import Method
from privada.parties.rows import BATCH, Rows
from privada.privacy.noise import Noise, SecureNoise
from privada.privacy.relation import Unit
from privada.privacy.release import Question

SEEDS = (0, 1, 2)
PERSONS = (1, 2)  # rows of a person, where a question of rows is asked again of persons
MOST_PERSON_PAIRS = 16
MOST_DATA_SETS = 8


@dataclass(frozen=True, kw_only=True)
class QuestionAudit:
    """All audits of one question.

    Attributes
    ----------
    question, digest : str
        Kind and digest of the question.
    replays : tuple of ReplayResult
        For each pair of neighbours the worst of all seeds; for each growing crowd the worst step.
    confirmed : tuple of AuditResult
        Black-box audits of the pairs that were most suspicious.
    laws : LawResult
        Tests of the noise.
    """

    question: str
    digest: str
    replays: tuple[ReplayResult, ...]
    confirmed: tuple[AuditResult, ...]
    laws: LawResult

    @property
    def passed(self) -> bool:
        """Whether no auditor found anything."""
        audits = all(result.passed for result in self.confirmed)
        return audits and all(result.passed for result in self.replays) and self.laws.passed

    @property
    def blackbox(self) -> AuditResult:
        """The black-box audit that failed, or else came nearest to the claim."""
        return max(self.confirmed, key=lambda result: (not result.passed, result.tightness))

    @property
    def worst(self) -> ReplayResult:
        """The replay that failed, or else used most of the proof's bound."""
        return _worst(self.replays)

    def __str__(self) -> str:
        return (
            f"{self.question} {self.digest[:12]}\n"
            f"  replay of {len(self.replays)} pairs {self.worst}\n"
            f"  noise {self.laws}\n"
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
            "laws": self.laws.to_dict(),
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
    """Run all auditors over a method's example: each question of its cases, under its own relation.

    Parameters
    ----------
    method : Method
        From `privada.methods`.
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
    return audit_example(example, trials=trials, confidence=confidence, noise=noise, seed=seed, track=track)


def audit_example(
    example: Example,
    *,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    noise: Noise | None = None,
    seed: int = 0,
    track: Callable[[list[Question]], Iterable[Question]] = iter,
) -> list[QuestionAudit]:
    """Audit the questions of an example's cases; the parameters are those of `audit_method`."""
    _check.count(least=100, trials=trials)
    error = 1 - _check.probability(confidence=confidence)
    source = SecureNoise() if noise is None else noise
    cases = {case.questions[0]: case for case in example.single_cases if not case.questions[0].discloses}
    return [
        _audited(question, cases[question], trials=trials, error=error, noise=source, seed=seed)
        for question in track(list(cases))
    ]


def _audited(
    question: Question, case: Case, *, trials: int, error: float, noise: Noise, seed: int
) -> QuestionAudit:
    sample = Sample.of(schema=case.schema, **case.data)
    pairs = list(_pairs(question, sample, seed))
    hidden = shuffles(question, sample.rows(coupled(0)))
    replays = {pair.name: _replayed(question, pair) for pair in pairs if not (pair.reordered and hidden)}
    shares = [_priority(replays.get(pair.name), pair, hidden=hidden) for pair in pairs]
    checked = check_laws(question, _data_sets(sample, pairs), error=error / 2, noise=noise)
    confirmed = audit_pairs(question, pairs, shares, trials=trials, error=error / 2, noise=noise)
    more = (
        *_repeated(question, sample),
        *_replayed_crowds(question, sample, seed),
        *_replayed_persons(question, sample, seed),
    )
    return QuestionAudit(
        question=question.kind,
        digest=question.digest,
        replays=(*replays.values(), *more),
        confirmed=confirmed,
        laws=checked,
    )


def _pairs(question: Question, sample: Sample, seed: int) -> Iterator[Pair]:
    marks, relation = landmarks(question, sample.schema), question.guarantee.relation
    rng = np.random.default_rng(seed)
    yield from neighbours(sample, relation=relation, rng=rng, landmarks=marks)
    yield from arranged_neighbours(sample, relation=relation, rng=rng, landmarks=marks)
    if sample.schema.person_id is None:
        yield across_batches(sample, relation=relation)


def _replayed(question: Question, pair: Pair) -> ReplayResult:
    """The worst of several seeds."""
    seeds = SEEDS if len(pair.sample) < BATCH else SEEDS[:1]
    results = [replay(question, *_rows(pair), seed=seed, pair=pair.name) for seed in seeds]
    return _worst(results)


def _worst(results: Iterable[ReplayResult]) -> ReplayResult:
    return max(results, key=lambda result: (not result.passed, result.share))


def _priority(result: ReplayResult | None, pair: Pair, *, hidden: bool) -> float:
    """What a replay found; replays share a secret sample, so then pairs whose row stands out come first."""
    if hidden and pair.name.endswith(FAR_APART):
        return 1e9
    if result is None:
        return 1.0
    return result.share if result.passed else 1e6


def _repeated(question: Question, sample: Sample) -> Iterator[ReplayResult]:
    faults = tuple(repeats(question, sample.rows(coupled(0))))
    if faults:
        yield ReplayResult(claimed=question.guarantee, faults=faults, pair="the same rows twice")


def _replayed_crowds(question: Question, sample: Sample, seed: int) -> Iterator[ReplayResult]:
    """The worst step of each crowd of equal rows that grows one by one."""
    rng = np.random.default_rng(seed)
    for chain in growing_crowds(sample, relation=question.guarantee.relation, rng=rng):
        steps = replay_chain(question, [side.rows(coupled(0)) for side in chain.samples], pair=chain.name)
        yield _worst(steps)


def _replayed_persons(question: Question, sample: Sample, seed: int) -> Iterator[ReplayResult]:
    """The same question asked of persons, if it can be: one row each, and several."""
    if sample.schema.person_id is not None:
        return
    for most in PERSONS:
        asked = _of_persons(question, sample, most)
        if asked is None:
            continue
        about, people = asked
        hidden = shuffles(about, people.rows(coupled(0)))
        pairs = list(_pairs(about, people, seed))
        step = max(1, len(pairs) // MOST_PERSON_PAIRS)
        for turn, pair in enumerate(pairs[::step]):
            if not (pair.reordered and hidden):
                name = f"{pair.name} (persons of at most {most} rows)"
                yield replay(about, *_rows(pair), seed=turn % 2, pair=name)


def _of_persons(question: Question, sample: Sample, most: int) -> tuple[Question, Sample] | None:
    """A question about persons, and rows of persons, a few less than announced; None if it refuses them."""
    unit = Unit(name="person", max_rows=most)
    try:
        asked = replace(question, guarantee=replace(question.guarantee, unit=unit))
        schema = replace(sample.schema, person_id="person of the row", max_rows=most)
        asked.fits(schema)
        _ = asked.plan
    except PrivadaError:
        return None
    fewer = sample.take(np.arange(max(1, len(sample) - 3 * most)))
    return asked, replace(fewer, schema=schema, person=np.arange(len(fewer)) // most)


def _data_sets(sample: Sample, pairs: list[Pair]) -> list[Rows]:
    """Different small data sets of the pairs: whether noise has its law may depend on the rows."""
    found = {id(sample): sample}
    for pair in pairs:
        for side in (pair.sample, pair.neighbour if "alone" in pair.name else pair.sample):
            if len(side) < BATCH:
                found.setdefault(id(side), side)
    kept = list(found.values())
    step = max(1, len(kept) // MOST_DATA_SETS)
    return [side.rows(coupled(0)) for side in kept[::step]]


def _rows(pair: Pair) -> tuple[Rows, Rows]:
    return pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(0))


__all__ = ["QuestionAudit", "audit_example", "audit_method"]
