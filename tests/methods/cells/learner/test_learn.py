"""What is made of counts and sums: unbiased as released, shrunk where counts are noise, inside the ball."""

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Owner, Schema, run
from privada.exceptions import InputError
from privada.methods.cells.learner.learn import CellTable, estimate, learn
from privada.parties import Category
from privada.privacy import PureDP

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
def house():
    schema = Schema.of_numbers(bounds=(0, 1), width=1, label=Category(name="y", values=(0, 1)))
    budget = PureDP(epsilon=2, relation="add/remove")
    rows = np.linspace(0, 1, 40)[:, None]
    return Owner(rows, y=(rows[:, 0] > 0.5).astype(int), schema=schema, dataset="rows", budget=budget)


def test_estimates_are_the_release_with_the_noise_that_was_planned(house):
    guarantee = PureDP(epsilon=1, relation="add/remove")
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    question = CellStatistics(tables=(cells,), n_classes=2, guarantee=guarantee)
    found = run(learn("house", question, classes=("no", "yes")), {"house": house})
    (table,) = found.tables
    assert np.array_equal(table.counts, found.release["counts"])
    assert table.noise == pytest.approx(np.sqrt(question.plan.draws["counts"].variance))
    plain = found.to_dict()
    assert set(plain["tables"][0]["counts"]) == {"no", "yes"}
    assert plain["guarantee"] == str(guarantee)
    with pytest.raises(InputError, match="accepts Releases only"):
        estimate(question, {"counts": COUNTS})
