"""The linear head: several owners, smoothing only where noise ends the descent. Noise is seeded."""

import numpy as np
import pytest

from privada.methods.transport import TransportClassifier
from privada.methods.transport.learner.linear_head import head_opinions

CLASSES = ("no", "yes")
SETTINGS = {"epsilon": 2.0, "delta": 1e-4, "classes": CLASSES, "bounds": (-1e6, 1e6), "insecure_seed": 0}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def clusters(n, seed, units=(1.0, 1000.0), shift=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = np.where(y == 1, 1.0, -1.0)[:, None] * [1.0, 0.5] + rng.normal(0, 0.4, (n, 2)) + shift
    return X * units, np.array(CLASSES)[y]


def fitted(source, target, **changed):
    return TransportClassifier(**SETTINGS | changed).fit(*source, target)


def test_columns_in_different_units_are_no_matter():
    source, (target, truth) = clusters(600, 0), clusters(300, 1, shift=0.2)
    model = fitted(source, target)
    assert (model.predict(target) == truth).mean() > 0.95
    same = fitted(clusters(600, 0, units=(1.0, 1.0)), target / [1.0, 1000.0])
    assert np.allclose(model.predict_proba(target), same.predict_proba(target / [1.0, 1000.0]), atol=1e-3)


def test_a_noisy_head_is_smoothed_and_a_well_known_one_is_not():
    target = clusters(300, 1)[0]
    assert fitted(clusters(300, 0), target).model_.adapted.kept > 0
    model = fitted(clusters(20_000, 0), target).model_
    head = model.adapted
    assert head.kept == 0
    points = model.features.spread(target)
    assert np.array_equal(head.probabilities, head_opinions(head.weights, points, head.radius))


def test_the_better_known_source_counts_more():
    """The second source has the labels the other way round, and a tenth of the rows."""
    (X, y), (S, z), (T, truth) = clusters(1000, 0), clusters(100, 3), clusters(300, 1)
    turned = np.where(z == "yes", "no", "yes")
    labels = np.concatenate([y, turned, np.full(300, "no")]).astype(object)
    labels[-300:] = None
    domain = np.repeat([1, 2, -1], [1000, 100, 300])
    model = TransportClassifier(**SETTINGS).fit(np.concatenate([X, S, T]), labels, sample_domain=domain)
    assert len(model.releases_) == 2
    assert (model.transduction_ == truth).mean() > 0.95


def test_without_evidence_it_is_still_a_classifier():
    rng = np.random.default_rng(4)
    model = fitted((rng.normal(size=(100, 3)), np.full(100, "yes")), rng.normal(size=(50, 3)), epsilon=0.5)
    found = model.predict_proba(rng.normal(size=(20, 3)))
    assert np.allclose(found.sum(axis=1), 1)
    assert (model.transduction_ == "yes").mean() > 0.5
