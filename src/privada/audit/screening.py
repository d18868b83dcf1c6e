"""The black box over many pairs: screen all, then confirm the best few on fresh outcomes.

A question is wrong if one pair of neighbours refutes it, and nobody knows beforehand which. So
every pair gets a few answers, the most suspicious ones more, on which their events are chosen, and
then fresh ones, on which those are counted. Screening and choosing have no influence on the
validity of what fresh outcomes say; the error is divided by the number of pairs that are
confirmed (Bonferroni). Hence a sound question fails with probability at most ``error``.

Where answers are drawn many at once, each step takes as many as were asked for. Else the answers of
all steps together are as many: a quarter screens, a quarter chooses, half is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privada.audit.blackbox import AuditResult, count_events
from privada.audit.claims import Claim, Curve, Point, claims
from privada.audit.rows.pairs import Pair
from privada.audit.sampling import LEAST_OUTCOMES, AnswerSource, Outcomes
from privada.audit.selection import Guess, guess_events
from privada.audit.transcript import coupled
from privada.privacy.noise import Noise
from privada.privacy.release import Question

SCREENING_ERROR = 0.5  # error of the bounds by which pairs are ranked: they only choose
SCREENED_AT_ONCE = 800
SCREENED_COORDINATES = 4
MOST_ROWS = 5_000  # of a pair that is answered one by one
MOST_SCREENED = 24  # pairs that are answered one by one
CONFIRMED_AT_ONCE, CONFIRMED = 3, 2


@dataclass(frozen=True, eq=False)
class Candidate:
    """A pair and its answers."""

    pair: Pair
    source: AnswerSource


def audit_pairs(
    question: Question,
    pairs: Sequence[Pair],
    priorities: Sequence[float],
    *,
    trials: int,
    error: float,
    noise: Noise,
) -> tuple[AuditResult, ...]:
    """Audit a question on the most suspicious of many pairs.

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
    tried = claims(question.guarantee, question.plan)
    small = [pairs[index] for index in order if len(pairs[index].sample) <= MOST_ROWS]
    ordered = small or [pairs[index] for index in order]
    candidates = list(_candidates(question, ordered, trials, noise))
    quick = all(each.source.at_once for each in candidates)
    chosen = _screened(candidates, tried, trials, quick=quick)
    each = 1 - error / len(chosen)
    answers = (trials, trials) if quick else _shares(trials, len(chosen))
    return tuple(_confirmed(candidate, question, tried, answers, each) for candidate in chosen)


def _candidates(question: Question, pairs: list[Pair], trials: int, noise: Noise) -> Iterator[Candidate]:
    """Pairs in their order, as many as there are answers for; of those drawn at once, one of each kind."""
    seen: set[Hashable] = set()
    slow = 0
    for pair in pairs:
        if slow >= min(MOST_SCREENED, max(1, trials // 4 // (2 * LEAST_OUTCOMES))):
            return
        source = _source(question, pair, noise)
        slow += not source.at_once
        if source.signature is None or source.signature not in seen:
            seen.add(source.signature)
            yield Candidate(pair, source)


def _source(question: Question, pair: Pair, noise: Noise) -> AnswerSource:
    rows, neighbour = pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(0))
    return AnswerSource.of(question, rows, neighbour, noise=noise)


def _shares(trials: int, confirmed: int) -> tuple[int, int]:
    """Answers to choose an event on, and to count it on."""
    return max(2 * LEAST_OUTCOMES, trials // 4 // confirmed), max(
        2 * LEAST_OUTCOMES, trials // 2 // confirmed
    )


def _screened(
    candidates: list[Candidate], tried: tuple[Claim, ...], trials: int, *, quick: bool
) -> list[Candidate]:
    """The pair of highest priority, and those that a few answers tell apart best."""
    answers = (
        min(trials, SCREENED_AT_ONCE) if quick else max(2 * LEAST_OUTCOMES, trials // 4 // len(candidates))
    )
    strengths = [_strength(each.source.draw(answers), tried) for each in candidates]
    best = sorted(range(len(candidates)), key=lambda index: -strengths[index])
    most = CONFIRMED_AT_ONCE if quick else CONFIRMED
    return [candidates[index] for index in list(dict.fromkeys([0, *best]))[:most]]


def _strength(outcomes: Outcomes, tried: tuple[Claim, ...]) -> float:
    """How far above the claim a pair seems to be, in units of the claim."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        guesses = guess_events(outcomes, _coarse(tried), SCREENING_ERROR, coordinates=SCREENED_COORDINATES)
    units = _units(tried)
    return max(units(guess) for guess in guesses)


def _coarse(tried: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """What is enough to rank pairs: the claim's own point beside a curve, else everything."""
    first = tuple(claim for claim in tried if isinstance(claim, Point) and claim.first)
    curve = tuple(claim for claim in tried if isinstance(claim, Curve))
    return (*first, *curve) if curve else tried


def _units(tried: tuple[Claim, ...]) -> Callable[[Guess], float]:
    named = next(claim.epsilon for claim in tried if isinstance(claim, Point) and claim.first)

    def unit(guess: Guess) -> float:
        whole = named if isinstance(guess.claim, Point) else guess.claim.mu
        return (guess.bound - guess.claim.claimed) / whole

    return unit


def _confirmed(
    candidate: Candidate,
    question: Question,
    tried: tuple[Claim, ...],
    answers: tuple[int, int],
    confidence: float,
) -> AuditResult:
    choosing, counting = answers
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        guesses = guess_events(candidate.source.draw(choosing), tried, 1 - confidence)
    fresh = candidate.source.draw(counting)
    return count_events(
        guesses, fresh, claimed=question.guarantee, confidence=confidence, pair=candidate.pair.name
    )


__all__ = ["audit_pairs"]
