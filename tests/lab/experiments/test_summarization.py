import warnings

import numpy as np
import pytest

from privada.lab.datasets.shift import digits_shift
from privada.lab.experiments.summarization import Market, Scores, _uniform, run
from privada.methods.summarization import mmd2


def test_what_needs_no_data_is_always_there():
    table = {figure.figure: figure for figure in run(runs=1)}
    assert table["printed_true_epsilon_validation_replace_one"].value == pytest.approx(3.301, abs=1e-3)
    assert table["rounds_owners_asked_of_4"].value == pytest.approx(4)


def test_scores_are_means_over_runs():
    scores = Scores()
    for value in (1.0, 3.0):
        scores.add("ours", 50, 4, mmd2=value)
    assert scores.mean("ours", 50, 4) == 2
    assert scores.values("ours", 50, 4, "mmd2").tolist() == [1, 3]


def test_a_small_market_is_ahead_of_uniform_and_sees_p_points():
    shift = digits_shift(seed=2, owners=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        market = Market(shift, seed=0)
    for p in (50, 200):
        (X, y), seen = market.summary(p)
        assert seen == p == len(y)
        uniform = _uniform(shift, p, 0)[0]
        assert mmd2(X, shift.validation, gamma=0.1) < mmd2(uniform, shift.validation, gamma=0.1)
    assert np.isin(y, shift.classes).all()
