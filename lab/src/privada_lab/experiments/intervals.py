"""Means over runs, with their 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mean:
    """A mean and the ends of its 95 % interval; one run has none."""

    mean: float
    ends: tuple[float, float] | None


def mean_interval(values: Sequence[float]) -> Mean:
    """Student's interval of a mean.

    >>> found = mean_interval([1.0, 2.0, 3.0])
    >>> found.mean, tuple(round(end, 2) for end in found.ends)
    (2.0, (-0.48, 4.48))
    """
    from scipy.special import stdtrit

    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return Mean(mean, None)
    half = float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Mean(mean, (mean - half, mean + half))


__all__ = ["Mean", "mean_interval"]
