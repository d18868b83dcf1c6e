"""Objective perturbation: the price is that of its proof, and neighbours stay within it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privada.audit import audit_question
from privada.exceptions import InputError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.answering import answer_rows
from privada.privacy import ApproxDP, Ball, PureDP
from privada_lab.baselines import PerturbedClassifier, PerturbedMinimum, PerturbedRegressor
from privada_lab.baselines.private import _newton
from privada_lab.baselines.private.perturbation import CURVED, OUTPUT, TOLERANCE, minimised


def rows(n=3000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, d))
    return X, X @ np.linspace(1, -1, d) + 0.05 * rng.normal(size=n)


def question(loss, *, size=20, width=1, clip=1.0, epsilon=1.5):
    claim = PureDP(epsilon=epsilon, relation="replace-one")
    return PerturbedMinimum(width=width, size=size, norm_bound=1.0, loss=loss, clip=clip, guarantee=claim)


def test_they_learn():
    X, y = rows()
    assert PerturbedRegressor(epsilon=4, norm_bound=1.0).fit(X, y).score(X, y) > 0.5
    model = PerturbedClassifier(epsilon=4, classes=(0, 1), norm_bound=1.0)
    assert model.fit(X, (y > 0).astype(int)).score(X, (y > 0).astype(int)) > 0.8
    assert model.guarantee_ == PureDP(epsilon=4.0, relation="replace-one")


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_slope_determinants_and_output_together_cost_epsilon(loss, epsilon):
    asked = question(loss, epsilon=epsilon, clip=0.7)
    steep, curved = (0.7, 1.0) if loss == "huber" else (1.0, 0.25)
    slope, output = asked.plan.draws["slope"], asked.plan.draws["weights"]
    parts = (
        slope.budget * 2 * steep / slope.sensitivity,
        math.log1p(curved / asked.regularisation),
        output.budget * (2 * TOLERANCE / asked.regularisation) / output.sensitivity,
    )
    assert math.fsum(parts) == pytest.approx(epsilon)
    assert slope.budget == pytest.approx((1 - CURVED - OUTPUT) * epsilon)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_log_densities_of_neighbours_differ_by_at_most_epsilon(loss):
    """The density of w in closed form, from both sides of the proof, over random and extreme neighbours."""
    rng = np.random.default_rng(1)
    asked = question(loss, width=2, clip=0.5)
    beta = asked.plan.draws["slope"].budget / asked.plan.draws["slope"].sensitivity

    def log_density(w, X, y):
        from privada_lab.baselines.private.perturbation import _looked

        _, push, curve = _looked(asked, X @ w, y)
        b = -(X.T @ push + asked.regularisation * w)
        hessian = (X.T * curve) @ X + asked.regularisation * np.eye(2)
        return -beta * np.linalg.norm(b) + np.linalg.slogdet(hessian)[1]

    worst = 0.0
    for _ in range(2000):
        X = rng.normal(size=(4, 2))
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        y = rng.uniform(-1, 1, size=4) if loss == "huber" else rng.integers(0, 2, size=4).astype(float)
        other, label = X.copy(), y.copy()
        direction = rng.normal(size=2)
        X[0], other[0] = direction / np.linalg.norm(direction), -direction / np.linalg.norm(direction)
        label[0] = rng.choice([-1.0, 1.0]) if loss == "huber" else rng.integers(0, 2)
        w = rng.normal(size=2) * rng.choice([0.1, 1.0, 5.0])
        worst = max(worst, abs(log_density(w, X, y) - log_density(w, other, label)))
    assert 0.3 * asked.guarantee.epsilon < worst <= asked.guarantee.epsilon * (1 - OUTPUT) + 1e-9


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_the_minimum_is_found_to_the_tolerance_its_price_assumes(loss):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, size=(50, 3)), rng.integers(0, 2, size=50).astype(float)
    asked = question(loss, width=3, size=50, clip=0.1)
    tilt = 30 * rng.normal(size=3)
    found = minimised(asked, X, y, tilt)
    near = [minimised(asked, X, y, tilt + 1e-6 * rng.normal(size=3)) for _ in range(3)]
    assert max(np.linalg.norm(each - found) for each in near) <= 1e-5 / asked.regularisation


@pytest.mark.statistical
def test_the_audit_stays_below_the_claim_and_sees_part_of_it(rehearsal):
    """One row alone whose label turns round."""
    schema = Schema.of_numbers(bounds=(-1, 1), width=1, size=1, label=Number(name="y", low=-1, high=1))
    sides = [Rows(np.array([[1.0]]), schema=schema, y=np.array([y])) for y in (-1.0, 1.0)]
    result = audit_question(question("huber", size=1), *sides, trials=3000, noise=rehearsal)
    assert result.passed, str(result)
    assert result.epsilon_lower > 0.3


def test_bad_input_is_named_before_anything_is_charged():
    X, y = rows(n=30)
    with pytest.raises(InputError, match="norm_bound"):
        PerturbedRegressor(epsilon=1).fit(X, y)
    with pytest.raises(InputError, match="pure epsilon"):
        PerturbedMinimum(
            width=1,
            size=3,
            norm_bound=1.0,
            guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="replace-one"),
        )
    with pytest.raises(InputError, match="clip"):
        PerturbedRegressor(epsilon=1, norm_bound=1.0, clip=0.0).fit(X, y)
    three = Schema.of_numbers(
        bounds=(-1, 1), width=1, size=20, label=Category(name="y", values=("a", "b", "c"))
    )
    with pytest.raises(InputError, match="two classes"):
        question("logistic").fits(three)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 1.0, 30.0])
def test_the_minimum_is_found_whatever_the_rows_are(loss, epsilon):
    """A gradient of 1e-8 is less than sums of large terms round: answers failed on some rows only."""
    for clip in (1e-6, 1.0, 1e6):
        asked = question(loss, size=1, width=5, clip=clip, epsilon=epsilon)
        for seed in range(10):
            rng = np.random.default_rng(seed)
            x, tilt = (Ball(radius=1.0).clip(9 * rng.normal(size=(1, 5))) for _ in range(2))
            tilt = tilt[0] * rng.gamma(5) * asked.plan.draws["slope"].sensitivity / (0.79 * epsilon)
            for row in (x, 0 * x):
                found = minimised(asked, row, np.ones(1), tilt)
                assert np.isfinite(found).all()


def test_where_newton_does_not_arrive_the_slow_way_does(monkeypatch):
    X, y = rows(n=200)
    asked = question("huber", size=200, width=3, epsilon=5.0)
    tilt = np.array([1.0, -2.0, 0.5])
    quick = minimised(asked, X, y, tilt)
    monkeypatch.setattr(_newton, "MOST_STEPS", 0)
    slow = minimised(asked, X, y, tilt)
    assert slow == pytest.approx(quick, abs=2 * asked.tolerance / asked.regularisation)


@pytest.mark.parametrize("norm_bound", [5e-324, 1e-308, 1e308])
def test_a_norm_bound_at_the_ends_of_floats_fails_on_no_row(norm_bound, rehearsal):
    schema = Schema.of_numbers(bounds=(-1e10, 1e10), width=1, size=2, label=Number(name="y", low=-1, high=1))
    asked = replace(question("huber", size=2), norm_bound=norm_bound)
    for x in (1e10, 1e-5, 0.0):
        found = answer_rows(asked, Rows(np.array([[x], [0.0]]), y=np.ones(2), schema=schema), noise=rehearsal)
        assert np.isfinite(found["weights"]).all()


def test_ordinary_questions_have_the_tolerance_they_had():
    assert question("huber", size=20_000, width=30, epsilon=1.0).tolerance == TOLERANCE


@pytest.mark.parametrize(("change", "name"), [({"clip": 1e200}, "clip"), ({"epsilon": 50.0}, "epsilon")])
def test_objectives_that_floats_cannot_tell_are_refused(change, name):
    with pytest.raises(InputError, match=f"Expected {name}"):
        question("huber", **change)


def test_rows_without_labels_are_refused_before_the_charge():
    with pytest.raises(InputError, match="a schema with a label"):
        question("huber").fits(Schema.of_numbers(bounds=(-1, 1), width=1, size=20))
