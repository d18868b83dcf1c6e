"""The linear head: what is asked for it, several owners, smoothing only where noise ends the descent."""

import math

import numpy as np
import pytest

from privada.exceptions import InputError, RelationError
from privada.methods.transport import FeatureMap, TransportClassifier, ask_head
from privada.methods.transport.learner.linear_head import CONSTANT, STEPS, ends_by_noise, head_opinions
from privada.privacy import ApproxDP, Unit

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


ONE = ApproxDP(epsilon=1.0, delta=1e-4, relation="replace-one")
MAP = FeatureMap(projection=np.array([[2.0, 0.0], [0.0, 0.5], [1.0, 1.0]]), centre=np.ones(3), radius=1.5)


def asked(**changed):
    return ask_head(MAP, **{"size": 200, "n_classes": 2, "guarantee": ONE} | changed)


def test_coordinates_are_the_feature_map_and_a_constant():
    question, rows = asked(), np.random.default_rng(0).normal(size=(5, 3))
    coordinates = question.columns(rows) @ question.transform
    assert np.allclose(coordinates[:, :2], MAP.spread(rows))
    assert np.allclose(coordinates[:, 2], CONSTANT * MAP.radius)


def test_all_steps_together_keep_the_guarantee():
    question = asked()
    spent = math.sqrt(sum(draw.mu**2 for draw in question.plan.draws.values()))
    assert len(question.plan.draws) == STEPS
    assert spent <= ONE.gaussian_mu() * (1 + 1e-9)
    sensitivity = next(iter(question.plan.draws.values())).sensitivity
    assert sensitivity >= 2 * question.bound
    person = asked(
        guarantee=ApproxDP(
            epsilon=1, delta=1e-4, relation="replace-one", unit=Unit(name="person", max_rows=3)
        )
    )
    assert next(iter(person.plan.draws.values())).sensitivity >= 6 * question.bound


@pytest.mark.parametrize("n_classes", [2, 3])
def test_more_rows_allow_longer_steps_up_to_what_is_stable(n_classes):
    questions = [asked(size=size, n_classes=n_classes) for size in (10, 100, 10**6, 10**9)]
    steps = [question.step_size for question in questions]
    assert steps[0] < steps[1] < steps[2] == steps[3]
    assert [ends_by_noise(question, MAP) for question in questions] == [True, True, False, False]


def test_two_classes_have_one_output_and_more_have_as_many():
    assert asked().loss == "logistic"
    assert asked(n_classes=4).outputs == 4


def test_what_cannot_be_asked_is_named():
    with pytest.raises(InputError, match="rescale"):
        ask_head(FeatureMap.random(3, 2, seed=0, rescale="root"), size=200, n_classes=2, guarantee=ONE)
    with pytest.raises(RelationError, match="replace-one"):
        asked(guarantee=ApproxDP(epsilon=1, delta=1e-4, relation="add/remove"))
