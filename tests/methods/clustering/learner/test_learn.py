"""From a release to chosen points."""

import numpy as np
import pytest

from privada import Owner, Schema, run
from privada.exceptions import InputError
from privada.methods.clustering import GridPyramid, NearestMeans, SourceRadius, choose, learn, posterior
from privada.methods.clustering.learner.source.posterior import Fixed, PyramidPosterior
from privada.privacy import ZCDP

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
