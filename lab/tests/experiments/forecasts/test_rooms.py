"""Every method on one set: a forecast, and an outcome that is measured as the forecast says."""

import pytest

from privada.methods.method import methods
from privada_lab.experiments.forecasts.rooms import METHODS, try_method
from privada_lab.experiments.forecasts.sets import generated

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning", "ignore::UserWarning")
CLASSES, NUMBERS = (generated(number).split(None, seed=0) for number in (3, 0))


def test_every_method_is_tried():
    assert set(METHODS) == set(methods())


@pytest.mark.parametrize("name", METHODS)
def test_a_method_forecasts_and_is_measured(name):
    (found,) = try_method(name, CLASSES, 2.0)
    assert found.method == name
    assert found.place == CLASSES.pair.name
    assert 0 < found.outcome < 10 * found.forecast.high


@pytest.mark.parametrize("name", ["cells", "evaluation"])
def test_numbers_are_tried_too(name):
    (found,) = try_method(name, NUMBERS, 1.0)
    assert found.forecast.low / 3 < found.outcome < 3 * found.forecast.high


def test_what_does_not_suit_a_label_is_left_out():
    assert try_method("transport", NUMBERS, 1.0) == []
