"""Intervals hold what they say, through noise and sampling."""

import math

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.evaluation.learner.intervals import Estimate, NoisyCount, normal, rate, sum_quantile
from privada.privacy import Gaussian, Laplace

UNIT = Laplace(sensitivity=1, scale=2.0)


@pytest.mark.parametrize("scale", [0.05, 0.3, 2.0, 60.0, 4000.0])
@pytest.mark.parametrize("entries", [1, 3, 40])
@pytest.mark.statistical
def test_quantiles_of_summed_noise_hold(scale, entries):
    """Of 50,000 sums; five standard errors allowed: false alarm below 1e-6."""
    draw, rng = Laplace(sensitivity=1, scale=scale), np.random.default_rng(3)
    stop = -math.expm1(-1 / scale)
    sums = (rng.geometric(stop, (50_000, entries)) - rng.geometric(stop, (50_000, entries))).sum(axis=1)
    half = sum_quantile(draw, entries, 0.95)
    assert np.mean(np.abs(sums) <= half) > 0.95 - 5 * math.sqrt(0.05 * 0.95 / 50_000)
    less = 0.95 * half - draw.grid.step
    assert np.mean(np.abs(sums) <= less) < 0.951  # and are not much wider than needed


def test_one_draw_has_the_mechanisms_own_half_width():
    for draw in (UNIT, Gaussian.calibrated(sensitivity=1, mu=0.2, whole=True)):
        assert sum_quantile(draw, 1, 0.9) == pytest.approx(draw.half_width(0.9), rel=0.02)


def test_no_entries_have_no_noise():
    assert sum_quantile(UNIT, 0, 0.99) == 0


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
def test_a_wrong_confidence_is_named(confidence):
    with pytest.raises(InputError, match="confidence"):
        sum_quantile(UNIT, 1, confidence)
    with pytest.raises(InputError, match="confidence"):
        normal(0.5, variance=1, low=0, high=1, confidence=confidence)


def count(value, entries=1):
    return NoisyCount(value=value, entries=entries, draw=UNIT)


def test_rates_of_nothing_are_unknown():
    found = rate(count(-3.0), count(-2.0))
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


def test_a_known_total_narrows_the_interval():
    free, known = rate(count(90.0), count(10.0)), rate(count(90.0), count(10.0), total=100)
    assert free.low < known.low < 0.9 < known.high < free.high


def test_less_confidence_is_narrower():
    wide, narrow = (rate(count(70.0), count(30.0), confidence=c) for c in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.statistical
@pytest.mark.parametrize("p", [0.02, 0.5, 0.97])
@pytest.mark.parametrize(("rows", "scale", "entries"), [(30, 1.0, 2), (300, 4.0, 10), (3000, 1.0, 1)])
def test_rates_hold_the_populations_share(p, rows, scale, entries):
    """Of 1,500 data sets; the proof says 95 % at least. Four standard errors: false alarm below 1e-4 each."""
    rng, draw = np.random.default_rng(8), Laplace(sensitivity=1, scale=scale)
    stop = -math.expm1(-1 / scale)
    held = 0
    for _ in range(1500):
        hits = rng.binomial(rows, p)
        noise = (rng.geometric(stop, (2, entries)) - rng.geometric(stop, (2, entries))).sum(axis=1)
        found = rate(
            NoisyCount(value=float(hits + noise[0]), entries=entries, draw=draw),
            NoisyCount(value=float(rows - hits + noise[1]), entries=entries, draw=draw),
        )
        held += found.low <= p <= found.high
    assert held / 1500 > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 1500)


def test_normal_intervals_stay_within_known_limits():
    found = normal(1.1, variance=0.01, low=0.0, high=1.0)
    assert found.value == found.high == 1.0
    assert found.low == pytest.approx(1.1 - 1.96 * 0.1, abs=1e-3)


def test_an_estimate_says_its_interval():
    assert str(Estimate(value=1.0, low=0.5, high=1.5)) == "1.000 (0.500 to 1.500 with 95% confidence)"
    assert Estimate(value=1.0, low=0.5, high=1.5).to_dict()["confidence"] == 0.95
