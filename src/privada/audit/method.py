"""Audit a registered method: every question of its example's cases, with every auditor.

For each question

* *replays* over all pairs (random and adversarial neighbours, and whole arrangements of rows), with several
  seeds each, along crowds of equal rows that grow one by one, and again with every row a person's where the
  question can be asked so: no false alarms;
* *laws*: whether the noise has its declared law and is independent, by real answers;
* the *black box* over all pairs (`audit_pairs`).

The error that ``confidence`` leaves is shared by laws and black box, half each.

A question is wrong if one pair of neighbours refutes it, and nobody knows beforehand which. So
every pair gets a few answers, the most suspicious ones more, on which their events are chosen, and
then fresh ones, on which those are counted. Screening and choosing have no influence on the
validity of what fresh outcomes say; the error is divided by the number of pairs that are
confirmed (Bonferroni). Hence a sound question fails with probability at most that error.

Where answers are drawn many at once, each step takes as many as were asked for. Otherwise the answers of
all steps together are as many: a quarter screens, a quarter chooses, half is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privada import _check
from privada.audit.blackbox import CONFIDENCE, TRIALS, AuditResult, claims, count_events
from privada.audit.events import LEAST_OUTCOMES, Claim, Curve, Point, guess_events
from privada.audit.laws import LawResult, check_laws
from privada.audit.pairs import (
    FAR_APART,
    Pair,
    across_batches,
    arranged_neighbours,
    growing_crowds,
    neighbours,
)
from privada.audit.replaying import ReplayResult, repeats, replay, replay_chain
from privada.audit.rows import Sample, landmarks
from privada.audit.transcript import AnswerSource, coupled, shuffles
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
SCREENING_ERROR = 0.5  # error of the bounds by which pairs are ranked: they only choose
SCREENED_AT_ONCE = 800
SCREENED_COORDINATES = 4
MOST_ROWS = 5_000  # of a pair that is answered one by one
MOST_SCREENED = 24  # pairs that are answered one by one
CONFIRMED_AT_ONCE, CONFIRMED = 3, 2


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
        Black-box audits of the most suspicious pairs.
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
        """The black-box audit that failed, or otherwise came nearest to the claim."""
        return max(self.confirmed, key=lambda result: (not result.passed, result.tightness))

    @property
    def worst(self) -> ReplayResult:
        """The replay that failed, or otherwise used most of the proof's bound."""
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
    trials : int, default=20000
        Answers of each data set to each question.
    confidence : float, default=0.99
        A sound method fails with probability at most ``1 - confidence`` for each question.
    noise : Noise, default=None
        By default the operating system's.
    seed : int, default=0
        Seed of the public randomness that makes neighbours.
    track : callable, default=iter
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
        _audit_question(question, cases[question], trials=trials, error=error, noise=source, seed=seed)
        for question in track(list(cases))
    ]


def _audit_question(
    question: Question, case: Case, *, trials: int, error: float, noise: Noise, seed: int
) -> QuestionAudit:
    sample = Sample.of(schema=case.schema, **case.data)
    pairs = list(_make_pairs(question, sample, seed))
    has_secrets = shuffles(question, sample.rows(coupled(0)))
    replays: dict[str, ReplayResult] = {}
    priorities = []
    for pair in pairs:
        # Replays share a secret order or sample, which picks other rows where common rows are moved
        if not (pair.reordered and has_secrets):
            seeds = SEEDS if len(pair.sample) < BATCH else SEEDS[:1]
            replays[pair.name] = _worst(
                replay(question, *_rows_of(pair), seed=seed, pair=pair.name) for seed in seeds
            )
        result = replays.get(pair.name)
        if has_secrets and pair.name.endswith(FAR_APART):
            priorities.append(1e9)  # a secret sample hides least where a row stands out
        elif result is None:
            priorities.append(1.0)
        else:
            priorities.append(result.share if result.passed else 1e6)

    # Several small data sets, since whether noise has its law may depend on the rows
    small = {id(sample): sample}
    for pair in pairs:
        for side in (pair.sample, pair.neighbour if "alone" in pair.name else pair.sample):
            if len(side) < BATCH:
                small.setdefault(id(side), side)
    step = max(1, len(small) // MOST_DATA_SETS)
    data_sets = [side.rows(coupled(0)) for side in list(small.values())[::step]]
    laws = check_laws(question, data_sets, error=error / 2, noise=noise)
    confirmed = audit_pairs(question, pairs, priorities, trials=trials, error=error / 2, noise=noise)

    more: list[ReplayResult] = []
    if faults := tuple(repeats(question, sample.rows(coupled(0)))):
        more.append(ReplayResult(claimed=question.guarantee, faults=faults, pair="the same rows twice"))
    rng = np.random.default_rng(seed)
    for chain in growing_crowds(sample, relation=question.guarantee.relation, rng=rng):
        crowds = [side.rows(coupled(0)) for side in chain.samples]
        more.append(_worst(replay_chain(question, crowds, pair=chain.name)))
    more += _replay_persons(question, sample, seed)
    return QuestionAudit(
        question=question.kind,
        digest=question.digest,
        replays=(*replays.values(), *more),
        confirmed=confirmed,
        laws=laws,
    )


def _make_pairs(question: Question, sample: Sample, seed: int) -> Iterator[Pair]:
    marks, relation = landmarks(question, sample.schema), question.guarantee.relation
    rng = np.random.default_rng(seed)
    yield from neighbours(sample, relation=relation, rng=rng, landmarks=marks)
    yield from arranged_neighbours(sample, relation=relation, rng=rng, landmarks=marks)
    if sample.schema.person_id is None:
        yield across_batches(sample, relation=relation)


def _worst(results: Iterable[ReplayResult]) -> ReplayResult:
    return max(results, key=lambda result: (not result.passed, result.share))


def _rows_of(pair: Pair) -> tuple[Rows, Rows]:
    return pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(0))


def _replay_persons(question: Question, sample: Sample, seed: int) -> Iterator[ReplayResult]:
    """Replay the same question asked of persons, if it can be: of one row each, and of several."""
    if sample.schema.person_id is not None:
        return
    for most in PERSONS:
        unit = Unit(name="person", max_rows=most)
        try:
            of_persons = replace(question, guarantee=replace(question.guarantee, unit=unit))
            schema = replace(sample.schema, person_id="person of the row", max_rows=most)
            of_persons.fits(schema)
            _ = of_persons.plan
        except PrivadaError:  # the question refuses persons
            continue
        # A few rows less than the question may have announced
        fewer = sample.take(np.arange(max(1, len(sample) - 3 * most)))
        people = replace(fewer, schema=schema, person=np.arange(len(fewer)) // most)
        has_secrets = shuffles(of_persons, people.rows(coupled(0)))
        pairs = list(_make_pairs(of_persons, people, seed))
        step = max(1, len(pairs) // MOST_PERSON_PAIRS)
        for turn, pair in enumerate(pairs[::step]):
            if not (pair.reordered and has_secrets):
                name = f"{pair.name} (persons of at most {most} rows)"
                yield replay(of_persons, *_rows_of(pair), seed=turn % 2, pair=name)


def audit_pairs(
    question: Question,
    pairs: Sequence[Pair],
    priorities: Sequence[float],
    *,
    trials: int,
    error: float,
    noise: Noise,
) -> tuple[AuditResult, ...]:
    """Audit a question on the most suspicious of many pairs: screen all, confirm the best few.

    Parameters
    ----------
    question : Question
    pairs : sequence of Pair
    priorities : sequence of float
        Which pairs to screen first if there are too few trials for all; the first is always confirmed.
    trials : int
        Answers of each data set, see above.
    error : float
        A sound question fails with at most this probability.
    noise : Noise
    """
    order = sorted(range(len(pairs)), key=lambda index: -priorities[index])
    small = [pairs[index] for index in order if len(pairs[index].sample) <= MOST_ROWS]
    # Take pairs in order while there are answers for them; of those drawn at once, one of each kind
    candidates: list[tuple[Pair, AnswerSource]] = []
    signatures: set[Hashable] = set()
    slow = min(MOST_SCREENED, max(1, trials // 4 // (2 * LEAST_OUTCOMES)))
    for pair in small or [pairs[index] for index in order]:
        if slow <= 0:
            break
        source = AnswerSource.of(question, *_rows_of(pair), noise=noise)
        slow -= not source.at_once
        if source.signature is None or source.signature not in signatures:
            signatures.add(source.signature)
            candidates.append((pair, source))
    at_once = all(source.at_once for _, source in candidates)

    # Screen: the pair of highest priority, and those that a few answers tell apart best
    tried = claims(question.guarantee, question.plan)
    answers = max(2 * LEAST_OUTCOMES, trials // 4 // len(candidates))
    if at_once:
        answers = min(trials, SCREENED_AT_ONCE)
    # Pairs are ranked by their excess over the claim, in its units; its own point and a curve are enough
    own = next(claim for claim in tried if isinstance(claim, Point) and claim.first)
    curves = [claim for claim in tried if isinstance(claim, Curve)]
    coarse: tuple[Claim, ...] = (own, *curves) if curves else tried
    strengths = []
    for _, source in candidates:
        guesses = guess_events(
            source.draw(answers), coarse, SCREENING_ERROR, coordinates=SCREENED_COORDINATES
        )
        strengths.append(
            max(
                (guess.bound - guess.claim.claimed)
                / (own.epsilon if isinstance(guess.claim, Point) else guess.claim.mu)
                for guess in guesses
            )
        )
    best = sorted(range(len(candidates)), key=lambda index: -strengths[index])
    most = CONFIRMED_AT_ONCE if at_once else CONFIRMED
    chosen = [candidates[index] for index in list(dict.fromkeys([0, *best]))[:most]]

    # Confirm: choose events on some answers, count them on fresh ones
    choosing = counting = trials
    if not at_once:
        choosing = max(2 * LEAST_OUTCOMES, trials // 4 // len(chosen))
        counting = max(2 * LEAST_OUTCOMES, trials // 2 // len(chosen))
    share = error / len(chosen)
    results = []
    for pair, source in chosen:
        guesses = guess_events(source.draw(choosing), tried, share)
        fresh = source.draw(counting)
        results.append(
            count_events(guesses, fresh, claimed=question.guarantee, confidence=1 - share, pair=pair.name)
        )
    return tuple(results)
