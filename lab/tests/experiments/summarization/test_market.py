import warnings

import numpy as np

from privada.methods.summarization import mmd2
from privada_lab.datasets.shift import digits_shift
from privada_lab.experiments.summarization.market import Market
from privada_lab.experiments.summarization.scores import uniform_rows


def test_a_small_market_is_ahead_of_uniform_and_sees_p_points():
    shift = digits_shift(seed=2, owners=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        market = Market(shift, seed=0)
    for p in (50, 200):
        (X, y), seen = market.summary(p)
        assert seen == p == len(y)
        uniform = uniform_rows(shift, p, 0)[0]
        assert mmd2(X, shift.validation, gamma=0.1) < mmd2(uniform, shift.validation, gamma=0.1)
    assert np.isin(y, shift.classes).all()
