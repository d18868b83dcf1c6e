"""From released sums to weights: the path of a descent, its average, its noise, and several owners."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.linear.learner import (
    average_path,
    choose_step_size,
    fit_linear,
    follow_path,
    learn_linear,
    noise_of_average,
    shrink_by_noise,
)
from privada.parties import Category, Number, Owner, Schema
from privada.parties.protocol import one_round
from privada.parties.running import run
from privada.privacy import ZCDP, ApproxDP, Unit

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(60, 2))


def owner_of(question, y=X[:, 0], label=None):
    label = label or Number(name="y", low=-1, high=1)
    schema = Schema.of_numbers(bounds=(-1, 1), width=2, size=60, label=label)
    return Owner(X, y=y, schema=schema, dataset="rows", budget=question.guarantee, accounting="gaussian")


@pytest.fixture
def released(descent):
    """A release of six steps, by an owner of generated rows."""
    question = descent(decay=0.3, momentum=0.4)
    return question, owner_of(question).answer(question)


def test_the_path_is_what_each_released_sum_leads_to(released):
    question, release = released
    path = follow_path(question, release)
    assert len(path) == question.steps
    first = -question.step_size * release["gradient_0"] / question.size
    np.testing.assert_allclose(path[0], first)
    slope = release["gradient_1"] / question.size + 0.3 * path[0]
    np.testing.assert_allclose(path[1], path[0] + 0.4 * first - question.step_size * slope)


def test_the_average_is_of_the_second_half(released):
    question, release = released
    np.testing.assert_allclose(
        average_path(question, release), np.mean(follow_path(question, release)[3:], axis=0)
    )


def test_weights_of_classes_have_no_part_that_all_share(descent):
    question = descent("softmax")
    codes = np.digitize(X[:, 0], [-0.3, 0.3])
    release = owner_of(question, codes, Category(name="y", values=(0, 1, 2))).answer(question)
    weights, last = average_path(question, release), np.mean(follow_path(question, release)[3:], axis=0)
    np.testing.assert_allclose(weights.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.diff(weights), np.diff(last), atol=1e-12)


def test_anything_but_a_release_is_refused(released):
    question, _ = released
    with pytest.raises(InputError, match="accepts Releases only"):
        follow_path(question, {"gradient_0": np.zeros((2, 1))})


def test_owners_count_by_the_square_of_rows_and_mu(descent):
    """The second owner's μ is smaller; its label is the opposite."""
    tight, loose = (ApproxDP(epsilon=e, delta=1e-3, relation="replace-one") for e in (1e2, 1e3))
    questions = {"a": descent(guarantee=loose), "b": descent(guarantee=tight)}
    owners = {"a": owner_of(questions["a"]), "b": owner_of(questions["b"], -X[:, 0])}
    fit = run(one_round(learn_linear)(questions), owners)
    weights = list(map(fit_linear, questions.values(), fit.releases))
    shares = np.array([loose.gaussian_mu() ** 2, tight.gaussian_mu() ** 2])
    np.testing.assert_allclose(fit.weights, np.tensordot(shares / shares.sum(), weights, 1))
    alone = run(one_round(learn_linear)({"a": questions["a"]}, pull=0.5), {"a": owners["a"]})
    np.testing.assert_allclose(
        alone.weights, shrink_by_noise(weights[0], noise_of_average(questions["a"], pull=0.5))
    )


@pytest.mark.parametrize("pull", [0.0, 0.4, 1.0])
def test_the_noise_of_an_average_is_that_of_simulated_descents(descent, pull):
    """A loss of this curvature in 20,000 coordinates at once: five standard errors are 2.5 %."""
    question = descent(steps=30, step_size=0.1, decay=0.1)
    scale = question.plan.lattice("gradient_0").scale
    rng, path = np.random.default_rng(0), []
    draws = rng.normal(scale=scale, size=(question.steps, 10_000, 2, 1))
    V = velocity = np.zeros((10_000, 2, 1))
    for noise in draws:
        V, velocity = question.go_on(V, velocity, question.size * pull * V + noise)
        path.append(V)
    deviation = np.mean(path[question.steps // 2 :], axis=0).std()
    assert deviation == pytest.approx(noise_of_average(question, pull=pull), rel=0.025)


def test_the_noise_of_a_descent_with_momentum_is_refused(descent):
    with pytest.raises(InputError, match="momentum"):
        noise_of_average(descent(momentum=0.5), pull=0.5)


def test_what_may_be_noise_is_taken_off_and_nothing_is_turned_round():
    rng = np.random.default_rng(0)
    signal, noise = np.full((400, 1), 3.0), rng.normal(size=(400, 1))
    kept = shrink_by_noise(signal + noise, 1.0)
    assert np.sum((kept - signal) ** 2) < np.sum(noise**2)
    assert not shrink_by_noise(0.9 * noise, 1.0).any()
    assert not shrink_by_noise(np.zeros((3, 1)), 1.0).any()


def chosen(size=100, rho=0.5, relation="replace-one", max_rows=None, **more):
    person = {} if max_rows is None else {"unit": Unit(name="person", max_rows=max_rows)}
    guarantee = ZCDP(rho=rho, relation=relation, **person)
    settings = {"drift": 1.0, "stable": 3.0, "steps": 20, "bound": 0.5}
    return choose_step_size(**settings | more, size=size, guarantee=guarantee)


def test_more_rows_or_budget_allow_longer_steps_up_to_what_is_stable():
    steps = [chosen(size=size) for size in (1, 10, 10**6, 10**9)]
    assert steps[0] < steps[1] < steps[2] == steps[3] == 3.0
    assert chosen(size=5, rho=2.0) == pytest.approx(2 * chosen(size=5))


@pytest.mark.parametrize(
    ("more", "factor"),
    [
        ({"relation": "add/remove"}, 2.0),
        ({"max_rows": 3}, 1 / 3),
        ({"momentum": 0.8}, 0.2),
        ({"length": 2.0}, 0.5),
        ({"steps": 40}, 0.5),
        ({"bound": 1.0}, 0.5),
    ],
    ids=str,
)
def test_a_step_is_as_long_as_the_drift_allows(more, factor):
    assert chosen(size=5, **more) == pytest.approx(factor * chosen(size=5))


def test_the_drift_is_what_noise_does_to_a_usual_score(descent):
    """Sums of noise alone, at the end of the path: one coordinate is the score of a record of length 1."""
    guarantee = ZCDP(rho=1e-3, relation="replace-one")
    for momentum in (0.0, 0.8):
        settings = {"steps": 400, "bound": 0.5, "size": 1000, "guarantee": guarantee}
        step = choose_step_size(drift=1.0, stable=1e9, momentum=momentum, **settings)
        question = descent(step_size=step, momentum=momentum, **settings)
        scale = question.plan.lattice("gradient_0").scale
        V = velocity = np.zeros((20_000, 1))
        for _ in range(question.steps):
            V, velocity = question.go_on(V, velocity, RNG.normal(scale=scale, size=V.shape))
        assert V.std() == pytest.approx(1.0, rel=0.05)
