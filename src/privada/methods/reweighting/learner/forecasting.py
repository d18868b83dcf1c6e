"""What an adaptation is expected to gain over the public linear model, before anything is spent.

Two public facts say something of it. Where mixing public models helps on held-out public rows, it helps about
twice as much (in logarithms) for numbers of another domain. A linear classifier of few public rows is far
from what the target needs. How far the target is from the source nobody can know without asking, so the band
is wide. With few private rows for their noise all gains vanish, and noise remains. The constants were set on
the development half of the tables (`docs/measurements/reweighting.md`).
"""

from __future__ import annotations

import math

import numpy as np

from privada.methods.forecast import Forecast
from privada.methods.reweighting.learner.public_models import PublicSource

MIXING, LEAST_GAIN = 1.8, 0.03  # of numbers
CLASS_GAIN, FEW_ROWS = 0.05, 5.0  # of classes: a constant, and over the root of the number of public rows
HALF_HEARD = 10.0  # n μ at which half of a gain is expected
NOISE_LOSS = 0.05  # where nothing can be heard
BELOW, ABOVE = (0.15, 0.5), (0.12, 0.4)  # the band's sides: a constant, and a share of the expected gain


def forecast(source: PublicSource, *, rows: int, size: int, mu: float) -> Forecast:
    """The expected ratio of errors, with a band that holds four outcomes of five.

    Parameters
    ----------
    source : PublicSource
    rows, size : int
        Numbers of public and private rows.
    mu : float
        Of the guarantee, as a Gaussian's.
    """
    if source.features.link == "identity":
        gain = LEAST_GAIN - MIXING * min(0.0, _mixing_gain(source))
    else:
        gain = CLASS_GAIN + FEW_ROWS / math.sqrt(rows)
    heard = size * mu / (size * mu + HALF_HEARD)
    expected = NOISE_LOSS * (1 - heard) - gain * heard
    low = expected - BELOW[0] - BELOW[1] * abs(expected)
    high = expected + ABOVE[0] + ABOVE[1] * abs(expected)
    return Forecast(
        ratio=math.exp(expected), low=math.exp(low), high=math.exp(high), beside="the public linear model"
    )


def _mixing_gain(source: PublicSource) -> float:
    """Logarithm of the held-out squared error of the models' mean over the linear model's."""
    found = source.predictions
    mean, linear = (float(((source.labels - each) ** 2).mean()) for each in (found.mean(axis=1), found[:, 0]))
    tiny = 1e-12 * max(float(np.var(source.labels)), 1e-300)
    return math.log((mean + tiny) / (linear + tiny))


__all__ = ["forecast"]
