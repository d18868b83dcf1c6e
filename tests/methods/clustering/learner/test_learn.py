"""From a release to chosen points."""

import numpy as np
import pytest

from privada import Owner, Schema, run
from privada.exceptions import InputError
from privada.methods.clustering import (
    GridPyramid,
    LocalMeans,
    NearestMeans,
    SourceRadius,
    choose,
    estimate_cost,
    forecast_gain,
    learn,
    posterior,
)
from privada.methods.clustering.learner.learn import default_question, measure_scale
from privada.methods.clustering.learner.source import Fixed, PyramidPosterior
from privada.privacy import ZCDP, PureDP
from tests.methods.clustering.generated import RADIUS, make_grids

AR = "add/remove"


BUDGET = ZCDP(rho=20.0, relation=AR)


TARGET = np.random.default_rng(0).uniform(-0.4, 0.4, size=(80, 2))


SOURCE = TARGET[TARGET[:, 0] < 0].repeat(20, axis=0)


GRID = GridPyramid(levels=(2, 3), domain=0.6, width=2, guarantee=ZCDP(rho=8.0, relation=AR))


@pytest.fixture
def owner():
    schema = Schema.of_numbers(bounds=(-0.6, 0.6), width=2)
    return Owner(SOURCE, schema=schema, dataset="s", budget=BUDGET)


def test_points_are_chosen_where_the_source_is_not(owner):
    choice = run(learn("s", TARGET, GRID, n_centers=5, random_state=0), {"s": owner})
    assert np.mean(choice.centers[:, 0] > 0) >= 0.8
    assert np.array_equal(TARGET[choice.indices], choice.centers)
    assert choice.cost_band[0] <= choice.cost <= choice.cost_band[1]
    assert choice.to_dict()["cost_band"] == list(choice.cost_band)
    assert choice.cost <= choice.bound.cost * 1.2


def test_a_bound_is_asked_for_only_if_it_is_wanted(owner):
    about = SourceRadius(targets=TARGET, t=5, radius=0.6, guarantee=ZCDP(rho=1.0, relation=AR))
    assert [ask.question for ask in learn("s", TARGET, GRID, n_centers=3).asks] == [GRID]
    learner = learn("s", TARGET, GRID, n_centers=3, radius=about)
    assert [ask.question for ask in learner.asks] == [GRID, about]
    assert run(learner, {"s": owner}).bound.cost > 0


def test_each_question_is_read_in_its_own_way(owner):
    nna = NearestMeans(cells=TARGET[::8], radius=0.6, guarantee=ZCDP(rho=1.0, relation=AR))
    assert isinstance(posterior(nna, owner.answer(nna), TARGET), Fixed)
    assert isinstance(posterior(GRID, owner.answer(GRID), TARGET), PyramidPosterior)


def test_more_centres_than_points_are_refused(owner):
    with pytest.raises(InputError, match="at most the 80 target points"):
        choose(TARGET, GRID, owner.answer(GRID), n_centers=81)
    with pytest.raises(InputError, match="Releases only"):
        choose(TARGET, GRID, None, n_centers=3)


@pytest.fixture(scope="module")
def pair():
    return make_grids(seed=5, source_size=3000, target_size=400)


def test_the_question_follows_from_public_quantities_alone(pair):
    guarantee = PureDP(epsilon=3, relation=AR)
    one = default_question(pair.target, n_centers=9, guarantee=guarantee, radius=RADIUS)
    two = default_question(pair.target, n_centers=9, guarantee=guarantee, radius=RADIUS)
    assert one == two
    assert isinstance(one, GridPyramid)
    finer = default_question(pair.target, n_centers=70, guarantee=guarantee, radius=RADIUS)
    assert finer.levels[-1] > one.levels[-1]
    wide = np.random.default_rng(0).uniform(-0.1, 0.1, size=(300, 8))
    local = default_question(wide, n_centers=9, guarantee=guarantee, radius=RADIUS)
    assert isinstance(local, LocalMeans)
    richer = default_question(wide, n_centers=9, guarantee=PureDP(epsilon=9, relation=AR), radius=RADIUS)
    assert len(richer.cells) > len(local.cells)


def test_the_scale_is_the_mean_distance_to_own_centres():
    target = np.array([[0.0], [0.2], [1.0], [1.2]])
    assert measure_scale(target, 2) == pytest.approx(0.1)
    assert measure_scale(target, 4) == pytest.approx(1e-9), "never zero: a resolution follows from it"


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
