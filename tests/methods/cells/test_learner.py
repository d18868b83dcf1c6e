"""Estimates are unbiased as released, shrunk where counts are noise, inside the ball; forecasts hold."""

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Owner, Schema, run
from privada.exceptions import InputError
from privada.methods.cells import Bins
from privada.methods.cells.learner import CellTable, estimate, forecast_counts, learn
from privada.parties import Category
from privada.privacy import ZCDP, PureDP
from privada.privacy.noise import Rehearsal

COUNTS = np.array([[90.0, 10.0], [-3.0, 1.0], [0.0, -2.0]])
TABLE = CellTable(counts=COUNTS, noise=2.0)


def test_totals_are_unbiased_and_sizes_are_not_negative():
    assert TABLE.total == COUNTS.sum()
    assert TABLE.size.tolist() == [100.0, 0.0, 0.0]
    assert CellTable(counts=COUNTS[:, 0], noise=2.0).size.tolist() == [90.0, 0.0, 0.0]


def test_probabilities_are_a_distribution_and_follow_the_whole_table_where_a_cell_is_noise():
    shares = TABLE.probabilities
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares >= 0).all()
    whole = COUNTS.sum(axis=0) / COUNTS.sum()
    np.testing.assert_allclose(shares[2], whole, atol=1e-9)
    exact = CellTable(counts=COUNTS, noise=1e-12).probabilities[0]
    np.testing.assert_allclose(exact, [0.9, 0.1])


def test_an_empty_table_has_even_probabilities():
    np.testing.assert_allclose(CellTable(counts=np.full((2, 4), -1.0), noise=1.0).probabilities, 0.25)


def test_means_are_projected_into_the_ball_around_their_origin():
    origins = np.array([[1.0, 0.0], [0.0, 5.0]])
    sums = np.array([[10.0, 0.0], [-900.0, 0.0]])
    table = CellTable(counts=np.array([100.0, -4.0]), noise=1.0, sums=sums, origins=origins, radius=0.5)
    np.testing.assert_allclose(table.means[0], [1.1, 0.0])
    assert np.linalg.norm(table.means[1] - origins[1]) <= 0.5


def test_what_was_not_asked_for_is_refused():
    with pytest.raises(InputError, match="not counted by class"):
        _ = CellTable(counts=COUNTS[:, 0], noise=1.0).probabilities
    with pytest.raises(InputError, match="ask with a radius"):
        _ = TABLE.means


def test_counts_are_reported_by_class():
    assert TABLE.to_dict(("no", "yes"))["counts"] == {"no": [90.0, -3.0, 0.0], "yes": [10.0, 1.0, -2.0]}
    assert TABLE.to_dict()["counts"] == COUNTS.tolist()


@pytest.fixture
def owner():
    schema = Schema.of_numbers(bounds=(0, 1), width=1, label=Category(name="y", values=(0, 1)))
    budget = PureDP(epsilon=2, relation="add/remove")
    rows = np.linspace(0, 1, 40)[:, None]
    return Owner(rows, y=(rows[:, 0] > 0.5).astype(int), schema=schema, dataset="rows", budget=budget)


def test_estimates_are_the_release_with_the_noise_that_was_planned(owner):
    guarantee = PureDP(epsilon=1, relation="add/remove")
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    question = CellStatistics(tables=(cells,), n_classes=2, guarantee=guarantee)
    found = run(learn("owner", question, classes=("no", "yes")), {"owner": owner})
    (table,) = found.tables
    assert np.array_equal(table.counts, found.release["counts"])
    assert table.noise == pytest.approx(np.sqrt(question.plan.draws["counts"].variance))
    plain = found.to_dict()
    assert set(plain["tables"][0]["counts"]) == {"no", "yes"}
    assert plain["guarantee"] == str(guarantee)
    with pytest.raises(InputError, match="accepts Releases only"):
        estimate(question, {"counts": COUNTS})


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
