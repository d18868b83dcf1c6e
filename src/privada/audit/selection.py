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
import numpy.typing as npt

from privada.audit.claims import Point
from privada.audit.events import Centres, Score, scores, statistics, thresholds
from privada.audit.sampling import Outcomes

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

CAUTION = 0.05  # events are compared by bounds of a smaller error, since the best of many flatters


@dataclass(frozen=True, kw_only=True, eq=False)
class Guess:
    """An event, and the point of the claim at which it is to be tried."""

    score: Score
    threshold: float
    direction: int
    point: Point
    bound: float  # what the outcomes it was chosen on would say

    @property
    def rank(self) -> tuple[bool, float]:
        """Where a violation is seen, its size; else how tight the claim's own point is."""
        excess = self.bound - self.point.epsilon
        return (True, excess) if excess > 0 else (False, self.bound if self.point.first else -math.inf)


def guess_events(outcomes: Outcomes, points: tuple[Point, ...], error: float) -> list[Guess]:
    """The best event of each direction."""
    best: dict[int, Guess] = {}
    for guess in _guesses(outcomes, points, error * CAUTION):
        if guess.direction not in best or guess.rank > best[guess.direction].rank:
            best[guess.direction] = guess
    return list(best.values())


def bound_event(guess: Guess, outcomes: Outcomes, error: float) -> float:
    """The bound that other outcomes give for a chosen event."""
    sides = outcomes.first, outcomes.second
    counts = [np.array([np.sum(guess.score.of(side) >= guess.threshold)]) for side in sides]
    bounds = epsilon_bounds(
        counts[guess.direction],
        counts[1 - guess.direction],
        n=len(outcomes.first),
        delta=guess.point.delta,
        error=error,
    )
    return float(bounds[0])


def _guesses(outcomes: Outcomes, points: tuple[Point, ...], error: float) -> Iterator[Guess]:
    for score, turned in _scored(*outcomes.halves()):
        levels = thresholds(*turned)
        counts = _at_least(turned[0], levels), _at_least(turned[1], levels)
        for direction in (0, 1):
            for point in points:
                bounds = epsilon_bounds(
                    counts[direction],
                    counts[1 - direction],
                    n=len(turned[0]),
                    delta=point.delta,
                    error=error,
                )
                at = int(np.argmax(bounds))
                yield Guess(
                    score=score,
                    threshold=float(levels[at]),
                    direction=direction,
                    point=point,
                    bound=float(bounds[at]),
                )


def _scored(fitted: Outcomes, compared: Outcomes) -> Iterator[tuple[Score, tuple[FloatArray, FloatArray]]]:
    """Every score, fitted on some outcomes, with its values on others."""
    centres = Centres.of(fitted.first, fitted.second, fitted.exact)
    for statistic in statistics(fitted.first, fitted.second, centres):
        values = statistic.of(compared.first), statistic.of(compared.second)
        for score in scores(statistic, statistic.of(fitted.first), statistic.of(fitted.second)):
            yield score, (score.turn(values[0]), score.turn(values[1]))


def _at_least(values: FloatArray, levels: FloatArray) -> IntArray:
    """How many values reach each level."""
    return len(values) - np.searchsorted(np.sort(values), levels, side="left")


def epsilon_bounds(favoured: IntArray, other: IntArray, *, n: int, delta: float, error: float) -> FloatArray:
    """Lower bounds on ε(δ) from counts among ``n``, each with an error of half of ``error``.

    >>> epsilon_bounds(np.array([900]), np.array([100]), n=1000, delta=0, error=0.01).round(3)
    array([1.906])
    """
    lows, highs = clopper_pearson(n, error / 4)
    excess = lows[favoured] - delta
    bounds: FloatArray = np.log(np.maximum(excess, 1e-300) / highs[other])
    return bounds


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


__all__ = ["Guess", "bound_event", "clopper_pearson", "epsilon_bounds", "guess_events"]
