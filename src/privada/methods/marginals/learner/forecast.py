"""What to expect of an asking before anything is spent: the error, over that of one noisy number.

Nothing is known of labels yet, so the band is wide. Two public facts say something on the development half of
the tables. The more rows there are for the noise, the smaller the ratio. And where the source's features
move together (few directions hold most of their variance, as among measurements of one thing), classes are
told apart more easily than where they are even, as among many categories. Of numbers nothing public told more
than the first. Coefficients and bands: ``docs/measurements/marginals.md``.
"""

from __future__ import annotations

import math

import numpy as np

from privada.methods.forecast import Forecast
from privada.methods.marginals.learner.descent import LIMIT
from privada.methods.marginals.learner.learn import Public
from privada.privacy.guarantee import Guarantee, Pure

FEWEST_ROWS = 10.0  # for the noise: with fewer nothing is expected
CLASSES, CLASSES_BY_EVENNESS, CLASSES_BY_ROWS = 0.64, 0.65, -0.06  # of the logarithm of the ratio
NUMBERS, NUMBERS_BY_ROWS = -0.11, -0.07
CLASSES_BAND, NUMBERS_BAND = (-1.1, 0.5), (-0.9, 0.55)  # around it, for four outcomes of five
LEAST_GAIN = 0.95  # where the formula would expect none: no development pair was worse on average
LARGEST_RATIO = 1.05  # the descent is short where it would tell nothing, so it does not do much harm


def forecast_error(public: Public, *, guarantee: Guarantee, size: int) -> Forecast:
    """The expected ratio and its band, from public facts alone; of a number if there are no classes."""
    rows = size * _mu(guarantee) / guarantee.unit.max_rows
    if public.classes:
        ratio = CLASSES + CLASSES_BY_EVENNESS * math.log(evenness(public)) + CLASSES_BY_ROWS * math.log(rows)
        band, beside = CLASSES_BAND, "the noisy majority class"
    else:
        ratio = NUMBERS + NUMBERS_BY_ROWS * math.log(rows)
        band, beside = NUMBERS_BAND, "the noisy mean"
    ratio = min(ratio, math.log(LEAST_GAIN)) if rows >= FEWEST_ROWS else 0.0
    return Forecast(
        ratio=math.exp(ratio),
        low=math.exp(ratio + band[0]),
        high=min(math.exp(ratio + band[1]), LARGEST_RATIO),
        beside=beside,
    )


def _mu(guarantee: Guarantee) -> float:
    """Of a pure guarantee half of ε: about as much noise as its Laplace noise on one number."""
    return guarantee.epsilon / 2 if isinstance(guarantee, Pure) else guarantee.gaussian_mu()


def evenness(public: Public) -> float:
    """How evenly the source's variance is spread over directions: 1 if all have the same, less otherwise.

    >>> line = np.arange(10.0)[:, None]
    >>> round(evenness(Public(source=line @ np.ones((1, 4)), classes=(0, 1))), 2)
    0.25
    """
    inside = np.clip(public.standard, -LIMIT, LIMIT)
    inside = inside[:, inside.std(axis=0) > 0]
    if not inside.size:
        return 1.0
    spread = np.maximum(np.linalg.eigvalsh(inside.T @ inside / len(inside)), 0.0)
    return float(spread.sum() ** 2 / (spread @ spread) / len(spread))


__all__ = ["evenness", "forecast_error"]
