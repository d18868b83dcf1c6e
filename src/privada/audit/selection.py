"""Choose an event on some outcomes, bound epsilon on others.

Statistics are fitted on a first part of the outcomes and compared on a second,
so that a histogram that remembers its own outcomes is not preferred to one that
tells the data sets apart. What is chosen has no influence on the validity of a
bound from outcomes that were not looked at, only on how good it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.audit.claims import Claim, Point
from privada.audit.events import MOST_COORDINATES, Centres, TurnedStatistic, scores, statistics, thresholds
from privada.audit.sampling import Outcomes

CAUTION = 0.05  # events are compared by bounds of a smaller error, since the best of many flatters


@dataclass(frozen=True, kw_only=True, eq=False)
class Guess:
    """An event, and the part of the claim on which it is to be tried."""

    score: TurnedStatistic
    threshold: float
    direction: int
    claim: Claim
    bound: float  # what the outcomes it was chosen on would say

    @property
    def rank(self) -> tuple[bool, float]:
        """Where a violation is seen, its size; else how tight the claim is."""
        excess = self.bound - self.claim.claimed
        if excess > 0:
            return True, excess
        aside = isinstance(self.claim, Point) and not self.claim.first
        return False, -math.inf if aside else self.bound


def guess_events(
    outcomes: Outcomes, claims: tuple[Claim, ...], error: float, *, coordinates: int = MOST_COORDINATES
) -> list[Guess]:
    """The best event of each direction, for points and for a curve."""
    best: dict[tuple[int, type[Claim]], Guess] = {}
    for guess in _guesses(outcomes, claims, error * CAUTION, coordinates):
        kind = guess.direction, type(guess.claim)
        if kind not in best or guess.rank > best[kind].rank:
            best[kind] = guess
    return list(best.values())


def bound_event(guess: Guess, outcomes: Outcomes, error: float) -> float:
    """The bound that other outcomes give for a chosen event; half of ``error`` is its own."""
    sides = outcomes.first, outcomes.second
    counts = [int(np.sum(guess.score.of(side) >= guess.threshold)) for side in sides]
    lows, highs = clopper_pearson(len(outcomes.first), error / 4)
    found = guess.claim.bounds(
        lows[[counts[guess.direction]]],
        highs[[counts[1 - guess.direction]]],
    )
    return float(found[0])


def _guesses(
    outcomes: Outcomes, claims: tuple[Claim, ...], error: float, coordinates: int
) -> Iterator[Guess]:
    fitted, compared = outcomes.halves()
    lows, highs = clopper_pearson(len(compared.first), error / 4)
    for score, turned in _scored(fitted, compared, coordinates):
        levels = thresholds(*turned)
        counts = _at_least(turned[0], levels), _at_least(turned[1], levels)
        for direction in (0, 1):
            favoured, other = lows[counts[direction]], highs[counts[1 - direction]]
            for claim in claims:
                bounds = claim.bounds(favoured, other)
                at = int(np.argmax(bounds))
                yield Guess(
                    score=score,
                    threshold=float(levels[at]),
                    direction=direction,
                    claim=claim,
                    bound=float(bounds[at]),
                )


def _scored(
    fitted: Outcomes, compared: Outcomes, coordinates: int
) -> Iterator[tuple[TurnedStatistic, tuple[FloatArray, FloatArray]]]:
    """Every score, fitted on some outcomes, with its values on others."""
    centres = Centres.of(fitted.first, fitted.second, fitted.exact)
    for statistic in statistics(fitted.first, fitted.second, centres, fitted.mixture, coordinates):
        values = statistic.of(compared.first), statistic.of(compared.second)
        for score in scores(statistic, statistic.of(fitted.first), statistic.of(fitted.second)):
            yield score, (score.turn(values[0]), score.turn(values[1]))


def _at_least(values: FloatArray, levels: FloatArray) -> IntArray:
    """How many values reach each level."""
    return len(values) - np.searchsorted(np.sort(values), levels, side="left")


@lru_cache(maxsize=16)
def clopper_pearson(n: int, error: float) -> tuple[FloatArray, FloatArray]:
    """One-sided exact bounds on a probability for every count from 0 to ``n``, each with this error.

    >>> lows, highs = clopper_pearson(100, 0.025)
    >>> f"{lows[10]:.4f} {highs[10]:.4f}"
    '0.0490 0.1762'
    """
    from scipy.special import betaincinv

    k = np.arange(n + 1)
    lows, highs = np.zeros(n + 1), np.ones(n + 1)
    lows[1:] = betaincinv(k[1:], n - k[1:] + 1.0, error)
    highs[:-1] = betaincinv(k[:-1] + 1.0, n - k[:-1], 1 - error)
    return lows, highs


__all__ = ["Guess", "bound_event", "clopper_pearson", "guess_events"]
