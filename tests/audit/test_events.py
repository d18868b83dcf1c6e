"""Statistics, scores and thresholds: what is missing or infinite is scored too, and ratios are exact."""

import numpy as np
import pytest

from privada.audit.events import Centres, Mixture, Statistic, scores, statistics, thresholds

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
