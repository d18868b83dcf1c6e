"""The forecast of counts: a band that holds four draws of five, whatever the rows are."""

import numpy as np
import pytest

from privada.methods.cells.learner.forecast import forecast_counts
from privada.methods.cells.questions.partition import Bins
from privada.methods.cells.questions.statistics import CellStatistics
from privada.privacy.guarantee import ZCDP, PureDP
from privada.privacy.noise import Rehearsal

GUARANTEES = (
    PureDP(epsilon=0.5, relation="add/remove"),
    PureDP(epsilon=4.0, relation="add/remove"),
    ZCDP(rho=0.1, relation="replace-one"),
)


def asking(guarantee, *, cells=24, tables=1, **more):
    bins = tuple(Bins(feature=0, edges=np.arange(cells - 1.0)) for _ in range(tables))
    return CellStatistics(tables=bins, guarantee=guarantee, **more)


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("tables", [1, 2])
def test_the_band_holds_about_four_draws_of_five(guarantee, tables):
    question = asking(guarantee, tables=tables)
    found = forecast_counts(question, size=1000)
    noise = Rehearsal(1)
    draws = [question.plan.lattice(question.names(index)[0]) for index in range(tables)]
    exact = np.zeros((1500, 24), dtype=np.int64)
    wrong = np.sum([np.abs(draw.draw(exact, noise)).sum(axis=1) for draw in draws], axis=0)
    shares = wrong / (2 * tables * 1000)
    assert shares.mean() == pytest.approx(found.ratio, rel=0.03)
    # whole counts with rare noise cannot be cut at 80 %; the seed is fixed
    assert 0.76 < np.mean((found.low <= shares) & (shares <= found.high)) < 0.96


def test_fewer_rows_and_less_budget_are_worse_and_a_guess_is_said():
    few, many = (forecast_counts(asking(GUARANTEES[0]), size=size) for size in (100, 10_000))
    assert few.ratio == pytest.approx(100 * many.ratio)
    ratios = [forecast_counts(asking(each), size=100).ratio for each in GUARANTEES[:2]]
    assert ratios == sorted(ratios, reverse=True)
    assert "no number is announced" in forecast_counts(asking(GUARANTEES[0]), size=None).measure
    assert "of 100 rows" in few.explanation


@pytest.mark.parametrize("epsilon", [20.0, 30.0, 100.0, 400.0, 1500.0])
def test_noise_that_is_too_rare_to_tell_is_next_to_nothing(epsilon):
    found = forecast_counts(asking(PureDP(epsilon=epsilon, relation="add/remove")), size=10)
    assert found.low == 0
    assert 1e-9 <= found.ratio <= found.high < 1e-7
