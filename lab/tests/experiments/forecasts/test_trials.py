"""Trials: coverage over all of them, correlation over sets, a picture of each method."""

import pytest

from privada.methods.forecast import Forecast
from privada_lab.experiments.forecasts.trials import Trial, by_method, figures, pictures


def trial(method, place, ratio, outcome, epsilon=1.0):
    forecast = Forecast(ratio=ratio, low=ratio / 2, high=2 * ratio, beside="doing nothing")
    return Trial(method=method, place=place, epsilon=epsilon, forecast=forecast, outcome=outcome)


ORDERED = [trial("cells", f"set {at}", 0.1 * at, 0.1 * at) for at in range(1, 6)]
OUTSIDE = [trial("transport", "far away", 0.5, 5.0), trial("transport", "far away", 0.5, 0.6)]


def test_coverage_is_over_outcomes_and_correlation_over_means_of_sets():
    found = {each.figure: each.value for each in figures([*OUTSIDE, *ORDERED], runs=1)}
    assert found == {
        "forecast_coverage_cells": 1.0,
        "forecast_correlation_cells": pytest.approx(1.0),
        "forecast_coverage_transport": 0.5,
    }
    turned = [trial("cells", each.place, each.forecast.ratio, 1 - each.outcome) for each in ORDERED]
    again = {each.figure: each.value for each in figures(turned, runs=1)}
    assert again["forecast_correlation_cells"] == pytest.approx(-1.0)


def test_each_method_has_a_picture_on_which_nothing_is_still_to_be_seen():
    first, second = pictures([*ORDERED, trial("transport", "near", 0.5, 0.0)])
    assert first.title == "Forecast and outcome of cells"
    assert first.places[0] == "set 1, epsilon 1"
    assert list(second.outcome) == [1e-9]
    assert list(by_method([*OUTSIDE, *ORDERED])) == ["cells", "transport"]
