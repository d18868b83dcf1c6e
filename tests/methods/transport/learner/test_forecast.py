"""The forecast: public facts in, a ratio and its band out, and advice where nothing is gained."""

import warnings

import numpy as np
import pytest

from privada.exceptions import PrivadaWarning
from privada.methods.forecast import Forecast
from privada.methods.transport import TransportClassifier, forecast
from privada.methods.transport.learner.forecast import advise

RNG = np.random.default_rng(0)
UNRELATED = RNG.normal(size=(300, 12))
RELATED = UNRELATED[:, :1] + 0.1 * UNRELATED


def test_more_rows_budget_and_related_columns_promise_more():
    ask = {"size": 5000, "n_classes": 2, "mu": 0.3}
    ratio = forecast(UNRELATED, **ask).ratio
    assert forecast(UNRELATED, **ask | {"size": 50_000}).ratio < ratio
    assert forecast(UNRELATED, **ask | {"mu": 1.0}).ratio < ratio
    assert forecast(RELATED, **ask).ratio < ratio
    assert forecast(UNRELATED, **ask | {"n_classes": 5}).ratio > ratio


def test_its_band_is_wide_and_as_wide_everywhere():
    for target in (UNRELATED, RELATED, np.ones((3, 14)), UNRELATED[:, :1]):
        found = forecast(target, size=300, n_classes=3, mu=0.2)
        assert found.high / found.low == pytest.approx(np.exp(1.75))


def test_no_gain_is_said():
    with pytest.warns(PrivadaWarning, match="keeping the budget"):
        advise(Forecast(ratio=1.1, low=0.8, high=1.4, beside="nothing"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advise(Forecast(ratio=0.9, low=0.8, high=1.4, beside="nothing"))


def test_it_knows_nothing_of_private_rows():
    y = np.repeat(["a", "b"], 100)
    found = [
        TransportClassifier(epsilon=1, delta=1e-4, classes=("a", "b"), bounds=(-9, 9))
        .fit(rows, y, RELATED)
        .forecast_
        for rows in (RNG.normal(size=(200, 12)), np.zeros((200, 12)))
    ]
    assert found[0] == found[1]
