"""What is made of noisy rows: unbiased costs, posterior labels, corrected distances."""

import numpy as np
import pytest

from privada.methods.transport.learner.coupling import exact
from privada.methods.transport.learner.rows import (
    Estimate,
    NoisyRows,
    class_weights,
    corrected_distance,
    estimate,
    plain_distance,
)
from privada.privacy.mechanism import RandomisedResponse


def squared(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(axis=2)


@pytest.mark.statistical
def test_the_cost_is_unbiased():
    """Mean over 4,000 draws within five standard errors: false alarm 1e-6."""
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(1, 40)), rng.normal(size=(1, 40))
    draws = [NoisyRows(rows=z + rng.normal(size=z.shape), sigma=1.0).cost(x)[0, 0] for _ in range(4000)]
    assert abs(np.mean(draws) - squared(z, x)[0, 0]) < 5 * np.std(draws) / np.sqrt(4000)


def test_the_correction_removes_most_of_the_bias():
    rng = np.random.default_rng(1)
    z, x = rng.normal(size=(64, 20)), rng.normal(0.5, 1.0, size=(64, 20))
    true = float(np.sum(exact(squared(z, x)) * squared(z, x)))
    found = []
    for seed in range(12):
        batch = NoisyRows(rows=z + 0.7 * rng.normal(size=z.shape), sigma=0.7)
        found.append((plain_distance(batch, x), corrected_distance(batch, x, seed=seed)))
    plain, corrected = np.mean(found, axis=0)
    assert plain < true
    assert abs(corrected - true) < 0.4 * abs(plain - true)


def test_class_weights_are_the_posterior():
    response = RandomisedResponse(budget=np.log(8.0), n_classes=3)  # keeps with probability 0.8
    codes = np.repeat([0, 1, 2], [40, 30, 30])
    weights = class_weights(codes, response)
    assert np.allclose(weights.sum(axis=1), 1)
    assert 0.7 < weights[0, 0] < 0.95
    prior = np.linalg.solve(response.channel().T, [0.4, 0.3, 0.3])
    assert weights[0, 0] == pytest.approx(0.8 * prior[0] / (0.8 * prior[0] + 0.1 * (1 - prior[0])))


def test_the_channel_never_tells_more_than_its_epsilon():
    for q, epsilon in ((2, 0.5), (10, 2.0), (65, 4.0)):
        channel = RandomisedResponse(budget=epsilon, n_classes=q).channel()
        assert (channel[:, None] / channel[None]).max() <= np.exp(epsilon) * (1 + 1e-12)


def test_where_noise_drowns_the_distance_the_correction_does_not_hurt():
    """σ ten times the distance's root: the plain answer is noise, ours stays near the floor."""
    rng = np.random.default_rng(2)
    z, x = 0.1 * rng.normal(size=(64, 20)), 0.1 * rng.normal(0.5, 1.0, size=(64, 20))
    true = float(np.sum(exact(squared(z, x)) * squared(z, x)))
    plain, raw, shrunk = [], [], []
    for seed in range(12):
        batch = NoisyRows(rows=z + rng.normal(size=z.shape), sigma=1.0)
        found = estimate(batch, x, seed=seed)
        plain.append(abs(plain_distance(batch, x) - true))
        raw.append(abs(found.value - true))
        shrunk.append(abs(found.shrunk() - true))
    assert np.mean(shrunk) < 0.5 * np.mean(plain)
    assert np.mean(shrunk) < 0.5 * np.mean(raw)


def test_the_stated_variance_is_that_of_the_estimate():
    rng = np.random.default_rng(3)
    z, x = rng.normal(size=(64, 20)), rng.normal(0.5, 1.0, size=(64, 20))
    found = [
        estimate(NoisyRows(rows=z + 0.7 * rng.normal(size=z.shape), sigma=0.7), x, seed=seed)
        for seed in range(40)
    ]
    assert 0.5 < np.var([each.value for each in found]) / np.mean([each.variance for each in found]) < 2
    assert 0.5 < np.var([each.floor for each in found]) / np.mean([each.floor_variance for each in found]) < 2


def test_shrinkage_stays_between_floor_and_value():
    for value, floor in ((-5.0, -1.0), (0.5, 0.2), (30.0, 1.0)):
        found = Estimate(value=value, variance=1.0, floor=floor, floor_variance=0.01, most=100.0).shrunk()
        assert max(0.0, floor - 0.06) <= found + 0.06
        assert found <= max(value, floor, 0.0)
    sure = Estimate(value=30.0, variance=1e-9, floor=1.0, floor_variance=1e-9, most=100.0)
    assert sure.shrunk() == pytest.approx(30.0)
    assert Estimate.mean([sure, sure]).variance == pytest.approx(0.5e-9)


def test_without_noise_the_distance_is_exact():
    rng = np.random.default_rng(4)
    z, x = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    batch = NoisyRows(rows=z, sigma=0.0)
    assert corrected_distance(batch, x) == pytest.approx(plain_distance(batch, x))
