"""Bounds and penalties of F and J, and pulls of their losses."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.linear.questions.losses import largest_pull, pull, values
from privada.methods.reweighting import Bounds, Penalties


def test_bounds_hold_and_the_diameter_is_smaller_than_twice_the_gradient():
    bounds = Bounds(A=2.0, r=1.5)
    rng, gradients = np.random.default_rng(1), []
    w = rng.normal(size=3)
    w *= bounds.A / np.linalg.norm(w)
    for _ in range(4000):
        x = rng.normal(size=3)
        x *= bounds.r / np.linalg.norm(x) * rng.choice([0, 0.5, 1.0])
        y = rng.choice([-1.0, 1.0])
        assert (w @ x - y) ** 2 <= bounds.B * (1 + 1e-12)
        gradients.append(2 * (w @ x - y) * x)
        assert np.linalg.norm(gradients[-1]) <= bounds.G * (1 + 1e-12)
    G = np.array(gradients)
    gaps = np.linalg.norm(G[:2000] - G[2000:], axis=1)
    assert 0.7 * bounds.diameter < gaps.max() <= bounds.diameter * (1 + 1e-12) < 2 * bounds.G


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@pytest.mark.parametrize("threshold", [0.05, 0.6, 1.2564, 3.0])
def test_no_pull_is_larger_than_its_bound(loss, threshold):
    rng = np.random.default_rng(3)
    K = 4 if loss == "softmax" else 1
    scores = rng.normal(size=(20_000, K)) * rng.choice([0.1, 1, 5, 50], size=(20_000, 1))
    y = rng.normal(size=20_000) if loss == "squared" else rng.integers(max(K, 2), size=20_000)
    sizes = np.linalg.norm(pull(loss, scores, y, threshold), axis=1)
    bound = largest_pull(loss, threshold)
    assert sizes.max() <= bound * (1 + 1e-12)
    assert sizes.max() > 0.9 * bound


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_a_record_without_loss_pulls_with_nothing(loss):
    width = 1 if loss == "logistic" else 2
    scores = np.full((2, width), 200.0, dtype=np.float32) * np.array([1, -1][:width], dtype=np.float32)
    y = np.array([1, 1]) if loss == "logistic" else np.array([0, 0])
    assert (pull(loss, scores, y, np.float32(0.25)) == 0).all()


def test_pulls_are_slopes_of_the_reduced_loss():
    rng = np.random.default_rng(4)
    for loss, scale in (("logistic", 1.0), ("softmax", 1.0)):
        K = 3 if loss == "softmax" else 1
        scores, y = 3 * rng.normal(size=(50, K)), rng.integers(max(K, 2), size=50)
        kappa = 0.4

        def reduced(s, loss=loss, y=y, kappa=kappa):
            each = values(loss, s, y)
            return np.where(each <= kappa, each, 2 * np.sqrt(kappa * each) - kappa)

        for o in range(K):
            step = np.zeros(K)
            step[o] = 1e-6
            slope = scale * (reduced(scores + step) - reduced(scores - step)) / 2e-6
            assert slope == pytest.approx(pull(loss, scores, y, kappa)[:, o], abs=1e-5)


def test_bad_parameters_are_named():
    for wrong in ({"alpha": 1.5}, {"alpha": 0.5, "kappa1": 0}, {"alpha": 0.5, "kappa2": -1}):
        with pytest.raises(InputError, match=next(name for name in reversed(wrong))):
            Penalties(**wrong)
    with pytest.raises(InputError, match="A"):
        Bounds(A=-1.0)
