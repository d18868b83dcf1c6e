"""One gradient at zero: when it is asked, what it learns, and when the public model is believed."""

import math

import numpy as np
import pytest

from privada import Owner
from privada.exceptions import BudgetError
from privada.methods.reweighting import ReweightedClassifier
from privada.methods.reweighting.learner.default import plan
from privada.methods.reweighting.learner.one_gradient import LOUD, Belief, loudness
from privada.parties import Category, Schema
from privada.parties.protocol import run
from privada.privacy import Approximate

GUARANTEE = Approximate(epsilon=1, delta=1e-5, relation="replace-one")
DIRECTION = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])


def rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 6)) + 3.0


def classes(X, direction):
    return (X @ direction > 3 * direction.sum()).astype(int)


def fitted(epsilon, *, related, seed, size=60):
    Xs, Xt = rows(300, 1000 + seed), rows(size, seed)
    model = ReweightedClassifier(epsilon=epsilon, delta=1e-5, random_state=0, rehearsal=seed)
    public = DIRECTION if related else DIRECTION[::-1]
    with pytest.warns(UserWarning, match="not private"):
        return model.fit(Xs, classes(Xs, public), Xt, classes(Xt, DIRECTION))


def error(model, seed):
    X = rows(2000, 5000 + seed)
    return float(np.mean(model.predict(X) != classes(X, DIRECTION)))


@pytest.mark.parametrize(
    ("size", "settings", "loud"),
    [
        (60, {}, True),
        (2000, {}, False),
        (60, {"alpha": 0.3}, False),
        (60, {"selection": "private"}, False),
        (60, {"loss": "squared"}, False),
    ],
)
def test_it_is_asked_of_classes_of_few_rows_unless_more_is_wanted(size, settings, loud):
    X = rows(200, 0)
    made = plan(X, classes(X, DIRECTION), size=size, guarantee=GUARANTEE, **{"loss": "logistic"} | settings)
    assert made.loud == loud
    assert loud == (loudness(GUARANTEE, size=size, directions=7) > LOUD and not settings)
    if loud:
        assert made.rehearsed is None
        assert made.forecast == 1.0


def test_an_unrelated_source_does_not_stand_in_the_way():
    """The public model is wrong half of the time; fifteen targets of 60 rows at ε = 4."""
    errors = [error(fitted(4.0, related=False, seed=seed), seed) for seed in range(15)]
    assert np.mean(errors) < 0.2


def test_a_related_source_is_kept_where_the_noise_says_nothing():
    errors = [error(fitted(0.05, related=True, seed=seed), seed) for seed in range(10)]
    assert np.mean(errors) < 0.15


def test_one_release_of_one_gradient_uses_up_the_budget():
    model = fitted(1.0, related=True, seed=0)
    (release,) = model.releases_
    assert list(release.payload) == ["gradient_0"]
    assert model.guarantee_ == release.guarantee == GUARANTEE
    assert model.alpha_ == 0
    assert model.discrepancy_ is None
    assert model.predict_proba(rows(5, 9)).sum(axis=1) == pytest.approx(1)


def test_many_classes():
    Xs, Xt, X = rows(300, 1), rows(90, 2), rows(1000, 3)
    label = lambda part: np.digitize(part[:, 0], [2.6, 3.4])  # noqa: E731
    model = ReweightedClassifier(epsilon=4, delta=1e-5, random_state=0, rehearsal=1)
    with pytest.warns(UserWarning, match="not private"):
        model.fit(Xs, np.random.default_rng(0).permutation(label(Xs)), Xt, label(Xt))
    assert np.mean(model.predict(X) == label(X)) > 0.55
    assert model.coef_.shape == (6, 3)


@pytest.mark.parametrize("related", [False, True])
def test_before_a_descent_it_says_where_to_start(related):
    """A thousand rows are too many for one gradient alone; an unrelated source is no burden either."""
    model = fitted(1.0, related=related, seed=0, size=1000)
    first, last = model.releases_
    assert list(first.payload) == ["gradient_0"]
    assert len(last.payload) > 1
    assert model.guarantee_ == GUARANTEE
    assert math.hypot(first.guarantee.gaussian_mu(), last.guarantee.gaussian_mu()) == pytest.approx(
        GUARANTEE.gaussian_mu()
    )
    assert error(model, 0) < 0.12


def test_the_budget_pays_for_both_and_for_nothing_more():
    Xs, Xt = rows(300, 1), rows(1000, 0)
    made = plan(Xs, classes(Xs, DIRECTION), loss="logistic", size=1000, guarantee=GUARANTEE)
    schema = Schema.of_numbers(
        bounds=(-10.0, 20.0), width=6, size=1000, label=Category(name="label", values=(0, 1))
    )
    owner = Owner(
        Xt,
        y=classes(Xt, DIRECTION),
        schema=schema,
        dataset="rows",
        budget=GUARANTEE,
        accounting="gaussian",
    )
    run(made.learner("rows"), {"rows": owner})
    with pytest.raises(BudgetError):
        owner.answer(made.one_gradient.question)


def belief(heard, public, spread, variance, most):
    return Belief.of(heard, public, spread, variance, most, turn=np.eye(len(spread)))


def test_what_is_believed_lies_between_what_was_expected_and_what_was_heard():
    heard = np.array([[2.0, -1.0], [0.5, 0.0], [0.0, 3.0]])
    spread, nothing = np.array([1.0, 0.5, 0.1]), np.zeros((3, 2))
    assert belief(heard, nothing, spread, np.full(3, 1e-12), 100.0).mean == pytest.approx(heard, abs=1e-6)
    assert belief(heard, nothing, spread, np.full(3, 1e9), 100.0).mean == pytest.approx(nothing, abs=1e-6)
    some = belief(heard, nothing, spread, np.full(3, 0.3), 100.0).mean
    assert (np.abs(some) <= np.abs(heard)).all()
    assert some[0, 0] / heard[0, 0] > some[1, 0] / heard[1, 0]
    held = belief(100 * heard, nothing, spread, np.full(3, 1.0), 0.3).mean  # longer than any gradient: noise
    assert np.abs(held).max() < 0.1 * 300


def test_what_is_heard_decides_whether_the_public_model_is_believed():
    """Noise of deviation 0.1 on each of twenty directions; the public gradient has length 0.6."""
    rng = np.random.default_rng(0)
    public = np.zeros((20, 1))
    public[:4] = 0.3
    for truth, kept in ((public, True), (public[::-1], False)):
        heard = truth + 0.1 * rng.normal(size=(20, 1))
        found = belief(heard, public, np.ones(20), np.full(20, 0.01), 0.5)
        assert np.linalg.norm(found.mean - truth) < np.linalg.norm(heard - truth)
        assert (found.trust > 0.9) == kept
        assert (found.trust < 0.1) != kept


def test_noise_that_drowns_all_leaves_both_cases_as_likely():
    found = belief(np.ones((3, 1)), np.full((3, 1), 0.5), np.ones(3), np.full(3, 1e9), 0.5)
    assert found.trust == pytest.approx(0.5, abs=1e-3)
