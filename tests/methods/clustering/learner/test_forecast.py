"""What is expected before anything is spent, and given the release."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.clustering import GridPyramid, LocalMeans, NearestMeans, estimate_cost, forecast_gain
from privada.privacy import PureDP

AR = "add/remove"


def grid(epsilon, width=2):
    return GridPyramid(levels=(2, 3), domain=1.0, width=width, guarantee=PureDP(epsilon=epsilon, relation=AR))


def test_more_rows_and_less_noise_promise_more():
    ratios = [
        forecast_gain(grid(e), width=2, size=n).ratio for e, n in ((0.5, 100), (0.5, 5000), (4.0, 5000))
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert forecast_gain(grid(4.0, width=3), width=3, size=5000).ratio > ratios[-1], (
        "more features, less gain"
    )


def test_noise_that_hides_every_row_promises_nothing():
    found = forecast_gain(grid(0.001), width=2, size=100)
    assert not found.worthwhile
    assert found.low < found.ratio < found.high
    with pytest.raises(InputError, match="size"):
        forecast_gain(grid(1.0), width=2, size=0)


def test_a_cost_is_corrected_by_question_and_never_above_what_is_certain():
    cells = np.zeros((2, 5))
    local = LocalMeans(cells=cells, shells=[0.1], domain=1.0, guarantee=PureDP(epsilon=1, relation=AR))
    for question in (grid(1.0), local):
        found = estimate_cost(question, 1.0, most=10.0)
        assert found.band[0] < found.cost < found.band[1]
        assert estimate_cost(question, 1.0, most=0.7).band[1] == 0.7
        assert estimate_cost(question, 1.0, most=0.7).cost <= 0.7


def test_other_questions_have_no_band():
    nna = NearestMeans(cells=np.zeros((2, 2)), radius=1.0, guarantee=PureDP(epsilon=1, relation=AR))
    found = estimate_cost(nna, 0.3, most=1.0)
    assert found.cost == 0.3
    assert found.band is None
