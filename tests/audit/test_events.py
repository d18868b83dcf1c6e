"""Statistics, scores and events; an event is chosen on some outcomes and bounded on others."""

import numpy as np
import pytest

from privada.audit import events
from privada.audit.blackbox import points
from privada.audit.events import Centres, Mixture, Outcomes, Point, Statistic, scores, statistics, thresholds
from privada.privacy import (
    PureDP,
)

GAPS = np.array([[0.0, np.nan], [np.inf, 2.0], [-1.0, 0.0]])


def every(first, second, **options):
    return {each.name: each for each in statistics(first, second, Centres.of(first, second, None), **options)}


def test_every_statistic_is_one_number_per_outcome_and_no_score_is_missing():
    for name, statistic in every(GAPS, GAPS + 1).items():
        with np.errstate(invalid="ignore"):  # as every audit does
            values = statistic.of(GAPS)
            turned = [score.of(GAPS) for score in scores(statistic, values, values + 1)]
        assert values.shape == (3,), name
        assert not np.isnan(turned).any(), name


def test_statistics_count_what_they_name():
    found = every(GAPS, GAPS)
    assert found["missing numbers"].of(GAPS).tolist() == [1, 0, 0]
    assert found["zeros"].of(GAPS).tolist() == [1, 0, 1]
    assert found["largest"].of(GAPS).tolist() == [0, np.inf, 0]
    assert found["smallest"].of(GAPS).tolist() == [0, 2, -1]


def test_only_the_coordinates_that_differ_most_are_tried():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 200, 6))
    second[:, [1, 4]] += 9
    found = [name for name in every(first, second, coordinates=2) if name.startswith("coordinate")]
    assert found == ["coordinate 1", "coordinate 4"]


def test_centres_are_medians_of_what_is_there_unless_exact_values_are_known():
    outcomes = np.array([[1.0, np.nan], [2.0, np.nan], [9.0, np.nan]])
    assert Centres.of(outcomes, outcomes, None).first.tolist() == [2.0, 0.0]
    exact = np.zeros(2), np.ones(2)
    centres = Centres.of(outcomes, outcomes, exact)
    assert (centres.second - centres.first).tolist() == [1.0, 1.0]
    assert (centres.scale > 0).all()


def test_a_histogram_gives_every_atom_a_bin_of_its_own():
    """0 was met three times as often on the first data set, 1 never on it."""
    statistic = Statistic(name="itself", of=lambda x: x)
    first, second = np.array([0.0, 0.0, 0.0, 0.5]), np.array([0.0, 1.0, 1.0, 1.0])
    ratio = next(each for each in scores(statistic, first, second) if each.name == "histogram of itself")
    expected = np.log([3.5 / 1.5, 0.5 / 3.5])
    np.testing.assert_allclose(ratio.of(np.array([0.0, 1.0])), expected)
    assert ratio.of(np.array([0.25, np.nan])).tolist() == [0.0, 0.0]  # met on neither


def test_thresholds_are_values_that_were_met_from_the_least_to_the_largest():
    first, second = np.array([3.0, -np.inf, 5.0]), np.array([7.0, 4.0])
    levels = thresholds(first, second)
    assert levels.tolist() == [-np.inf, 3.0, 4.0, 5.0, 7.0]


def test_the_ratio_of_mixtures_is_that_of_their_densities():
    from scipy.stats import norm

    first, second = np.array([[0.0], [0.0], [2.0]]), np.array([[2.0], [1.0]])
    mixture = Mixture(at=slice(1, 3), width=1, scale=0.7, first=first, second=second)
    rows = np.array([[99.0, 0.3, 1.9]])

    def log_density(x, centres):
        return np.log(np.mean([norm.pdf(x, loc=c, scale=0.7) for c in centres.ravel()]))

    expected = sum(log_density(x, second) - log_density(x, first) for x in (0.3, 1.9))
    assert mixture.ratio(rows)[0] == pytest.approx(expected)
    assert "likelihood ratio of sampled rows" in every(GAPS, GAPS, mixture=mixture)


ONE = PureDP(epsilon=1.0, relation="add/remove")


@pytest.fixture
def rng():
    return np.random.default_rng(2024)


def test_clopper_pearson_is_exact_at_every_count():
    """P(count >= k) at the lower bound, and P(count <= k) at the upper, are the stated error."""
    from scipy.special import bdtr, bdtrc

    lows, highs = events.clopper_pearson(50, 0.01)
    assert lows[0] == 0
    assert highs[50] == 1
    np.testing.assert_allclose(bdtrc(np.arange(50), 50, lows[1:]), 0.01, rtol=1e-6)
    np.testing.assert_allclose(bdtr(np.arange(50), 50, highs[:-1]), 0.01, rtol=1e-6)


def null_pair(rng, trials=800, width=5):
    return rng.normal(size=(trials, width)), rng.normal(size=(trials, width))


@pytest.mark.statistical
def test_without_the_split_the_coverage_would_be_lost(rng, monkeypatch):
    """Bounding on the outcomes that the event was chosen on exceeds the truth: the test above can fail."""
    monkeypatch.setattr(events, "CAUTION", 1.0)
    above = 0
    for _ in range(20):
        outcomes = Outcomes.of(*null_pair(rng))
        guesses = events.guess_events(outcomes, points(ONE), 0.2)
        above += max(events.bound_event(guess, outcomes.halves()[1], 0.2) for guess in guesses) > 0
    assert above >= 15


def test_the_event_that_tells_two_data_sets_apart_is_chosen(rng):
    """Coordinate 3 alone moves, by more than its noise is wide."""
    first, second = null_pair(rng)
    second[:, 3] += 20.0
    guesses = events.guess_events(Outcomes.of(first, second), points(ONE), 0.01)
    assert {guess.direction for guess in guesses} == {0, 1}
    for guess in guesses:
        assert guess.rank[0]
        assert events.bound_event(guess, Outcomes.of(first, second), 0.01) > 3


def test_a_violation_outranks_a_tight_bound_and_a_point_that_is_not_named_comes_last():
    def guess(bound, *, first):
        claim = Point(epsilon=1.0, delta=0.0, first=first)
        return events.Guess(score=None, threshold=0.0, direction=0, claim=claim, bound=bound)

    violated, tight, aside = guess(1.1, first=False), guess(0.99, first=True), guess(0.99, first=False)
    assert max([aside, tight, violated], key=lambda each: each.rank) is violated
    assert max([aside, tight], key=lambda each: each.rank) is tight
