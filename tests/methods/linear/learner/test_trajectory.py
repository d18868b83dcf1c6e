"""The points of a descent, from released sums alone."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.linear.learner.trajectory import averaged, noise_of_average, shrink_by_noise, trajectory
from privada.parties import Number, Owner, Schema


@pytest.fixture
def released(descent):
    """A release of six steps, by an owner of generated rows."""
    question = descent()
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 2))
    schema = Schema.of_numbers(bounds=(-1, 1), width=2, size=60, label=Number(name="y", low=-1, high=1))
    budget = question.guarantee
    owner = Owner(X, y=X[:, 0], schema=schema, dataset="rows", budget=budget, accounting="gaussian")
    return question, owner.answer(question)


def test_the_path_is_what_each_released_sum_leads_to(released):
    question, release = released
    path = trajectory(question, release)
    assert len(path) == question.steps
    slope = (1 - question.alpha) * release["gradient_0"] / question.size
    np.testing.assert_allclose(path[0], -question.step_size * slope)
    slope = (1 - question.alpha) * release["gradient_1"] / question.size + question.alpha * path[0]
    np.testing.assert_allclose(path[1], path[0] - question.step_size * slope)


def test_the_average_is_of_the_second_half(released):
    question, release = released
    np.testing.assert_allclose(
        averaged(question, release), np.mean(trajectory(question, release)[3:], axis=0)
    )


def test_anything_but_a_release_is_refused(released):
    question, _ = released
    with pytest.raises(InputError, match="accepts Releases only"):
        trajectory(question, {"gradient_0": np.zeros((2, 1))})


@pytest.mark.parametrize("pull", [0.0, 0.4, 1.0])
def test_the_noise_of_an_average_is_that_of_simulated_descents(descent, pull):
    """A loss of this curvature in 20,000 coordinates at once: five standard errors are 2.5 %."""
    question = descent(steps=30, step_size=0.1)
    scale = question.plan.lattice("gradient_0").scale
    rng, path = np.random.default_rng(0), []
    draws = rng.normal(scale=scale, size=(question.steps, 10_000, 2, 1))
    V = velocity = np.zeros((10_000, 2, 1))
    for noise in draws:
        V, velocity = question.go_on(V, velocity, question.size * pull * V + noise)
        path.append(V)
    found = np.mean(path[question.steps // 2 :], axis=0).std()
    assert found == pytest.approx(noise_of_average(question, pull=pull), rel=0.025)


def test_noise_with_momentum_is_not_said(descent):
    with pytest.raises(InputError, match="momentum"):
        noise_of_average(descent(momentum=0.5), pull=0.5)


def test_what_may_be_noise_is_taken_off_and_nothing_is_turned_round():
    rng = np.random.default_rng(0)
    signal, noise = np.full((400, 1), 3.0), rng.normal(size=(400, 1))
    kept = shrink_by_noise(signal + noise, 1.0)
    assert np.sum((kept - signal) ** 2) < np.sum(noise**2)
    assert not shrink_by_noise(0.9 * noise, 1.0).any()
    assert not shrink_by_noise(np.zeros((3, 1)), 1.0).any()
