"""How exactly an evaluation will be known, before anything is spent: half the width of its interval.

The noise and the number of rows are public, so the interval can be worked out for every true accuracy. Which
one it is nobody knows beforehand; models that somebody bothers to evaluate are mostly good, so the share of
wrong predictions is taken to lie anywhere between next to nothing and chance, evenly in its logarithm.
"""

from __future__ import annotations

import math

import numpy as np

from privada.methods.evaluation.learner import intervals
from privada.methods.evaluation.learner.intervals import CONFIDENCE, Estimate, NoisyCount
from privada.methods.evaluation.questions.errors import ErrorMoments
from privada.methods.evaluation.questions.outcomes import OutcomeCounts
from privada.methods.forecast import CONFIDENCE as BAND
from privada.methods.forecast import Forecast, say_size
from privada.privacy.relation import Relation

LEAST_WRONG, LEAST_ERROR = 0.01, 0.001  # shares of wrong predictions and of the largest squared error
MOST_ERROR = 0.25  # of the largest squared error
POINTS = 41


def forecast_interval(
    question: OutcomeCounts | ErrorMoments, *, size: int | None, confidence: float = CONFIDENCE
) -> Forecast:
    """Expected half-width of the accuracy's interval, or of the squared error's over its bound.

    Parameters
    ----------
    question : OutcomeCounts or ErrorMoments
    size : int or None
        Announced number of rows.
    confidence : float, default=0.95
        Of the interval.
    """
    rows, said = say_size(size)
    public = size if question.guarantee.relation is not Relation.ADD_REMOVE else None
    if isinstance(question, ErrorMoments):
        errors = np.geomspace(LEAST_ERROR, MOST_ERROR, POINTS)
        halves = [_half(_mean(question, error, rows, confidence)) for error in errors]
        measure = "half the width of the squared error's interval, over its bound"
    else:
        wrong = np.geomspace(LEAST_WRONG, 1 - 1 / question.n_classes, POINTS)
        halves = [_half(_accuracy(question, 1 - each, rows, public, confidence)) for each in wrong]
        measure = "half the width of the accuracy's interval"
    low, middle, high = np.quantile(halves, [(1 - BAND) / 2, 0.5, (1 + BAND) / 2])
    return Forecast(
        ratio=float(middle),
        low=float(low),
        high=float(high),
        measure=f"{measure} ({confidence:.0%}), {said}",
        nothing=0.5,  # from 0 to 1, without asking
    )


def _half(found: Estimate) -> float:
    return (found.high - found.low) / 2


def _accuracy(
    question: OutcomeCounts, accuracy: float, rows: int, public: int | None, confidence: float
) -> Estimate:
    """The interval where the noise happens to be nothing."""
    entries, draw = question.shape, question.plan.lattice("table")
    right = entries[0] * entries[2] if entries[1] > 1 else entries[2]
    wrong = math.prod(entries) - right
    hits = NoisyCount(value=accuracy * rows, entries=right, draw=draw)
    misses = NoisyCount(value=(1 - accuracy) * rows, entries=wrong, draw=draw)
    return intervals.rate(hits, misses, total=public, confidence=confidence)


def _mean(question: ErrorMoments, error: float, rows: int, confidence: float) -> Estimate:
    """The interval of a mean of errors that are spread like an exponential law's."""
    plan = question.plan
    noise = plan.lattice("errors").variance
    if question.counts_rows:
        noise += error**2 * plan.lattice("rows").variance
    variance = min(error**2, error * (1 - error)) / rows + noise / rows**2
    return intervals.normal(error, variance=variance, low=0.0, high=1.0, confidence=confidence)


__all__ = ["forecast_interval"]
