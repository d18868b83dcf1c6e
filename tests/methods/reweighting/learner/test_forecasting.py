"""The forecast: public rows alone, less with few rows for the noise, more where mixing models pays."""

import warnings

import numpy as np
import pytest

from privada.methods.reweighting.learner.forecasting import CLASSES_BAND, NUMBERS_BAND, forecast
from privada.methods.reweighting.learner.public_models import fit_source

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(300, 3))


@pytest.fixture(scope="module")
def sources():
    """Public models of a straight line, of a bent one, and of two classes."""
    labels = {
        "straight": (X[:, 0] + 0.1 * RNG.normal(size=300), 0),
        "bent": (np.abs(X[:, 0]) + 0.1 * RNG.normal(size=300), 0),
        "classes": ((X[:, 0] > 0).astype(np.int64), 2),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: fit_source(X, y, n_classes=classes, limits=None, base="auto", standardize=True, seed=0)
            for name, (y, classes) in labels.items()
        }


@pytest.mark.parametrize("name", ["straight", "bent", "classes"])
def test_more_rows_and_budget_promise_more_and_next_to_none_nothing(sources, name):
    few, many = (forecast(sources[name], size=size, mu=0.3) for size in (50, 5000))
    assert many.ratio < few.ratio
    assert forecast(sources[name], size=50, mu=3.0).ratio < few.ratio
    assert not forecast(sources[name], size=1, mu=1e-3).worthwhile


def test_numbers_gain_where_models_that_are_not_linear_do_on_public_rows(sources):
    bent, straight = (forecast(sources[name], size=1000, mu=0.3).ratio for name in ("bent", "straight"))
    assert bent < 0.5 < 0.8 < straight < 1


@pytest.mark.parametrize(("name", "band"), [("bent", NUMBERS_BAND), ("classes", CLASSES_BAND)])
def test_bands_are_as_wide_everywhere(sources, name, band):
    found = forecast(sources[name], size=1000, mu=0.3)
    assert found.high / found.low == pytest.approx(np.exp(sum(band)))
    assert found.beside == "the public linear model"
