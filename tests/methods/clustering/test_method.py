"""The method object of clustering: its algorithms, and that a study and an estimator ask alike."""

import numpy as np
import pytest

from privada import Owner, SourceTargetMedoids, run
from privada.methods.clustering.learner.learn import cover
from privada.methods.clustering.method import Clustering
from privada.methods.method import Public
from privada.parties import Schema
from privada.privacy import PureDP
from tests.methods.clustering.generated import RADIUS, make_grids

BUDGET = PureDP(epsilon=3.0, relation="add/remove")
SCHEMA = Schema.of_numbers(bounds=(-RADIUS, RADIUS), width=2)


@pytest.fixture(scope="module")
def pair():
    return make_grids(seed=5, source_size=2000, target_size=200)


@pytest.mark.parametrize(("algorithm", "kind"), [("auto", "pyramid"), ("nna", "nna"), ("nas", "nas")])
def test_every_algorithm_can_be_chosen_by_method_and_estimator(pair, algorithm, kind):
    settings = {"n_centers": 5, "norm_bound": RADIUS, "algorithm": algorithm, "coreset_radius": 0.05}
    inquiry = Clustering(**settings).prepare(Public(pair.target), {"registry": SCHEMA}, BUDGET)
    assert [ask.question.kind for ask in inquiry.asks] == [f"clustering.{kind}"]
    choice = run(inquiry, {"registry": Owner(pair.source, schema=SCHEMA, dataset="s", budget=BUDGET)})
    assert len(choice.indices) == 5
    model = SourceTargetMedoids(epsilon=3.0, n_draws=4, **settings).fit(pair.source, Xt=pair.target)
    assert model.question_.kind == f"clustering.{kind}"


@pytest.mark.parametrize("radius", [0.0, 0.02, 0.2])
def test_a_coreset_covers_the_target_with_few_of_its_points(pair, radius):
    coreset = cover(pair.target, radius)
    gaps = np.linalg.norm(pair.target[:, None] - coreset, axis=2)
    assert gaps.min(axis=1).max() <= radius
    apart = np.linalg.norm(coreset[:, None] - coreset, axis=2)[np.triu_indices(len(coreset), 1)]
    assert apart.min() > radius, "no point of it is needless"


def test_the_whole_guarantee_is_that_of_question_and_bound(pair):
    method = Clustering(n_centers=3, norm_bound=RADIUS, bound_share=0.2)
    inquiry = method.prepare(Public(pair.target), {"registry": SCHEMA}, BUDGET)
    choice = run(inquiry, {"registry": Owner(pair.source, schema=SCHEMA, dataset="s", budget=BUDGET)})
    assert choice.guarantee == BUDGET
    assert choice.to_dict()["guarantee"] == str(BUDGET)
    assert [release.kind for release in choice.releases] == ["clustering.pyramid", "clustering.radius"]


def test_sources_of_several_numbers_are_one_party(pair):
    both = np.vstack([pair.source, pair.target])
    domain = np.r_[np.repeat([1, 2], 1000), -np.ones(200)]
    model = SourceTargetMedoids(3, norm_bound=RADIUS, epsilon=3.0, n_draws=4).fit(both, sample_domain=domain)
    assert len(model.releases_) == 1
