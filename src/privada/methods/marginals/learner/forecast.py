"""What to expect of an asking before anything is spent: the error, over that of one noisy number.

Of numbers nothing public tells more than how many rows there are for the noise. Coefficients and bands were
fitted with whole tables left out (``docs/measurements/marginals.md``).
"""

from __future__ import annotations

import math

from privada.methods.forecast import ClassLine, Forecast, band_around
from privada.methods.marginals.learner.learn import Public
from privada.privacy.guarantee import Guarantee, PureDP

FEWEST_ROWS = 10.0  # for the noise: with fewer nothing is expected
CLASSES = ClassLine(start=0.45, by_rows=0.57, by_direction=2.4, below=1.25, above=0.7)
NUMBERS, NUMBERS_BY_ROWS = 0.38, -0.16  # of the logarithm of the ratio
NUMBERS_BAND = (1.25, 0.7)


def forecast_error(public: Public, *, guarantee: Guarantee, size: int) -> Forecast:
    """The expected ratio and its band, from public facts alone; of a number if there are no classes."""
    rows = size * _mu(guarantee) / guarantee.unit.max_rows
    if public.classes:
        each = rows / len(public.classes)
        return CLASSES.expect(public.source, rows=each, beside="the noisy majority class")
    line = NUMBERS + NUMBERS_BY_ROWS * math.log(rows) if rows >= FEWEST_ROWS else 0.0
    return band_around(line, *NUMBERS_BAND, "the noisy mean")


def _mu(guarantee: Guarantee) -> float:
    """Of a pure guarantee half of ε: about as much noise as its Laplace noise on one number."""
    return guarantee.epsilon / 2 if isinstance(guarantee, PureDP) else guarantee.gaussian_mu()


__all__ = ["forecast_error"]
