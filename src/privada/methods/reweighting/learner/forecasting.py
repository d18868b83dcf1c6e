"""What an adaptation is expected to gain over the public linear model, before anything is spent.

For numbers one public fact says something of it: where mixing public models helps on held-out public rows,
it helps about twice as much (in logarithms) in another domain. For classes nothing public was found that
does, so the usual gain is expected everywhere. How far the target is from the source nobody can know without
asking, so the bands are wide. With few private rows for their noise all gains vanish, and noise remains. The
constants were set on development tables, the bands with whole tables left out
(`docs/measurements/reweighting.md`).
"""

from __future__ import annotations

import math

import numpy as np

from privada.methods.forecast import Forecast, band_around
from privada.methods.reweighting.learner.public_models import PublicSource

MIXING, LEAST_GAIN = 1.8, 0.03  # of numbers
CLASS_GAIN = 0.33  # of classes
HALF_HEARD = 10.0  # n μ at which half of a gain is expected
NOISE_LOSS = 0.05  # where nothing can be heard
NUMBERS_BAND, CLASSES_BAND = (0.55, 0.4), (0.6, 0.43)  # below and above


def forecast(source: PublicSource, *, size: int, mu: float) -> Forecast:
    """The expected ratio of errors, with a band that holds four outcomes of five.

    Parameters
    ----------
    source : PublicSource
    size : int
        Number of private rows.
    mu : float
        Of the guarantee, as a Gaussian's.
    """
    gain, band = CLASS_GAIN, CLASSES_BAND
    if source.features.link == "identity":
        # logarithm of the held-out squared error of the models' mean over the linear model's
        predictions = source.predictions
        mean, linear = (
            float(((source.labels - part) ** 2).mean())
            for part in (predictions.mean(axis=1), predictions[:, 0])
        )
        tiny = 1e-12 * max(float(np.var(source.labels)), 1e-300)
        mixing_gain = math.log((mean + tiny) / (linear + tiny))
        gain, band = LEAST_GAIN - MIXING * min(0.0, mixing_gain), NUMBERS_BAND
    heard = size * mu / (size * mu + HALF_HEARD)
    return band_around(NOISE_LOSS * (1 - heard) - gain * heard, *band, "the public linear model")


__all__ = ["forecast"]
