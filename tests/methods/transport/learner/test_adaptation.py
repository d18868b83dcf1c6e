"""Adaptation: cohesion decides, priors follow the target, several sources are weighted."""

import numpy as np
import pytest

from privada.methods.transport.learner.adaptation import (
    COHESIVE,
    Prototypes,
    adapt,
    concentration,
    nearest_means,
    pooled,
)
from privada.methods.transport.learner.graph import NeighbourGraph
from privada.methods.transport.questions.features import FeatureMap, rescaled


def prototypes(means, variances=0.0, counts=100.0):
    means = np.asarray(means, dtype=float)
    return Prototypes(
        means=means, variances=np.full(len(means), variances), counts=np.full(len(means), counts)
    )


def clusters(seed, shares, spread=0.1):
    rng = np.random.default_rng(seed)
    y = rng.choice(len(shares), size=300, p=shares)
    return np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[y] + rng.normal(0, spread, (300, 2)), y


def test_clusters_are_found_from_poor_prototypes_and_their_shares_estimated():
    points, y = clusters(0, [0.6, 0.2, 0.2])
    rough = prototypes([[-0.6, 0.4], [0.7, 0.3], [0.3, 0.5]], variances=0.1)
    found = adapt(rough, points, radius=1.0)
    assert found.cohesion > COHESIVE
    assert (found.probabilities.argmax(axis=1) == y).mean() > 0.98
    assert np.abs(found.prior - np.bincount(y) / len(y)).max() < 0.02


def test_without_clusters_prototypes_are_not_moved():
    points = np.random.default_rng(0).normal(size=(300, 8))
    given = prototypes([[0.1] + [0] * 7, [-0.1] + [0] * 7])
    found = adapt(given, points, radius=2.0)
    assert found.cohesion < COHESIVE
    assert np.array_equal(found.anchors, given.means)
    side = (points[:, 0] < 0).astype(int)
    assert (found.probabilities.argmax(axis=1) == side).mean() > 0.75


def test_new_points_are_classified_like_their_neighbours():
    points, y = clusters(1, [1 / 3] * 3)
    found = adapt(prototypes([[-1, 0], [1, 0], [0, 1]]), points, radius=1.0)
    assert np.array_equal(found.predict_proba(points + 1e-6).argmax(axis=1), y)


def test_sources_are_weighted_by_how_well_they_know():
    both = pooled([prototypes([[0.0, 0.0]], 1e-4), prototypes([[1.0, 0.0]], 1.0)], between=1e-3)
    assert both.means[0, 0] < 0.01
    even = pooled([prototypes([[0.0, 0.0]], 1e-4), prototypes([[1.0, 0.0]], 1.0)], between=1e3)
    assert even.means[0, 0] == pytest.approx(0.5, abs=1e-3)


def test_graphs_of_duplicates_and_single_points():
    same = NeighbourGraph.of(np.zeros((5, 2)))
    assert np.allclose(same.smooth(np.eye(5)[:, :2] + 0.1).sum(axis=1), 1)
    alone = NeighbourGraph.of(np.zeros((1, 2))).smooth(np.array([[0.2, 0.8]]))
    assert alone[0] == pytest.approx([0.2, 0.8])
    assert same.cohesion(np.zeros(5, dtype=np.int64)) == 0


def test_a_row_is_mapped_the_same_wherever_it_stands():
    """Hazard 10: the rounding of one row may not depend on its batch."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(97, 31))
    features = FeatureMap.random(31, 7, seed=1, rescale="root")
    whole = features.apply(X)
    assert all(np.array_equal(features.apply(X[i : i + 1])[0], whole[i]) for i in range(97))
    assert np.array_equal(features.apply(X[::-1])[::-1], whole)


def test_rescaling_keeps_zero_and_signs():
    rows = rescaled(np.array([[0.0, 0.0], [-4.0, 0.0]]), "root")
    assert rows.tolist() == [[0.0, 0.0], [-1.0, 0.0]]


def test_uneven_classes_are_not_forced_to_even_shares():
    """Nine of ten target points in one class, as the source's counts say: transport follows."""
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=400) < 0.1).astype(int)
    points = np.array([[-1.0, 0.0], [1.0, 0.0]])[y] + rng.normal(0, 0.5, (400, 2))
    given = Prototypes(
        means=np.array([[-1.0, 0.0], [1.0, 0.0]]), variances=np.zeros(2), counts=np.array([900.0, 100.0])
    )
    found = adapt(given, points, radius=2.0)
    assert (found.probabilities.argmax(axis=1) == y).mean() > 0.95
    assert found.prior[1] == pytest.approx(0.1, abs=0.05)


def test_even_counts_mean_balanced_transport_and_noise_is_taken_off():
    even = prototypes([[0.0, 0.0], [1.0, 0.0]], counts=500.0)
    uneven = Prototypes(means=even.means, variances=even.variances, counts=np.array([540.0, 460.0]))
    noisy = Prototypes(
        means=even.means, variances=even.variances, counts=np.array([540.0, 460.0]), count_noise=40.0
    )
    assert concentration(even) == concentration(noisy) == 1e9
    assert concentration(uneven) < 1000


def test_cohesion_is_small_for_cells_that_cut_one_cloud():
    points = np.random.default_rng(1).normal(size=(500, 2))
    found = adapt(prototypes([[-1.0, 0.0], [0.5, 0.9], [0.5, -0.9]]), points, radius=3.0)
    assert abs(found.cohesion) < 0.4
    separate, _ = clusters(2, [1 / 3] * 3, spread=0.05)
    assert adapt(prototypes([[-1, 0], [1, 0], [0, 1]]), separate, radius=1.0).cohesion > 0.9


def test_nearest_means_know_nothing_of_the_target():
    points = np.array([[-0.9, 0.0], [0.2, 0.0], [0.3, 0.1]])
    found = nearest_means(prototypes([[-1.0, 0.0], [1.0, 0.0]]), points, radius=2.0)
    assert found.argmax(axis=1).tolist() == [0, 1, 1]
    assert np.allclose(found.sum(axis=1), 1)
