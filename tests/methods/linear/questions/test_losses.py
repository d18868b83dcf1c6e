"""Losses and pulls: gradients of what they say, bounded as they say, and finite where scores are not."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.linear.questions import losses

CLASSES = {"squared": 1, "logistic": 1, "softmax": 3}


def scores(loss, scale=3.0, n=200):
    rng = np.random.default_rng(0)
    y = rng.normal(size=n) if loss == "squared" else rng.integers(0, max(2, CLASSES[loss]), n)
    return scale * rng.normal(size=(n, CLASSES[loss])), y


def reduced(loss, f, y, threshold):
    """The loss that a pull is the gradient of; squared loss is halved, and its threshold is √κ₁."""
    value = losses.values(loss, f, y)
    if loss == "squared":
        value, threshold = value / 2, threshold**2 / 2
    return np.where(value <= threshold, value, 2 * np.sqrt(threshold * value) - threshold)


@pytest.mark.parametrize("loss", losses.LOSSES)
@pytest.mark.parametrize("threshold", [0.1, 0.7, 2.0])
def test_a_pull_is_the_gradient_of_the_reduced_loss(loss, threshold):
    f, y = scores(loss)
    pull, step = losses.pull(loss, f, y, threshold), 1e-6
    for output in range(f.shape[1]):
        up, down = f.copy(), f.copy()
        up[:, output] += step
        down[:, output] -= step
        slope = (reduced(loss, up, y, threshold) - reduced(loss, down, y, threshold)) / (2 * step)
        np.testing.assert_allclose(pull[:, output], slope, atol=1e-4)


@pytest.mark.parametrize("loss", losses.LOSSES)
@pytest.mark.parametrize("threshold", [1e-3, 0.5, 1.2564, 3.0, 20.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 1e4])
def test_no_pull_is_longer_than_the_bound(loss, threshold, scale):
    f, y = scores(loss, scale, n=2000)
    pulls = np.linalg.norm(losses.pull(loss, f, y, threshold), axis=1)
    assert pulls.max() <= losses.largest_pull(loss, threshold) * (1 + 1e-12)


def test_the_bound_of_logistic_pulls_is_attained():
    for threshold in (0.3, 2.0):
        f = np.linspace(-10, 10, 20_001)[:, None]
        pulls = losses.pull("logistic", f, np.ones(len(f)), threshold)
        assert np.abs(pulls).max() == pytest.approx(losses.largest_pull("logistic", threshold), rel=1e-4)


def test_each_record_may_have_a_threshold_of_its_own():
    f, y = scores("squared", n=3)
    pulls = losses.pull("squared", 100 * f, y, np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(np.abs(pulls[:, 0]), [0.1, 0.2, 0.3])


@pytest.mark.parametrize("loss", losses.LOSSES)
def test_clipped_losses_stay_numbers_where_scores_overflow(loss):
    f, y = scores(loss, n=4)
    f[:3] = np.array([np.nan, np.inf, -1e308])[:, None]
    found = losses.clipped(loss, f, y, 0.25)
    assert (found <= 0.25).all()
    assert (found >= 0).all()


def test_probabilities_are_of_the_second_class_or_of_all():
    assert losses.probabilities("logistic", np.array([[0.0], [800.0]]))[:, 0].tolist() == [0.5, 1.0]
    np.testing.assert_allclose(losses.probabilities("softmax", np.zeros((2, 4))), 0.25)


@pytest.mark.parametrize(
    ("loss", "classes", "outputs"), [("squared", 0, 1), ("logistic", 2, 1), ("softmax", 5, 5)]
)
def test_outputs_of_each_loss(loss, classes, outputs):
    assert losses.outputs(loss, classes) == outputs


@pytest.mark.parametrize(
    ("loss", "classes"), [("squared", 2), ("logistic", 3), ("logistic", 0), ("softmax", 1)]
)
def test_labels_that_do_not_fit_are_refused(loss, classes):
    with pytest.raises(InputError, match="label"):
        losses.outputs(loss, classes)


def test_bad_parameters_are_named():
    with pytest.raises(InputError, match="threshold"):
        losses.largest_pull("squared", 0.0)
    with pytest.raises(InputError, match="loss"):
        losses.largest_pull("hinge", 1.0)
