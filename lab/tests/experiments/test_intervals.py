"""Intervals of means."""

import numpy as np
import pytest

from privada_lab.experiments.intervals import mean_interval


def test_intervals_cover_the_mean():
    rng = np.random.default_rng(0)
    covered = [
        low <= 0 <= high for low, high in (mean_interval(rng.normal(size=5)).ends for _ in range(2000))
    ]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)
    assert mean_interval([1.0]).ends is None
