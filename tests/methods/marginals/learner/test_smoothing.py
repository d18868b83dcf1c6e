import numpy as np
import pytest
from scipy.stats import poisson

from privada.methods.marginals.learner import smoothing
from privada.methods.marginals.learner.smoothing import Cells, NoisyCounts, Smoothed
from privada.privacy.mechanism import Gaussian, Laplace

LAPLACE = Laplace.calibrated(sensitivity=1, epsilon=1)
ROWS = np.arange(80)


def by_sums(observed, rate, draw, other=0.0):
    """The likelihood by plain sums over rows, for Laplace noise on whole numbers."""
    q = np.exp(-1 / draw.scale)
    mine, theirs = poisson.pmf(ROWS, rate), poisson.pmf(ROWS, other)
    noise = observed - ROWS[:, None] + ROWS[None, :]
    return np.log(mine @ ((1 - q) / (1 + q) * q ** np.abs(noise)) @ theirs)


@pytest.mark.parametrize(
    "draw", [LAPLACE, Laplace.calibrated(sensitivity=1, epsilon=0.2)], ids=["one", "fifth"]
)
def test_the_likelihood_of_a_count_is_exact(draw):
    observed, rate = np.array([0.0, 3.0, -2.0, 7.0, 30.0]), np.array([1.0, 2.5, 0.3, 9.0, 20.0])
    value, slope, curvature = NoisyCounts(observed=observed, draw=draw)(rate)
    assert value == pytest.approx([by_sums(*at, draw) for at in zip(observed, rate, strict=True)], abs=1e-9)
    step = 1e-4
    up, down = (NoisyCounts(observed=observed, draw=draw)(rate + sign * step)[0] for sign in (1, -1))
    assert slope == pytest.approx((up - down) / (2 * step), abs=1e-6)
    second = -(up - 2 * value + down) / step**2
    assert curvature == pytest.approx(np.maximum(second, 0.1 / (rate + draw.variance)), abs=1e-5)


def test_the_likelihood_of_a_difference_is_exact():
    observed, rate, other = np.array([0.0, 3.0, -4.0]), np.array([1.0, 2.5, 0.3]), np.array([2.0, 0.5, 6.0])
    counts = NoisyCounts(observed=observed, draw=LAPLACE)
    value, slope, _ = counts(rate, other)
    expected = [by_sums(c, r, LAPLACE, o) for c, r, o in zip(observed, rate, other, strict=True)]
    assert value == pytest.approx(expected, abs=1e-9)
    step = 1e-5
    up, down = (counts(rate + sign * step, other - sign * step)[0] for sign in (1, -1))
    assert slope == pytest.approx((up - down) / (2 * step), abs=1e-6)


def test_normal_noise_and_sums_of_noises_are_laws_that_add_up_to_one():
    draw = Gaussian.calibrated(sensitivity=1, mu=0.5, whole=True)
    observed = np.arange(-40.0, 60.0)
    for counts in (
        NoisyCounts(observed=observed, draw=draw),
        NoisyCounts(observed=observed, draw=LAPLACE, times=3),
    ):
        law = np.exp(counts(np.full(len(observed), 5.0))[0])
        assert law.sum() == pytest.approx(1, abs=1e-6)
        assert (law * observed).sum() == pytest.approx(5, abs=1e-4)
        assert (law * (observed - 5) ** 2).sum() == pytest.approx(5 + counts.variance, rel=1e-3)


def test_a_count_beyond_all_chance_still_says_where_to_go():
    value, slope, curvature = NoisyCounts(observed=np.array([500.0, 0.0]), draw=LAPLACE)(
        np.array([1.0, 400.0])
    )
    assert np.isfinite(value).all()
    assert np.isfinite(curvature).all()
    assert slope[0] > 0 > slope[1]


@pytest.fixture
def line():
    """Points on a line in 30 cells, 20 rows each, whose label is the right half; and a kernel."""
    points = np.linspace(-1, 1, 600)[:, None]
    groups = np.repeat(np.arange(30), 20)
    like = Smoothed(
        points=points,
        coefficients=np.zeros((600, 1)),
        level=np.zeros(1),
        family="rbf",
        length=0.3,
        variance=1.0,
        evidence=0.0,
    )
    return Cells.spread(points, groups, 30, 600), like, np.arange(0, 600, 3)


def noisy(counts, seed):
    rng = np.random.default_rng(seed)
    return counts + rng.geometric(1 - np.exp(-1), 30) - rng.geometric(1 - np.exp(-1), 30)


def test_log_odds_find_the_boundary_from_counts_and_from_differences(line):
    cells, like, few = line
    right = np.where(np.arange(30) >= 15, 20.0, 0.0)
    draws = [NoisyCounts(observed=noisy(c, seed), draw=LAPLACE) for seed, c in enumerate((right, 20 - right))]
    by_counts = smoothing.log_odds_of_counts(cells, *draws, like=like, few=few)
    difference = NoisyCounts(observed=noisy(2 * right - 20, 3), draw=LAPLACE)
    by_difference = smoothing.log_odds_of_differences(cells, difference, like=like, few=few)
    for found in (by_counts, by_difference):
        said = found(cells.points)[:, 0] > 0
        assert (said == (cells.points[:, 0] > 0)).mean() > 0.96
        assert found(np.array([[0.8]]))[0, 0] > 2


def test_the_ratio_follows_the_totals(line):
    cells, like, few = line
    twice = np.where(np.arange(30) >= 15, 30.0, 10.0)
    totals = NoisyCounts(observed=noisy(twice, 5), draw=LAPLACE, times=2)
    ratio = smoothing.ratio_of(smoothing.log_ratio(cells, totals, like=like, few=few)(cells.points)[:, 0])
    assert ratio[:200].mean() == pytest.approx(0.5, abs=0.15)
    assert ratio[-200:].mean() == pytest.approx(1.5, abs=0.25)


def test_fewer_points_stand_for_the_rows_of_all(line):
    cells, _, few = line
    part = cells.among(few)
    assert part.design @ part.rates == pytest.approx(cells.design @ cells.rates)
