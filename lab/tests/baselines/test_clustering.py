"""Clustering baselines: faces, the table of one-line functions, accuracy, manners."""

import numpy as np
import pytest
from sklearn.base import clone

from privada.exceptions import InputError, RehearsalWarning
from privada.methods.clustering.learner.medoids import cost, medoids
from privada.privacy import ZCDP, ApproxDP, PureDP
from privada_lab.baselines import STC, ClusterT, PrivateKMeans, TreeKMeans
from privada_lab.baselines.clustering import BASELINES, SOURCES, choose
from privada_lab.datasets.source_target import synthetic

PRIVATE = (PrivateKMeans, TreeKMeans)
GUARANTEES = (
    PureDP(epsilon=3, relation="add/remove"),
    PureDP(epsilon=3, relation="replace-one"),
    ApproxDP(epsilon=3, delta=1e-5, relation="add/remove"),
    ZCDP(rho=3, relation="replace-one"),
)


def clumps(n=1500, seed=0):
    """Three tight clumps."""
    rng = np.random.default_rng(seed)
    middles = np.array([[-0.3, 0.1], [0.3, 0.1], [0.0, -0.3]])
    return middles[rng.integers(3, size=n)] + rng.normal(0, 0.005, size=(n, 2)), middles


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("budget", [{"epsilon": 3}, {"epsilon": 3, "delta": 1e-5}, {"rho": 2}], ids=str)
@pytest.mark.parametrize("relation", ["add/remove", "replace-one"])
def test_private_centres_find_tight_clumps(kind, budget, relation):
    rows, middles = clumps()
    model = kind(20, norm_bound=0.5, relation=relation, size=1500, insecure_seed=1, **budget)
    with pytest.warns(RehearsalWarning):
        model.fit(rows)
    nearest = np.linalg.norm(middles[:, None] - model.cluster_centers_[None], axis=2).min(axis=1)
    assert nearest.max() < 0.06
    assert len(model.cluster_centers_) <= 20
    assert (np.linalg.norm(model.cluster_centers_, axis=1) <= 0.5).all()
    assert model.guarantee_.relation.value == relation
    assert model.weights_.sum() == pytest.approx(1500, rel=0.4)
    assert model.predict(middles).shape == (3,)


@pytest.mark.parametrize("kind", PRIVATE)
def test_rows_beyond_the_ball_and_none_at_all(kind):
    rows, _ = clumps(300)
    model = kind(10, norm_bound=0.5, epsilon=2, insecure_seed=0)
    with pytest.warns(RehearsalWarning):
        far = clone(model).fit(rows * 1e300)
    assert np.isfinite(far.cluster_centers_).all()
    with pytest.warns(RehearsalWarning):
        empty = clone(model).fit(rows[:0])
    assert len(empty.cluster_centers_) <= 1
    with pytest.warns(RehearsalWarning):
        assert np.array_equal(
            clone(model).fit(rows).cluster_centers_, clone(model).fit(rows).cluster_centers_
        )


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"norm_bound": None}, "norm_bound"),
        ({"norm_bound": -1}, "norm_bound > 0"),
        ({"epsilon": None}, "exactly one of epsilon and rho"),
        ({"relation": "replace-one"}, "size"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters_are_named(kind, change, message):
    rows, _ = clumps(50)
    with pytest.raises(InputError, match=message):
        kind(**({"norm_bound": 0.5, "epsilon": 1} | change)).fit(rows)


def test_ignoring_and_seeing_the_source_are_the_solver_s_two_ends():
    pair = synthetic(2, seed=5, source_size=400, target_size=150)
    ignoring = ClusterT(8).fit(pair.source, Xt=pair.target)
    seeing = STC(8).fit(pair.source, Xt=pair.target)
    assert np.array_equal(ignoring.indices_, medoids(pair.target, 8).indices)
    assert np.array_equal(seeing.cluster_centers_, pair.target[seeing.indices_])
    costs = [cost(pair.target, pair.source, model.cluster_centers_) for model in (seeing, ignoring)]
    assert costs[0] < costs[1]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("name", ["ClusterT", "STC", "PrivateKmeans", "TreeKmeans"])
@pytest.mark.parametrize("radius", [None, 0.02])
def test_each_baseline_is_one_line(name, guarantee, radius):
    pair = synthetic(3, seed=2, source_size=500, target_size=80)
    found = BASELINES[name](pair.source, pair.target, 6, guarantee, 0, coreset_radius=radius)
    assert found.shape == (6,)
    assert len(set(found.tolist())) == 6
    assert found.max() < 80


def test_a_coreset_without_radius_is_the_target():
    pair = synthetic(1, seed=2, source_size=300, target_size=60)
    plain = choose(pair.target, 5, pair.source)
    assert np.array_equal(choose(pair.target, 5, pair.source, coreset_radius=0.0), plain)
    few = choose(pair.target, 5, pair.source, coreset_radius=0.05)
    near = [cost(pair.target, pair.source, pair.target[at]) for at in (few, plain)]
    assert near[0] < near[1] + 0.05


def test_centres_that_a_small_coreset_leaves_are_chosen_for_the_target():
    pair = synthetic(2, seed=1, source_size=300, target_size=60)
    found = choose(pair.target, 20, None, coreset_radius=0.3)
    assert len(set(found.tolist())) == 20


def test_the_tables_agree_and_better_than_ignorance():
    """On tight clusters, with a generous budget, both private baselines close most of the gap."""
    assert list(SOURCES) == list(BASELINES)
    pair = synthetic(2, seed=7, source_size=4000, target_size=200)
    spent = {
        name: cost(
            pair.target,
            pair.source,
            pair.target[BASELINES[name](pair.source, pair.target, 9, ZCDP(rho=10, relation="add/remove"), 0)],
        )
        for name in ("ClusterT", "STC", "PrivateKmeans", "TreeKmeans")
    }
    gap = spent["ClusterT"] - spent["STC"]
    assert spent["ClusterT"] - spent["TreeKmeans"] > 0.7 * gap
    assert spent["ClusterT"] - spent["PrivateKmeans"] > 0.3 * gap
