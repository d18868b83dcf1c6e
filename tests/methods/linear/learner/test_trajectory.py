"""The points of a descent, from released sums alone."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.linear.learner.trajectory import averaged, trajectory
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
