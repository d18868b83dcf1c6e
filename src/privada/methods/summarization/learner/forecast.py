"""What a summary is expected to gain over a random choice of rows, before anything is spent.

The mean of the validation set is known up to noise whose size is public. How far the owners are from it, and
whether their rows can be chosen to match it, nobody knows beforehand; so the band is wide. Constants were
fitted to generated sets and to one table (``docs/measurements/forecasts.md``).
"""

from __future__ import annotations

from privada import _check
from privada.methods.forecast import Forecast, band_around
from privada.methods.summarization.learner.matching import Matching

BESIDE = "a random choice of as many rows (distance of mean features from the validation set)"
START, GAIN = 0.1, 0.85  # of the logarithm of the ratio: where nothing is heard, and what can be gained
HALF_HEARD = 0.75  # squared length of the noise, embedded rows having length 1, at which half of it is
BAND = (0.57, 0.51)  # below and above


def forecast_summary(matching: Matching, *, validation_size: int) -> Forecast:
    """The expected ratio of distances from the public settings alone.

    Parameters
    ----------
    matching : Matching
    validation_size : int
        m, public.
    """
    m = _check.count(validation_size=validation_size)
    noise = matching.embedding.dimension * matching.validation_question().variance / m**2
    heard = HALF_HEARD / (HALF_HEARD + noise)
    return band_around(START - GAIN * heard, *BAND, BESIDE)


__all__ = ["forecast_summary"]
